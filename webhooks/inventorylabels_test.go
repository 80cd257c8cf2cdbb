// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

func TestAClaimThatAsksForLabelsThatThePolicyKeepsAwayIsWarned(t *testing.T) {
	const gpus = "inventory.metalaw.dev/gpus"
	with, without := defaults(t), *defaults(t)
	without.Settings.NoInventoryLabels = true
	fleet := server(func(s *v1alpha1.Server) { s.Labels = map[string]string{gpus: "8", "rack": "r1"} })
	want := []string{"spec.serverSelector: the policy in force (" + without.Revision.Name + ") keeps the hardware out of the labels of Servers " +
		"(labels.inventory: false), so that no Server has inventory.metalaw.dev/gpus. Ask for facts such as server.gpus in annotation " +
		"policy.metalaw.dev/placement instead"}
	for name, c := range map[string]struct {
		bundle        *bundle.Bundle
		before, after *v1alpha1.ServerClaim
		want          []string
	}{
		"while they are shown it is not":  {bundle: with, after: claim(selecting(gpus, "8"))},
		"when it is created":              {bundle: &without, after: claim(selecting(gpus, "8")), want: want},
		"when the selector is added":      {bundle: &without, before: claim(), after: claim(selecting(gpus, "8")), want: want},
		"not again when the rest changes": {bundle: &without, before: claim(selecting(gpus, "8")), after: claim(selecting(gpus, "8"), image("os:2"))},
		"one that asks for others is not": {bundle: &without, after: claim(selecting("rack", "r1"))},
		"nor is one without a selector":   {bundle: &without, after: claim()},
	} {
		t.Run(name, func(t *testing.T) {
			op, before := admissionv1.Create, client.Object(nil)
			if c.before != nil {
				op, before = admissionv1.Update, c.before
			}
			denied, warnings := newWorld(t, c.bundle, fleet).ask(PathValidateServerClaim, user, op, before, c.after)
			if diff := cmp.Diff(c.want, warnings); diff != "" || denied != "" {
				t.Error(denied, diff)
			}
		})
	}
}
