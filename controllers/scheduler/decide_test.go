// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims"
	entries "github.com/metalaw/metalaw/engine/claims/index"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
)

// serverTaken is what a claim is told whose server another claim holds.
const serverTaken = "ServerTaken: the server that spec.serverRef names is held by another claim; " +
	"this claim gets it once that one has ended and the server is Available"

// leftOut is what it is told where it would not get that server either way; the code follows.
const leftOut = "NoneClaimable: the server that spec.serverRef names is not free, and would not be given to this claim if it were: "

func TestDecide(t *testing.T) {
	taken := func(s *v1alpha1.Server) { s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "x", Name: "y"} }
	tainted := func(s *v1alpha1.Server) { s.Spec.Taints = []v1alpha1.Taint{{Key: "bad"}} }
	for _, tc := range []struct {
		name   string
		fleet  *index.Index
		policy solve.Policy
		claim  *v1alpha1.ServerClaim
		want   string
	}{
		{"the best ranked server comes first", fleetOf(aServer("b"), aServer("a")), byName{}, aClaim("c"), "bind a b"},
		{"a selector narrows the choice", fleetOf(aServer("a"), aServer("b", labelled("rack", "1"))), byName{}, aClaim("c", selecting("rack", "1")), "bind b"},
		{"a claim that names a server gets that one", fleetOf(aServer("a"), aServer("b")), byName{}, aClaim("c", naming("b")), "bind b"},
		{"name and selector must both match", fleetOf(aServer("a"), aServer("b", labelled("rack", "1"))), byName{},
			aClaim("c", naming("a"), selecting("rack", "1")), "NoServers: 0 of 2 servers match"},
		{"a name that does not exist", fleetOf(aServer("a")), byName{}, aClaim("c", naming("z")),
			"ServerNotFound: the server that spec.serverRef names does not exist; the claim gets it once it does. " +
				"serverRef cannot be changed: if the name is wrong, delete the claim and create another"},
		{"a named server that is taken", fleetOf(aServer("a", taken)), byName{}, aClaim("c", naming("a")), serverTaken},
		{"a named server that is taken, and that the claim does not tolerate", fleetOf(aServer("a", taken, tainted)), byName{}, aClaim("c", naming("a")),
			leftOut + "taint"},
		{"a named server that is taken, and that the claim's placement leaves out", fleetOf(aServer("a", taken, labelled("rack", "r1"))), byName{},
			aClaim("c", naming("a"), placed(`where: server.labels.rack == "r9"`)), leftOut + "placement"},
		{"a named server that is taken, and that the claim's placement accepts", fleetOf(aServer("a", taken, labelled("rack", "r9"))), byName{},
			aClaim("c", naming("a"), placed(`where: server.labels.rack == "r9"`)), serverTaken},
		{"no server matches", fleetOf(aServer("a"), aServer("b")), byName{}, aClaim("c", selecting("rack", "1")), "NoServers: 0 of 2 servers match"},
		{"none is free, the most frequent code first", fleetOf(aServer("a", taken), aServer("b", tainted), aServer("c", taken), aServer("d", inState("Cleanup"))),
			byName{}, aClaim("c"), "NoneClaimable: 4 of 4 servers match: claimed 2, not-available 1, taint 1"},
		{"the policy rejects what is free", fleetOf(aServer("a"), aServer("b"), aServer("c", taken)), byName{"a": "memory", "b": "memory"},
			aClaim("c"), "PolicyRejected: 3 of 3 servers match: memory 2, claimed 1"},
		{"the policy rejects one, and the spread keeps the other", fleetOf(aServer("a", labelled(policies.RackMetadata, "r1")), aServer("b")), byName{"a": "memory"},
			aClaim("c", placed("spread: {key: rack, claims: {}}")), "NoneClaimable: 2 of 2 servers match: memory 1, spread 1"},
		{"the policy rejects one and ranks the other", fleetOf(aServer("a"), aServer("b")), byName{"a": "memory"}, aClaim("c"), "bind b"},
		{"a policy that fails is no answer, and names no server", fleetOf(aServer("a")), failing{}, aClaim("c"), "GuardError: the policy cannot be evaluated: boom"},
		{"a policy that fails for all servers is no answer", fleetOf(aServer("a"), aServer("b")), perLabel(t), aClaim("c"),
			"GuardError: 2 of 2 servers match: policy-error 2; the policy cannot be evaluated: selection.rego:3:10: rule score"},
		{"a policy that fails for the one that is free, and another may be free some day", fleetOf(aServer("a"), aServer("b", taken)), perLabel(t), aClaim("c"),
			"NoneClaimable: 2 of 2 servers match: claimed 1, policy-error 1"},
		{"a policy that fails for one, and another is cordoned", fleetOf(aServer("a"), aServer("b", tainted)), perLabel(t), aClaim("c"),
			"GuardError: 2 of 2 servers match: policy-error 1, taint 1; the policy cannot be evaluated: selection.rego:3:10: rule score"},
		{"a policy that fails for one server is asked about the others", fleetOf(aServer("a"), aServer("b", labelled("weight", "7"))), perLabel(t), aClaim("c"), "bind b"},
		{"without a policy nothing is bound", fleetOf(aServer("a")), nil, aClaim("c"), "Pending: no policy is in force, or this version of the manager refuses the one that is"},
		{"a selector without meaning", fleetOf(aServer("a")), byName{}, aClaim("c", func(c *v1alpha1.ServerClaim) {
			c.Spec.ServerSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "In"}}}
		}), "InvalidSelector: spec.serverSelector: matchExpressions[0]: operator In needs at least one value"},
		{"a selector that is longer than any is judged", fleetOf(aServer("a")), byName{}, aClaim("c", excluding(257)),
			"InvalidSelector: spec.serverSelector: it has 257 values in matchExpressions, and at most 256 are judged; " +
				"give the servers that are meant one label, and select by that"},
		{"a long selector that is judged", fleetOf(aServer("a")), byName{}, aClaim("c", excluding(256)), "bind a"},

		{"bound in both directions", fleetOf(aServer("a", writtenFor("c", "uid-c")), aServer("b")), byName{}, aClaim("c", naming("a")), "settled a"},
		{"written on the server alone", fleetOf(aServer("b", writtenFor("c", "uid-c"), inState("Reserved")), aServer("a")), byName{}, aClaim("c"), "complete b"},
		{"written on two servers: the first by name", fleetOf(aServer("b", writtenFor("c", "uid-c")), aServer("a", writtenFor("c", "uid-c"))), byName{}, aClaim("c"), "complete a"},
		{"written on one server, and the user names another", fleetOf(aServer("a", writtenFor("c", "uid-c")), aServer("b")), byName{}, aClaim("c", naming("b")), "bind b"},
		{"written for an earlier claim of the name", fleetOf(aServer("a", writtenFor("c", "uid-old"))), byName{}, aClaim("c"), "NoneClaimable: 1 of 1 servers match: claimed 1"},
		{"written without a UID, and the claim names it", fleetOf(aServer("a", writtenFor("c", ""))), byName{}, aClaim("c", naming("a")), "adopt a"},
		{"written for another UID, and the restored claim names it", fleetOf(aServer("a", writtenFor("c", "uid-old"))), byName{}, aClaim("c", naming("a")), "adopt a"},
		{"released by the claim's predecessor", fleetOf(aServer("a", writtenFor("c", "uid-old"), annotated(v1alpha1.ReleasedClaimAnnotation, "uid-old"))),
			byName{}, aClaim("c", naming("a")), serverTaken},
		{"kept after the end of its holder", fleetOf(aServer("a", writtenFor("other", "uid-other"), annotated(v1alpha1.ReleasedClaimAnnotation, "uid-other"),
			func(s *v1alpha1.Server) { s.Spec.ReclaimPolicy = v1alpha1.ReclaimPolicyRetain })), byName{}, aClaim("c", naming("a")),
			`ServerTaken: the claim that held the server "a" has ended, and its data is kept (reclaimPolicy Retain) until it is given up. ` +
				`This claim may get the server once it is wiped; ask an operator of the fleet`},
		{"kept after the end of its holder, and the claim does not tolerate it", fleetOf(aServer("a", tainted, writtenFor("other", "uid-other"),
			annotated(v1alpha1.ReleasedClaimAnnotation, "uid-other"), func(s *v1alpha1.Server) { s.Spec.ReclaimPolicy = v1alpha1.ReclaimPolicyRetain })),
			byName{}, aClaim("c", naming("a")), leftOut + "taint"},
		{"a record of an earlier holder does not end a binding", fleetOf(aServer("a", writtenFor("c", "uid-old"), annotated(v1alpha1.ReleasedClaimAnnotation, "uid-older"))),
			byName{}, aClaim("c", naming("a")), "adopt a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := told(t, &solve.Snapshot{Fleet: tc.fleet.Index, Policy: tc.policy}, tc.claim); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestEachClaimOfAClassIsToldThatItsServerIsNoneForIt(t *testing.T) {
	taken := func(s *v1alpha1.Server) { s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "x", Name: "y"} }
	v := &solve.Snapshot{Fleet: fleetOf(aServer("a", taken, labelled("rack", "r1"))).Index, Policy: byName{}}
	for _, name := range []string{"c", "d"} {
		claim := aClaim(name, naming("a"), placed(`where: server.labels.rack == "r9"`))
		if got := told(t, v, claim); got != leftOut+"placement" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// perLabel is a policy that fails for servers without a number in a label.
func perLabel(t *testing.T) *selection.Policy {
	t.Helper()
	p, found := selection.Compile(map[string][]byte{"selection.rego": []byte("package metalaw.selection\nallow := true\n" +
		"score := to_number(object.get(input.candidate.labels, \"weight\", \"x\"))\n")})
	if p == nil {
		t.Fatal(found)
	}
	return p
}

// told puts what becomes of a claim into words. Bind is with all servers that the claim could have, the best first.
func told(t *testing.T, v *solve.Snapshot, c *v1alpha1.ServerClaim) string {
	t.Helper()
	p := newPending()
	p.saw(c, epoch)
	ask, spent := p.take(bundle.Priority{Max: 1000}, epoch)[0].ask, map[string]bool{}
	want := solve.Want{Spent: func(_ *claims.Claim, e *entries.Entry) bool { return spent[e.Name()] }}
	text := ""
	for {
		r := solve.Solve(t.Context(), v, []*claims.Claim{ask}, want)[0]
		switch r.Action {
		case solve.Settled:
			return "settled " + r.Server
		case solve.Complete:
			return "complete " + r.Server
		case solve.Adopt:
			return "adopt " + r.Server
		case solve.Bind:
			text += " " + r.Server
			spent[r.Server] = true
		case solve.Again:
			return "bind" + text
		case solve.Refuse:
			m := v.Message(ask, r.Refusal, solve.Tallies{})
			return m.Reason + ": " + m.Message
		}
	}
}

type failing struct{}

func (failing) Select(context.Context, selection.Claim, []*selection.PreparedCandidate, selection.Fleet) (selection.Result, error) {
	return selection.Result{}, selection.CandidateError{Server: "a", Err: errors.New("boom")}
}

func TestPendingClaimsAreServedByPriorityThenAgeThenName(t *testing.T) {
	older := func(c *v1alpha1.ServerClaim) { c.CreationTimestamp = metav1.NewTime(epoch.Add(-1)) }
	urgent := func(c *v1alpha1.ServerClaim) { c.Annotations = map[string]string{v1alpha1.PriorityAnnotation: "5"} }
	p := newPending()
	for _, c := range []*v1alpha1.ServerClaim{aClaim("b"), aClaim("a"), aClaim("z-old", older), aClaim("y-urgent", urgent),
		aClaim("never", func(c *v1alpha1.ServerClaim) { c.Finalizers = nil })} {
		p.saw(c, epoch)
	}
	got := ""
	for _, a := range p.take(bundle.Priority{Max: 1000}, epoch) {
		got += a.claim.Name + " "
	}
	if want := "y-urgent z-old a b "; got != want {
		t.Errorf("order is %q, want %q", got, want)
	}
}

func TestClaimsThatAskForTheSameShareOneCount(t *testing.T) {
	same := func(a, b *v1alpha1.ServerClaim) bool {
		x, y := policies.ClaimOf(a, bundle.Priority{}, epoch), policies.ClaimOf(b, bundle.Priority{}, epoch)
		return x.Contract() == y.Contract()
	}
	if !same(aClaim("a", selecting("k", "v")), aClaim("b", selecting("k", "v"))) {
		t.Error("the same selector counts as two")
	}
	for name, other := range map[string]*v1alpha1.ServerClaim{
		"another value": aClaim("b", selecting("k", "w")), "no selector": aClaim("b"), "a name": aClaim("b", selecting("k", "v"), naming("s")),
		"a toleration": aClaim("b", selecting("k", "v"), func(c *v1alpha1.ServerClaim) { c.Spec.Tolerations = []v1alpha1.Toleration{{Key: "t"}} }),
	} {
		if same(aClaim("a", selecting("k", "v")), other) {
			t.Errorf("%s counts as the same", name)
		}
	}
}

// excluding selects servers of which a label has none of so many values.
func excluding(n int) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) {
		e := metav1.LabelSelectorRequirement{Key: "rack", Operator: metav1.LabelSelectorOpNotIn}
		for i := range n {
			e.Values = append(e.Values, fmt.Sprint("r", i))
		}
		c.Spec.ServerSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{e}}
	}
}
