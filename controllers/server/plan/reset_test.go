// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine"
)

func TestTheEndOfAnOperationOnAMachineIsToldInItsCondition(t *testing.T) {
	for name, c := range map[string]struct {
		job  power.Job
		want string
	}{
		"one that the BMC accepted":           {power.Job{Known: true}, "True/Succeeded"},
		"one that the BMC refused":            {power.Job{Known: true, Err: errors.New("no"), Words: "no"}, "False/Failed"},
		"one whose manager ended before that": {power.Job{}, "False/Failed"},
		"one that is under way":               {power.Job{Known: true, Running: true}, "none"},
	} {
		s := &v1alpha1.Server{}
		s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 3}
		s.Status.Operation = &v1alpha1.OperationStatus{ID: "a", Name: v1alpha1.OperationHardRestartServer,
			State: v1alpha1.OperationInProgress, Entry: 3}
		d := &draft{}
		d.Server, d.Now, d.BMC.Jobs = s, time.Unix(1, 0), map[string]power.Job{"a": c.job}
		resetAsAsked(d, engine.Effect{})
		got := "none"
		if done := meta.FindStatusCondition(d.Server.Status.Conditions, v1alpha1.ConditionOperationDone); done != nil {
			got = string(done.Status) + "/" + done.Reason
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
