// SPDX-License-Identifier: Apache-2.0

package solve_test

import (
	"testing"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/index"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

const allowAll = "package metalaw.selection\n\nallow := true\n"

// server is a literal server of a fleet.
type server struct {
	selection.ServerState
	zone, rack string
	holder     claims.Holder
}

// free is a server that is Available and off, changed as the test says.
func free(name string, change ...func(*server)) server {
	s := server{ServerState: selection.ServerState{Name: name, Labels: map[string]string{"size": "m"}, State: "Available", Power: "Off"}}
	for _, f := range change {
		f(&s)
	}
	return s
}

func inRack(rack string) func(*server) { return func(s *server) { s.rack = rack } }

// Candidate implements index.Object.
func (s server) Candidate() selection.Candidate {
	return selection.Candidate{Name: s.Name, Labels: s.Labels, Taints: s.Taints, Health: "Unknown", Zone: s.zone, Rack: s.rack}
}

func fleetOf(servers []server) *index.Index {
	x := index.New()
	for _, s := range servers {
		r := index.Record{State: s.ServerState, Zone: s.zone, Rack: s.rack, Holder: s.holder, Known: true, Object: s}
		if s.Claimed {
			r.Counts = claims.Held{Servers: 1}
		}
		x.Put(r, true)
	}
	return x
}

// claim is a claim of the namespace team with a placement, changed as the test says.
func claim(t testing.TB, name, text string, change ...func(*claims.Claim)) *claims.Claim {
	t.Helper()
	c := claims.Claim{Key: claims.Key{Namespace: "team", Name: name}, UID: "uid-" + name, Open: true,
		Asked: selection.Claim{Namespace: "team", Name: name}}
	if text != "" {
		p, found := placement.Parse("placement", text)
		if err := found.Err(); err != nil {
			t.Fatal(err)
		}
		c.Placement = p
	}
	for _, f := range change {
		f(&c)
	}
	return claims.New(c)
}

func compiled(t testing.TB, text string) *selection.Policy {
	t.Helper()
	p, found := selection.Compile(map[string][]byte{"selection.rego": []byte(text)})
	if p == nil {
		t.Fatal(found)
	}
	return p
}

// question is what a test asks the solver.
type question struct {
	policy  *selection.Policy
	quota   bundle.Quota
	servers []server
	// others are claims that may matter to those that are asked about.
	others []*claims.Claim
}

// snapshot is the fleet of the question.
func (q question) snapshot() *solve.Snapshot {
	return &solve.Snapshot{Fleet: fleetOf(q.servers), Policy: q.policy, Quota: q.quota, Now: 1,
		Claims: func(string) []*claims.Claim { return q.others }}
}

// served is what becomes of claims that get servers together or not at all.
type served struct {
	answers  []solve.Answer
	complete bool
	// bound are the servers that they get.
	bound []string
}

func (q question) serve(t testing.TB, some ...*claims.Claim) served {
	t.Helper()
	got := served{complete: true}
	for _, r := range solve.Solve(t.Context(), q.snapshot(), some, solve.Want{Mode: solve.Reasons}) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		got.answers = append(got.answers, *r.Answer)
		got.complete = got.complete && r.Action != solve.Refuse && r.Action != solve.Again
		if r.Action == solve.Bind {
			got.bound = append(got.bound, r.Server)
		}
	}
	if best := solve.Solve(t.Context(), q.snapshot(), some, solve.Want{}); best[0].Action != solve.Refuse != got.complete {
		t.Errorf("the scheduler does %v, and the answer says that all get servers: %t", best[0].Action, got.complete)
	}
	return got
}
