// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/admission"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/policies"
)

// counted is a policy that counts how often it is asked.
type counted struct {
	*admission.Policy
	asked int
}

func (c *counted) Standing(ctx context.Context, kind string, object map[string]any) ([]admission.Finding, error) {
	c.asked++
	return c.Policy.Standing(ctx, kind, object)
}

// rulesFrom compiles admission.rego.
func rulesFrom(t *testing.T, body string) *counted {
	t.Helper()
	policy, found := admission.Compile(map[string][]byte{"admission.rego": []byte("package metalaw.admission\n\n" + body)})
	if policy == nil {
		t.Fatal(found.Err())
	}
	return &counted{Policy: policy}
}

func imageOf(name string) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) { c.Spec.Image = name }
}

func TestAClaimThatNobodyAskedTheRulesAboutIsHeldToThem(t *testing.T) {
	const deny = `deny contains {"code": "image", "message": "only linux boots here", "field": "spec.image"} if input.object.spec.image != "linux"`
	for name, tc := range map[string]struct {
		rules string
		want  Verdict
	}{
		"a rule that forbids it": {deny, Verdict{Reason: "ClaimDenied",
			Message: "policy test forbids the claim: spec.image: only linux boots here [image]"}},
		"a rule that cannot be evaluated": {`deny contains {"code": "image", "message": "m"} if to_number(input.object.spec.image) > 1`, Verdict{
			Reason: "GuardError", Message: `policy test could not decide whether there may be such a claim: admission: admission.rego:3:52: rule deny: to_number: ` +
				`strconv.ParseFloat: parsing "windows": invalid syntax`}},
		"a rule for another user":       {`deny contains {"code": "user", "message": "m"} if input.user.name != "admin"`, Verdict{}},
		"a rule that it does not break": {`deny contains {"code": "image", "message": "m"} if input.object.spec.image == "linux"`, Verdict{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			rules := rulesFrom(t, tc.rules)
			w.s.rules = func(engine.Revision) policies.Rules { return rules }
			w.addServer(aServer("a"))
			w.addClaim(aClaim("c", imageOf("windows")))
			w.deliver(len(w.events))
			w.must(w.pass())
			got, _ := w.s.Verdict(w.claims()[0].UID)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(Verdict{})); diff != "" {
				t.Error(diff)
			}
			if bound := len(w.boundClaims()) == 1; bound != (tc.want.Reason == "") {
				t.Errorf("bound is %v", bound)
			}
		})
	}
}

func TestTheRulesAreAskedOnceAboutEachVersionOfAClaim(t *testing.T) {
	w := newWorld(t)
	rules := rulesFrom(t, `deny contains {"code": "image", "message": "m"} if input.object.spec.image != "linux"`)
	w.s.rules = func(engine.Revision) policies.Rules { return rules }
	w.addClaim(aClaim("c", imageOf("windows")))
	for _, name := range []string{"a", "b"} {
		w.addServer(aServer(name))
		w.deliver(len(w.events))
		w.must(w.pass())
	}
	if rules.asked != 1 || len(w.boundClaims()) != 0 {
		t.Errorf("asked %d times, bound %v", rules.asked, w.boundClaims())
	}

	c := w.claims()[0]
	imageOf("linux")(c)
	c.Generation++
	w.must(w.api.Update(context.Background(), c))
	w.shown(c)
	w.deliver(len(w.events))
	w.must(w.pass())
	if rules.asked != 2 || len(w.boundClaims()) != 1 {
		t.Errorf("asked %d times, bound %v", rules.asked, w.boundClaims())
	}
	w.endClaim(w.claims()[0])
	w.deliver(len(w.events))
	w.must(w.pass())
	if len(w.s.answers) != 0 {
		t.Errorf("%d answers are kept of claims that are not open", len(w.s.answers))
	}
}

// failsOnce is a policy that cannot be evaluated once.
type failsOnce struct{ *counted }

func (b failsOnce) Standing(ctx context.Context, kind string, object map[string]any) ([]admission.Finding, error) {
	found, err := b.counted.Standing(ctx, kind, object)
	if b.asked == 1 {
		return nil, context.DeadlineExceeded
	}
	return found, err
}

