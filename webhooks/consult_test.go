// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies/index"
	"github.com/metalaw/metalaw/webhooks/review"
)

// A look over the fleet may take long. What it costs must keep no claim from being held to the rules.
func TestTheRulesAreAskedBeforeTheFleetIsLookedAt(t *testing.T) {
	const byUser = `deny contains {"code": "user", "message": "not you"} if input.user.name == "jane"` + "\n"
	const byFact = `deny contains {"code": "hopeless", "message": "none"} if input.facts.satisfiable == false` + "\n"
	for name, c := range map[string]struct {
		rules, user string
		refused     bool // by metalaw's own rules
		looks       bool
		want        string
	}{
		"a rule refuses it":                             {rules: byUser, user: "jane", want: "Forbidden\nnot you"},
		"no rule refuses it":                            {rules: byUser, user: "joe", looks: true},
		"a rule refuses it, and another needs the look": {rules: byUser + byFact, user: "jane", want: "Forbidden\nnot you"},
		"only the rule that needs the look refuses it":  {rules: byUser + byFact, user: "joe", looks: true, want: "Forbidden\nnone"},
		"metalaw itself refuses it":                     {rules: byUser, user: "joe", refused: true, want: "Forbidden\nspec: Forbidden: no"},
		"metalaw and a rule refuse it":                  {rules: byUser + byFact, user: "jane", refused: true, want: "Forbidden\nspec: Forbidden: no\nnot you"},
		"the manager writes it":                         {rules: byUser + byFact, user: manager},
	} {
		t.Run(name, func(t *testing.T) {
			looked := false
			v := &review.Validator[v1alpha1.ServerClaim]{Bundles: revisions{active: withFiles(t, map[string]string{
				"admission.rego": "package metalaw.admission\n" + c.rules, "admission_test.rego": "package metalaw.admission_test\n"})},
				ManagerUser: manager, Now: time.Now, Rules: review.Rules[v1alpha1.ServerClaim]{Kind: "ServerClaim",
					Judge: func(_ context.Context, _ review.Change[v1alpha1.ServerClaim], found *review.Findings, _ map[string]any) error {
						if c.refused {
							found.Deny(field.Forbidden(field.NewPath("spec"), "no"))
						}
						return nil
					},
					Look: func(_ context.Context, _ review.Change[v1alpha1.ServerClaim], _ *review.Findings, facts map[string]any) {
						looked, facts["satisfiable"] = true, false
					}}}
			req := &admissionv1.AdmissionRequest{Operation: admissionv1.Create, Name: "c",
				UserInfo: authenticationv1.UserInfo{Username: c.user}, Object: runtime.RawExtension{Raw: raw(t, claim())}}
			found, err := v.Decide(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := said(found.Response(req, "ServerClaim")); got != c.want || looked != c.looks {
				t.Errorf("got %q (looked %t), want %q (%t)", got, looked, c.want, c.looks)
			}
		})
	}
}

// requiring selects by so many labels that are absent.
func requiring(n int) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) {
		c.Spec.ServerSelector = &metav1.LabelSelector{}
		for i := range n {
			c.Spec.ServerSelector.MatchExpressions = append(c.Spec.ServerSelector.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: fmt.Sprint("k", i), Operator: metav1.LabelSelectorOpDoesNotExist})
		}
	}
}

