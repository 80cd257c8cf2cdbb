// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

func bound(c *v1alpha1.ServerClaim) { naming("s1")(c) }

func TestAClaimThatNothingCanSatisfy(t *testing.T) {
	const words = "no server of the fleet, in whatever state, can satisfy the claim: 0 of 2 servers: "
	const remedy = "; change what it asks for (the codes are explained in docs/reference/claim-codes.md)"
	const waits = "; it stays Unbound until the fleet changes"
	gpus := placing("where: server.gpus > 0")
	for name, c := range map[string]struct {
		setting       string
		before, after *v1alpha1.ServerClaim
		want          string
		warnings      []string
	}{
		"is refused":      {setting: "Deny", after: claim(gpus), want: "Invalid\nspec: " + words + "placement 1, taint 1" + remedy},
		"is warned about": {setting: "Warn", after: claim(gpus), warnings: []string{words + "placement 1, taint 1" + waits + ", or the claim's placement or tolerations"}},
		"a spread over what no server has is a part of the placement": {setting: "Warn", after: claim(selecting("rack", "r1"), placing("spread: {key: nosuch, claims: {}}")), warnings: []string{
			words + "selector 1, spread 1" + waits + ", or the claim's placement"}},
		"a selector cannot be changed": {setting: "Warn", after: claim(selecting("rack", "r3")), warnings: []string{words + "selector 2" + waits +
			"; serverSelector cannot be changed: to ask for other labels, delete the claim and create another"}},
		"a selector that leaves one is not to blame": {setting: "Warn", after: claim(selecting("rack", "r1"), gpus), warnings: []string{
			words + "placement 1, selector 1" + waits + ", or the claim's placement"}},
		"a taint can be tolerated": {setting: "Warn", after: claim(naming("s2")), warnings: []string{words + "other-server 1, taint 1" + waits + ", or the claim's tolerations"}},
		"a placement stays where a server is named": {setting: "Warn", after: claim(naming("s1"), gpus), warnings: []string{
			`Server "s1" is held by another claim; this one waits until it is released`, words + "other-server 1, placement 1" + waits}},
		"passes":                             {setting: "Allow", after: claim(gpus)},
		"though a server is held it passes":  {setting: "Deny", after: claim(selecting("rack", "r1"))},
		"a toleration makes it satisfiable":  {setting: "Deny", after: claim(selecting("rack", "r2"), tolerating(v1alpha1.Toleration{Operator: "Exists"}))},
		"a taint is counted":                 {setting: "Deny", after: claim(selecting("rack", "r2")), want: "Invalid\nspec: " + words + "selector 1, taint 1" + remedy},
		"a named server that is tainted":     {setting: "Deny", after: claim(naming("s2")), want: "Invalid\nspec: " + words + "other-server 1, taint 1" + remedy},
		"what may pass by itself is no more": {setting: "Deny", after: claim(placing("where: server.health == 'OK'")), warnings: []string{words + "placement 1, taint 1; what turns them away may pass by itself, else it stays Unbound until the fleet changes, or the claim's placement or tolerations"}},
		"an update that asks for it is refused": {setting: "Deny", before: claim(), after: claim(gpus),
			want: "Invalid\nspec: " + words + "placement 1, taint 1" + remedy},
		"an update that asks for the same passes":       {setting: "Deny", before: claim(gpus), after: claim(gpus, image("os:2"))},
		"an update that keeps to the placement's sense": {setting: "Deny", before: claim(gpus), after: claim(placing("# a note\nwhere: server.gpus > 0"))},
		"a claim that has its server asks for none":     {setting: "Deny", before: claim(bound), after: claim(bound, tolerating(v1alpha1.Toleration{Key: "a"}))},
		"one that comes back to its server asks for none": {setting: "Deny", after: claim(func(c *v1alpha1.ServerClaim) { c.Namespace = "other" }, bound, selecting("rack", "r2"), gpus), warnings: []string{
			`this claim takes over Server "s1" of the former claim of this name, with whatever is on its disks. Where that is not meant, delete this claim, which releases the server, and claim another one`}},
		"a gang's other members may take what this claim cannot": {setting: "Deny", after: claim(placing("gang: {name: g, size: 2}"))},
		"a gang for which the whole fleet is too small": {setting: "Deny", after: claim(placing("gang: {name: g, size: 3}")),
			warnings: []string{"the claim's gang takes 3 servers, and the whole fleet has 2" + waits + ", or the claim's placement"}},
		"a member that nothing can satisfy is refused": {setting: "Deny", after: claim(placing("where: server.gpus > 0\ngang: {name: g, size: 3}")),
			want: "Invalid\nspec: " + words + "placement 1, taint 1" + remedy},
	} {
		t.Run(name, func(t *testing.T) {
			b := *defaults(t)
			b.Settings.Claims.OnUnsatisfiable = c.setting
			w := newWorld(t, &b, server(labelled("rack", "r1"), heldBy("other", "c"), func(s *v1alpha1.Server) { s.Status.State = v1alpha1.StateReserved }), server(serverNamed("s2"), labelled("rack", "r2"), tainted(v1alpha1.Taint{Key: "broken"})))
			op := admissionv1.Create
			var got string
			var warnings []string
			if c.before == nil {
				got, warnings = w.ask(PathValidateServerClaim, user, op, nil, c.after)
			} else {
				got, warnings = w.ask(PathValidateServerClaim, user, admissionv1.Update, c.before, c.after)
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if diff := cmp.Diff(c.warnings, warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAPolicyThatFailsLeavesTheFleetUnknown(t *testing.T) {
	b := *withFiles(t, map[string]string{"selection_test.rego": "package metalaw.selection_test\n",
		"selection.rego": "package metalaw.selection\nallow if to_number(input.candidate.name) > 0\n"})
	b.Settings.Claims.OnUnsatisfiable = bundle.UnsatisfiableDeny
	got, warnings := newWorld(t, &b, server()).ask(PathValidateServerClaim, user, admissionv1.Create, nil, claim())
	want := []string{"whether any server could satisfy the claim is not known: the selection policy cannot be evaluated for some of them " +
		"(0 of 1 servers: policy-error 1)"}
	if diff := cmp.Diff(want, warnings); diff != "" || got != "" {
		t.Error(got, diff)
	}
}

func TestAClaimForAServerThatIsNotThereYetPassesUnderDeny(t *testing.T) {
	b := *defaults(t)
	b.Settings.Claims.OnUnsatisfiable = bundle.UnsatisfiableDeny
	got, warnings := newWorld(t, &b, server()).ask(PathValidateServerClaim, user, admissionv1.Create, nil, claim(naming("gone")))
	want := []string{`spec.serverRef.name: there is no Server "gone"; the claim waits until there is one, and its condition Bound says so. ` +
		"The serverRef cannot be changed: if the name is wrong, delete the claim and create another"}
	if diff := cmp.Diff(want, warnings); diff != "" || got != "" {
		t.Error(got, diff)
	}
}

// An error is not false.
func TestTheBundlesRulesAreNotToldWhatNobodyKnows(t *testing.T) {
	b := *withFiles(t, map[string]string{"selection_test.rego": "package metalaw.selection_test\n",
		"selection.rego": "package metalaw.selection\nallow if to_number(input.candidate.name) > 0\n", "admission_test.rego": "package metalaw.admission_test\n",
		"admission.rego": "package metalaw.admission\ndeny contains {\"code\": \"hopeless\", \"message\": \"m\"} if input.facts.satisfiable == false\n"})
	if got, _ := newWorld(t, &b, server()).ask(PathValidateServerClaim, user, admissionv1.Create, nil, claim()); got != "" {
		t.Error(got)
	}
}

func TestTheBundlesRulesKnowWhetherAClaimCanBeSatisfied(t *testing.T) {
	w := ruled(t, `deny contains {"code": "hopeless", "message": "m"} if input.facts.satisfiable == false`)
	if got, _ := w.ask(PathValidateServerClaim, user, admissionv1.Create, nil, claim()); got != "Forbidden\nm" {
		t.Error(got)
	}
}