func TestRulesThatCouldNotBeEvaluatedAreAskedAgain(t *testing.T) {
	w := newWorld(t)
	rules := failsOnce{rulesFrom(t, "")}
	w.s.rules = func(engine.Revision) policies.Rules { return rules }
	w.addServer(aServer("a"))
	w.addClaim(aClaim("c"))
	w.deliver(len(w.events))
	w.must(w.pass())
	if v, _ := w.s.Verdict(w.claims()[0].UID); v.Reason != "GuardError" || len(w.boundClaims()) != 0 {
		t.Errorf("it is told %q, and bound are %v", v.Reason, w.boundClaims())
	}
	w.now = w.now.Add(5 * time.Second)
	w.s.pending.wakeAll()
	w.must(w.pass())
	if len(w.boundClaims()) != 1 {
		t.Error("it waits, though the rules can be evaluated by now")
	}
}

func TestRulesThatCannotBeEvaluatedAreAskedLessAndLess(t *testing.T) {
	w := newWorld(t)
	rules := rulesFrom(t, `deny contains {"code": "image", "message": "m"} if to_number(input.object.spec.image) > 1`)
	w.s.rules = func(engine.Revision) policies.Rules { return rules }
	w.addServer(aServer("a"))
	w.addClaim(aClaim("c", imageOf("windows")))
	w.deliver(len(w.events))
	var asked []int
	for second := range 1000 {
		before := rules.asked
		w.s.pending.wakeAll()
		w.must(w.pass())
		if rules.asked > before {
			asked = append(asked, second)
		}
		if v, _ := w.s.Verdict(w.claims()[0].UID); v.Reason != "GuardError" {
			t.Fatalf("after %d seconds it is told %q", second, v.Reason)
		}
		w.now = w.now.Add(time.Second)
	}
	if diff := cmp.Diff([]int{0, 4, 12, 28, 60, 124, 252, 508, 808}, asked); diff != "" {
		t.Error(diff)
	}
}

func TestOtherRulesAreAskedAnew(t *testing.T) {
	w := newWorld(t)
	rules, revision := rulesFrom(t, `deny contains {"code": "image", "message": "m"}`), "one"
	w.s.rules = func(engine.Revision) policies.Rules { return rules }
	w.s.policy = func() (solve.Policy, engine.Revision) { return byName{}, engine.Revision{Name: revision} }
	w.addServer(aServer("a"))
	w.addClaim(aClaim("c"))
	w.deliver(len(w.events))
	w.must(w.pass())
	rules, revision = rulesFrom(t, ""), "two"
	w.must(w.pass())
	if len(w.boundClaims()) != 1 {
		t.Error("it waits, though nothing forbids it any more")
	}
}

func TestAGangWithAMemberThatIsForbiddenGetsNothing(t *testing.T) {
	w := gangOfThree(t, 3)
	rules := rulesFrom(t, `deny contains {"code": "name", "message": "not this one"} if input.object.metadata.name == "db-1"`)
	w.s.rules = func(engine.Revision) policies.Rules { return rules }
	w.must(w.pass())
	if got := w.onServers(); got != nil || len(w.boundClaims()) != 0 {
		t.Errorf("written are %v", got)
	}
	for uid, want := range map[types.UID]string{
		"uid-db-0": `gang "db": the policy forbids 1 of its 3 members; none of them gets a server until that is mended`,
		"uid-db-1": "policy test forbids the claim: not this one [name]",
	} {
		if v, _ := w.s.Verdict(uid); v.Message != want {
			t.Errorf("%s: %s", uid, v.Message)
		}
	}
}

func TestAMemberWhoseSelectorIsTooLongKeepsItsGangWaitingAndNoRuleIsAskedAboutIt(t *testing.T) {
	w := newWorld(t)
	rules := rulesFrom(t, "")
	w.s.rules = func(engine.Revision) policies.Rules { return rules }
	for _, name := range []string{"a", "b"} {
		w.addServer(aServer(name))
	}
	w.addClaim(aClaim("db-0", inGang(2)))
	w.addClaim(aClaim("db-1", inGang(2), excluding(257)))
	w.deliver(len(w.events))
	w.must(w.pass())
	for i, want := range []string{"GangWaiting", "InvalidSelector"} {
		if v, _ := w.s.Verdict(w.claims()[i].UID); v.Reason != want {
			t.Errorf("%s is told %q: %s", w.claims()[i].Name, v.Reason, v.Message)
		}
	}
	if rules.asked != 1 || len(w.boundClaims()) != 0 {
		t.Errorf("asked %d times, bound %v", rules.asked, w.boundClaims())
	}
}
