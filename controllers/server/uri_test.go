// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

func TestAServerWithoutASystemsURISaysWhatItLacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		w := inWorld(t, m, serverIn(v1alpha1.StateInitial, func(s *v1alpha1.Server) { s.Spec.SystemURI = "" }), inventoryOfA())
		w.manager.run(time.Minute)
		c := meta.FindStatusCondition(w.server().Status.Conditions, v1alpha1.ConditionBMCReachable)
		if c == nil || c.Reason != v1alpha1.ReasonSystemURIMissing || !strings.Contains(c.Message, "write the URI of the system at its BMC") {
			t.Errorf("%+v", c)
		}
		if m.readings() != 0 {
			t.Errorf("its BMC was read %d times", m.readings())
		}
	})
}
