// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/admission"
)

func TestAStoredClaimIsHeldToTheRulesByWhatItsAuthorWrote(t *testing.T) {
	rules, found := admission.Compile(map[string][]byte{"admission.rego": []byte(`package metalaw.admission

deny contains {"code": "ref", "message": "nobody names a server", "field": "spec.serverRef"} if input.object.spec.serverRef
deny contains {"code": "status", "message": "it has a status"} if input.object.status
deny contains {"code": "kind", "message": "it is no claim"} if input.object.kind != "ServerClaim"
`)})
	if rules == nil {
		t.Fatal(found.Err())
	}
	lost := []metav1.Condition{{Type: v1alpha1.ConditionBound, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonBindingLost}}
	waits := []metav1.Condition{{Type: v1alpha1.ConditionBound, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonPending}}
	for name, c := range map[string]struct {
		server     string
		conditions []metav1.Condition
		want       string
	}{
		"one that waits":                          {"", waits, ""},
		"one whose author names a server":         {"a", nil, "policy fleet-1 forbids the claim: spec.serverRef: nobody names a server [ref]"},
		"one that waits for the server it names":  {"a", waits, "policy fleet-1 forbids the claim: spec.serverRef: nobody names a server [ref]"},
		"one that had its server and has lost it": {"a", lost, ""},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &v1alpha1.ServerClaim{}
			claim.Status.Conditions = c.conditions
			if c.server != "" {
				claim.Spec.ServerRef = &corev1.LocalObjectReference{Name: c.server}
			}
			if _, words := Forbids(t.Context(), rules, "fleet-1", claim); words != c.want {
				t.Errorf("%q", words)
			}
		})
	}
}
