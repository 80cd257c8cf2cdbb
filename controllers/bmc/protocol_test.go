// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestAProtocolThatIsNotSpokenIsSaidPlainly(t *testing.T) {
	for _, name := range []v1alpha1.ProtocolName{v1alpha1.ProtocolIPMI, v1alpha1.ProtocolSSH} {
		inWorld(t, func(w *world) {
			w.change("b", func(b *v1alpha1.BMC) { b.Spec.Protocol.Name = name })
			w.rest("b")
			w.expect("b", v1alpha1.ConditionReady, "False ProtocolUnsupported")
			ready := meta.FindStatusCondition(w.bmc("b").Status.Conditions, v1alpha1.ConditionReady)
			if !strings.Contains(ready.Message, "set spec.protocol.name to Redfish") || w.bmc("b").Status.State != v1alpha1.BMCStateError {
				t.Errorf("%s: state %s, %s", name, w.bmc("b").Status.State, ready.Message)
			}
			if asked := w.devices["b"].seen(); len(asked) > 0 {
				t.Errorf("%s: asked %v", name, asked)
			}
			w.change("b", func(b *v1alpha1.BMC) { b.Spec.Protocol.Name = v1alpha1.ProtocolRedfish })
			w.rest("b")
			w.expect("b", v1alpha1.ConditionReady, "True Connected")
		})
	}
}
