// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"slices"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/matching"
	"github.com/metalaw/metalaw/engine/selection"
)

// serving is the search for servers for the members of one gang.
type serving struct {
	policy  *selection.Policy
	members []Member
	fleet   *Fleet
	// refused is what no member can have, because the quota of their namespace leaves no room for them all.
	refused *Reason
}

// serve begins the search for the servers of members, who are of one namespace.
func serve(policy *selection.Policy, quota bundle.Quota, members []Member, f *Fleet) *serving {
	s := &serving{policy: policy, members: members, fleet: f}
	if len(members) > 0 {
		namespace := members[0].Claim.Namespace
		if words := quota.Exceeded(namespace, f.heldIn[namespace], len(members)); words != "" {
			s.refused = &Reason{v1alpha1.ReasonQuotaExceeded, words, Namespace}
		}
	}
	return s
}

// judge is what is to be said to a member in a fleet.
func (s *serving) judge(ctx context.Context, member int, f *Fleet) (Answer, error) {
	m := s.members[member]
	a, err := Judge(ctx, s.policy, m.Claim, m.Priority, f)
	if err != nil {
		return Answer{}, err
	}
	if s.refused != nil {
		a.Refused = s.refused
	}
	return a, nil
}

// inOrder has the members choose one after the other. It returns those that are left without a server, the first one first.
func (s *serving) inOrder(ctx context.Context, order []int) (Served, []int, error) {
	served := Served{Answers: make([]Answer, len(s.members)), After: s.fleet}
	var missing []int
	for _, i := range order {
		a, err := s.judge(ctx, i, served.After)
		if err != nil {
			return Served{}, nil, err
		}
		served.Answers[i] = a
		if taken, ok := a.Taken(); ok {
			served.After = served.After.Bind(s.members[i].Claim, taken.Name)
		} else {
			missing = append(missing, i)
		}
	}
	if served.Complete = len(missing) == 0; !served.Complete {
		served.After = s.fleet
	}
	return served, missing, nil
}

// maxOrders bounds how often servers are looked for in another order; it is the scheduler's.
const maxOrders = 8

// inOtherOrders goes on from what was found in an order: each time the first member that was left without a server chooses first.
// Where none serves them all it returns that which serves most.
func (s *serving) inOtherOrders(ctx context.Context, order []int, best Served, missing []int) (Served, error) {
	least := len(missing)
	for range min(maxOrders, len(s.members)) - 1 {
		order = slices.DeleteFunc(order, func(i int) bool { return i == missing[0] })
		order = slices.Insert(order, 0, missing[0])
		var served Served
		var err error
		if served, missing, err = s.inOrder(ctx, order); err != nil || served.Complete {
			return served, err
		}
		if len(missing) < least {
			best, least = served, len(missing)
		}
	}
	return best, nil
}

// matched finds a server for each member wherever there is a way. Each then chooses among what is free and not meant for another.
func (s *serving) matched(ctx context.Context) (Served, error) {
	meant, complete, err := s.match(ctx)
	if err != nil || !complete {
		return Served{}, err
	}
	served := Served{Answers: make([]Answer, len(s.members)), Complete: true}
	for i := range s.members {
		a, err := s.judge(ctx, i, s.fleet.bindAll(s.holding(meant, i)))
		if err != nil {
			return Served{}, err
		}
		served.Answers[i] = a
		taken, ok := a.Taken()
		if !ok { // by a policy that follows counts
			return Served{}, nil
		}
		meant[i] = taken.Name
	}
	served.After = s.fleet.bindAll(s.holding(meant, matching.None))
	return served, nil
}

// holding are all members but one, by the names of their servers.
func (s *serving) holding(servers []string, but int) map[string]*v1alpha1.ServerClaim {
	claims := make(map[string]*v1alpha1.ServerClaim, len(servers))
	for i, name := range servers {
		if i != but {
			claims[name] = s.members[i].Claim
		}
	}
	return claims
}

// match gives each member the name of a server of its own, of those that it could have by itself.
func (s *serving) match(ctx context.Context) (servers []string, complete bool, err error) {
	problem := matching.Problem{Ranked: make([][]int, len(s.members))}
	numbers := map[string]int{}
	var names []string
	for i := range s.members {
		a, err := s.judge(ctx, i, s.fleet)
		if err != nil {
			return nil, false, err
		}
		for _, v := range a.Verdicts[:a.Fits] {
			n, known := numbers[v.Name]
			if !known {
				n, numbers[v.Name] = len(names), len(names)
				names = append(names, v.Name)
			}
			problem.Ranked[i] = append(problem.Ranked[i], n)
		}
	}
	problem.Servers = len(names)
	numbered, complete := problem.Solve()
	if !complete {
		return nil, false, nil
	}
	for _, n := range numbered {
		servers = append(servers, names[n])
	}
	return servers, true, nil
}
