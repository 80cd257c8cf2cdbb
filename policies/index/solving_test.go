// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"context"
	"slices"
	"testing"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
)

// The solver is asked here about objects of the API.
type (
	Verdict = solve.Verdict
	Reason  = solve.Reason
	Answer  = solve.Answer
)

// Member is a claim with its granted priority.
type Member struct {
	Claim    *v1alpha1.ServerClaim
	Priority int64
}

func (m Member) ask(now time.Time) *claims.Claim {
	c := policies.ClaimOf(m.Claim, bundle.Priority{}, now)
	c.Asked.Priority = m.Priority
	return c
}

// Fleet is what was read, with the claims that got servers since.
type Fleet struct {
	servers     []v1alpha1.Server
	inventories []policyv1alpha1.ServerInventory
	claims      []*claims.Claim
	now         time.Time
	bound       []solve.Result
}

func FleetOf(servers []v1alpha1.Server, inventories []policyv1alpha1.ServerInventory, all []v1alpha1.ServerClaim, now time.Time) *Fleet {
	f := &Fleet{servers: servers, inventories: inventories, now: now}
	for i := range all {
		f.claims = append(f.claims, policies.ClaimOf(&all[i], bundle.Priority{}, now))
	}
	return f
}

func (f *Fleet) snapshot(policy *selection.Policy, quota bundle.Quota) *solve.Snapshot {
	s := index.SnapshotOf(f.servers, f.inventories, f.claims, f.now)
	if s.Quota = quota; policy != nil {
		s.Policy = policy
	}
	var bound []solve.Result
	for _, r := range f.bound {
		r.Entry = s.Fleet.Get(r.Server)
		bound = append(bound, r)
	}
	s.Bind(bound)
	return s
}

// Bind is the fleet once a claim has a server.
func (f *Fleet) Bind(c *v1alpha1.ServerClaim, name string) *Fleet {
	after := *f
	after.bound = append(slices.Clone(f.bound), solve.Result{Claim: Member{Claim: c}.ask(f.now), Action: solve.Bind, Server: name})
	return &after
}

func (f *Fleet) claimed() int64 { return f.snapshot(nil, bundle.Quota{}).Fleet.Counts(0).Claimed }

// Served is what becomes of claims that get servers together or not at all.
type Served struct {
	Answers  []Answer
	Complete bool
	After    *Fleet
}

func Serve(ctx context.Context, policy *selection.Policy, quota bundle.Quota, members []Member, f *Fleet) (Served, error) {
	var asks []*claims.Claim
	for _, m := range members {
		asks = append(asks, m.ask(f.now))
	}
	served, after := Served{Complete: true, After: f}, *f
	after.bound = slices.Clone(f.bound)
	for _, r := range solve.Solve(ctx, f.snapshot(policy, quota), asks, solve.Want{Mode: solve.Reasons}) {
		if r.Err != nil {
			return Served{}, r.Err
		}
		served.Answers = append(served.Answers, *r.Answer)
		served.Complete = served.Complete && r.Action != solve.Refuse && r.Action != solve.Again
		if r.Action == solve.Bind {
			after.bound = append(after.bound, r)
		}
	}
	if served.Complete {
		served.After = &after
	}
	return served, nil
}

func Judge(ctx context.Context, policy *selection.Policy, c *v1alpha1.ServerClaim, priority int64, f *Fleet) (Answer, error) {
	served, err := Serve(ctx, policy, bundle.Quota{}, []Member{{c, priority}}, f)
	if err != nil {
		return Answer{}, err
	}
	return served.Answers[0], nil
}

func Missing(quota bundle.Quota, some, others []*v1alpha1.ServerClaim, f *Fleet) string {
	with := *f
	with.claims = nil
	for _, c := range others {
		with.claims = append(with.claims, Member{Claim: c}.ask(f.now))
	}
	var asks []*claims.Claim
	for _, c := range some {
		asks = append(asks, Member{Claim: c}.ask(f.now))
	}
	return solve.Missing(with.snapshot(nil, quota), asks)
}

// fitOf is what the fleet, in any state, has for a claim.
func fitOf(ctx context.Context, fleet *index.Index, policy solve.Policy, c *v1alpha1.ServerClaim) (solve.Fit, error) {
	ask := policies.ClaimOf(c, bundle.Priority{Max: 10}, time.Time{})
	r := solve.Solve(ctx, &solve.Snapshot{Fleet: fleet.Index, Policy: policy}, []*claims.Claim{ask}, solve.Want{Mode: solve.FirstFit})[0]
	if r.Err != nil {
		return solve.Fit{}, r.Err
	}
	return *r.Fit, nil
}

func judged(t testing.TB, fleet *index.Index, policy solve.Policy, c *v1alpha1.ServerClaim) solve.Fit {
	t.Helper()
	a, err := fitOf(t.Context(), fleet, policy, c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func compiled(t *testing.T, text string) *selection.Policy {
	t.Helper()
	p, found := selection.Compile(map[string][]byte{"selection.rego": []byte(text)})
	if p == nil {
		t.Fatal(found)
	}
	return p
}
