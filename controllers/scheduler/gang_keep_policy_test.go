// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/library"
	"github.com/metalaw/metalaw/policies/why"
)

// bundled is the selection policy of the default bundle, with policies of the library and with rules of its own.
func bundled(t *testing.T, rules string, names ...string) *selection.Policy {
	t.Helper()
	files, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		p, err := library.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if files, _, err = p.Add(files, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	files[bundle.SelectionFile] = append(slices.Clone(files[bundle.SelectionFile]), rules...)
	b, found, err := bundle.Compile(files, policies.Vocabulary())
	if err != nil || b == nil {
		t.Fatal(err, found)
	}
	return b.Selection
}

func TestWhatARealPolicyMakesOfAGangThatWaitsForLong(t *testing.T) {
	const tenants = "example.com/tenant"
	busy := inState("Cleanup")
	theirs, ours := labelled(tenants, "other"), labelled(tenants, "ns")
	ill := func(s *v1alpha1.Server) {
		s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionHealthy, Status: "False", Reason: v1alpha1.ReasonHealthCritical}}
	}
	rack := func(name string) func(*v1alpha1.Server) { return labelled(policies.RackMetadata, name) }
	all := func(changes ...func(*v1alpha1.Server)) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) {
			for _, change := range changes {
				change(s)
			}
		}
	}
	const never = "nothing is kept free for it, because the fleet has too few servers for all its members, free or not; "
	const unknown = "nothing is kept free for it, because nobody knows which servers its members could ever have: "
	fails := "reject contains {\"code\": \"n\", \"message\": \"m\"} if to_number(input.candidate.labels.n) > 5\n"
	for name, c := range map[string]struct {
		servers []func(*v1alpha1.Server)
		rules   string
		ask     string
		kept    int
		says    string
	}{
		"servers of another tenant are never theirs":   {servers: []func(*v1alpha1.Server){all(), all(), theirs, theirs, theirs}, says: never},
		"nor when they are ill besides":                {servers: []func(*v1alpha1.Server){all(), all(), all(theirs, ill)}, says: never},
		"one of their own tenant that is ill may heal": {servers: []func(*v1alpha1.Server){all(), all(), all(ours, ill)}, kept: 2},
		"one that is busy will be free":                {servers: []func(*v1alpha1.Server){all(), ours, busy}, kept: 2},
		"servers without a rack are no places": {servers: []func(*v1alpha1.Server){rack("r1"), rack("r2"), all(), all(), all(), all(), all()},
			ask: "spread: {key: rack}", says: never},
		"a third rack that is busy is one": {servers: []func(*v1alpha1.Server){rack("r1"), rack("r2"), all(rack("r3"), busy), all(), all()},
			ask: "spread: {key: rack}", kept: 2},
		"a policy that fails for one that is not needed": {servers: []func(*v1alpha1.Server){all(), all(), busy, all(busy, labelled("n", "x"))}, rules: fails, kept: 2},
		"a policy that fails for one that is busy":       {servers: []func(*v1alpha1.Server){all(), all(), all(busy, labelled("n", "x"))}, rules: fails, says: unknown},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			policy := bundled(t, c.rules, "tenancy-by-namespace")
			w.s.policy = func() (Policy, engine.Revision) { return policy, engine.Revision{Name: "another"} }
			for i, change := range c.servers {
				w.addServer(aServer(fmt.Sprintf("s%d", i), change))
			}
			for i := range 3 {
				w.addClaim(aClaim(fmt.Sprintf("db-%d", i), placed("gang: {name: db, size: 3}\n"+c.ask)))
			}
			w.now = w.now.Add(policies.GangPatience)
			w.deliver(len(w.events))
			w.tick()
			if got := len(w.s.fleet.Assumed()); got != c.kept {
				t.Errorf("%d are kept", got)
			}
			if v, _ := w.s.Verdict("uid-db-0"); !strings.Contains(v.Message, c.says) {
				t.Errorf("it is told %q", v.Message)
			}
			w.checkKept()
			w.checkMayBeKept(policy, c.ask == "")
		})
	}
}

// checkMayBeKept holds what is said of the servers that may be kept for the one gang of the world, before it is known, against those
// that are: these and perhaps others, or none but these.
func (w *world) checkMayBeKept(policy *selection.Policy, isExact bool) {
	w.t.Helper()
	var servers []v1alpha1.Server
	for _, s := range w.servers() {
		servers = append(servers, *s)
	}
	var members []why.Member
	for _, c := range w.claims() {
		members = append(members, why.Member{Claim: c})
	}
	told, err := why.MayBeKept(context.Background(), policy, w.quota, members, why.FleetOf(servers, nil, nil, w.now))
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	for server := range w.s.fleet.Assumed() {
		if told[server] == nil {
			w.t.Fatalf("server %s is kept, and told are %v", server, told)
		}
	}
	if isExact && len(told) != len(w.s.fleet.Assumed()) {
		w.t.Fatalf("kept are %v, and told are %v", w.s.fleet.Assumed(), told)
	}
}

// A policy that fails for some server is no fleet that has too few.
func TestAGangIsToldThatThePolicyFailsForAServerOfALaterAlternative(t *testing.T) {
	w := newWorld(t)
	policy := bundled(t, "reject contains {\"code\": \"n\", \"message\": \"m\"} if to_number(input.candidate.labels.n) > 5\n")
	w.s.policy = func() (Policy, engine.Revision) { return policy, engine.Revision{Name: "another"} }
	w.addServer(aServer("s0"))
	w.addServer(aServer("s1", labelled("n", "x")))
	for i := range 2 {
		w.addClaim(aClaim(fmt.Sprintf("db-%d", i), placed("gang: {name: db, size: 2}\nalternatives: [{where: server.name == 's0'}, {where: server.name == 's1'}]\n")))
	}
	w.deliver(len(w.events))
	w.tick()
	for _, uid := range []types.UID{"uid-db-0", "uid-db-1"} {
		const want = `gang "db": servers for 1 of its 2 members can be had now, 1 short; ` +
			"of some servers nobody knows whether it may have them: the policy cannot be evaluated: selection.rego:"
		if v, _ := w.s.Verdict(uid); v.Reason != v1alpha1.ReasonGangWaiting || !strings.HasPrefix(v.Message, want) || strings.Contains(v.Message, "s1") {
			t.Errorf("%s is told %s %q", uid, v.Reason, v.Message)
		}
	}
}

func TestAGangForWhichThePolicyFailsEverywhereIsToldSoOnce(t *testing.T) {
	w := newWorld(t)
	policy := bundled(t, "reject contains {\"code\": \"n\", \"message\": \"m\"} if to_number(input.candidate.labels.n) > 5\n")
	w.s.policy = func() (Policy, engine.Revision) { return policy, engine.Revision{Name: "another"} }
	w.addServer(aServer("s0", labelled("n", "x")))
	w.addServer(aServer("s1", labelled("n", "x")))
	w.addClaim(aClaim("db-0", inGang(2)))
	w.addClaim(aClaim("db-1", inGang(2)))
	w.deliver(len(w.events))
	w.tick()
	for _, uid := range []types.UID{"uid-db-0", "uid-db-1"} {
		v, _ := w.s.Verdict(uid)
		if strings.Count(v.Message, "cannot be evaluated") != 1 || !strings.HasSuffix(v.Message, "; 2 of 2 servers match: policy-error 2") {
			t.Errorf("%s is told %s %q", uid, v.Reason, v.Message)
		}
	}
}