func TestASelectorThatIsTooLong(t *testing.T) {
	const tooLong = "Invalid\nspec.serverSelector: Too many: 30000: it has 30000 requirements in matchLabels and matchExpressions, and at most 64 are judged; " +
		"give the servers that are meant one label, and select by that"
	for name, c := range map[string]struct {
		before, after *v1alpha1.ServerClaim
		who, want     string
	}{
		"is refused, and the rules are asked as well":          {after: claim(requiring(30000)), who: "jane", want: tooLong + "\nnot you"},
		"is refused where a claim comes to have it":            {before: claim(), after: claim(requiring(30000)), want: tooLong},
		"keeps no claim that had it before from changing":      {before: claim(requiring(65)), after: claim(requiring(65), image("os:2"))},
		"keeps no claim that had it before from being deleted": {before: claim(requiring(65))},
	} {
		t.Run(name, func(t *testing.T) {
			w := ruled(t, `deny contains {"code": "user", "message": "not you"} if input.user.name == "jane"`)
			req := admissionv1.AdmissionRequest{Operation: admissionv1.Create, UserInfo: authenticationv1.UserInfo{Username: c.who}}
			if c.before != nil {
				req.Operation, req.OldObject.Raw = admissionv1.Update, raw(t, c.before)
			}
			if c.after != nil {
				req.Object.Raw = raw(t, c.after)
			} else {
				req.Operation = admissionv1.Delete
			}
			if got, _ := said(w.hooks[PathValidateServerClaim].Handle(t.Context(), admission.Request{AdmissionRequest: req})); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestALookEndsWithItsTime(t *testing.T) {
	b := *defaults(t)
	b.Settings.Claims.OnUnsatisfiable = bundle.UnsatisfiableDeny
	fleet := index.New()
	fleet.Saw(server())
	fleet.Saw(server(serverNamed("s2")))
	const disagree = "metadata.annotations[policy.metalaw.dev/placement]: gang \"g\": its members give different sizes: 2 and 3; none of them gets a server until they agree"
	unknown := []string{"whether any server could satisfy the claim is not known: the selection policy cannot be evaluated, or not in time; " +
		"the claim's condition Bound will say more"}
	for name, c := range map[string]struct {
		longest time.Duration
		busy    bool
		want    []string
	}{
		"nobody else looks":               {longest: time.Minute, want: []string{disagree}},
		"there is no time":                {longest: 0, want: unknown},
		"others look for all of its time": {longest: time.Millisecond, busy: true, want: unknown},
	} {
		t.Run(name, func(t *testing.T) {
			other := claim(func(c *v1alpha1.ServerClaim) { c.Name = "other" }, placing("gang: {name: g, size: 3}"))
			l := &claimRules{lookup: &lookup{cache: store(t, other), bundles: revisions{active: &b}, servers: whole{fleet}, unique: &uniqueness{now: time.Now}}, looks: make(looks, 1), longestLook: c.longest}
			if c.busy {
				l.looks <- struct{}{}
			}
			var found review.Findings
			l.lookForClaim(t.Context(), review.Change[v1alpha1.ServerClaim]{New: claim(placing("gang: {name: g, size: 2}"))}, &found, map[string]any{})
			if diff := cmp.Diff(c.want, found.Warnings); diff != "" || !found.Pass() {
				t.Error(found.Denials, diff)
			}
			if taken := len(l.looks); taken != 0 && !c.busy {
				t.Errorf("%d turns are still taken", taken)
			}
		})
	}
}

func TestWhetherASelectorMatchesIsKnownThoughOthersLook(t *testing.T) {
	b := *withFiles(t, map[string]string{
		"admission.rego":      "package metalaw.admission\ndeny contains {\"code\": \"none\", \"message\": \"m\"} if input.facts.selectorMatches == false\n",
		"admission_test.rego": "package metalaw.admission_test\n"})
	fleet := index.New()
	fleet.Saw(server())
	l := &claimRules{lookup: &lookup{cache: store(t), bundles: revisions{active: &b}, servers: whole{fleet}, unique: &uniqueness{now: time.Now}},
		looks: make(looks, 1), longestLook: time.Millisecond}
	l.looks <- struct{}{}
	var found review.Findings
	facts := map[string]any{}
	l.lookForClaim(t.Context(), review.Change[v1alpha1.ServerClaim]{New: claim(func(c *v1alpha1.ServerClaim) {
		c.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"no": "such"}}
	})}, &found, facts)
	if diff := cmp.Diff(map[string]any{"selectorMatches": false}, facts); diff != "" {
		t.Error(diff)
	}
}
