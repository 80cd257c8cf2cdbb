// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// search looks for servers for the members of one gang.
type search struct {
	policy  *selection.Policy
	members []Member
	fleet   *Fleet
	// wanting are the members that have no server yet, by their number.
	wanting []int
	// refused is what no member can have, because the quota of their namespace leaves no room for them all.
	refused *Reason
}

// newSearch begins the search for the servers of members, who are of one namespace.
func newSearch(policy *selection.Policy, quota bundle.Quota, members []Member, f *Fleet) *search {
	s := &search{policy: policy, members: members, fleet: f}
	for i, m := range members {
		if f.own[keyOf(m.Claim)] == "" {
			s.wanting = append(s.wanting, i)
		}
	}
	if len(members) > 0 {
		if words := exceeds(quota, members[0].Claim, f, len(s.wanting)); words != "" {
			s.refused = &Reason{v1alpha1.ReasonQuotaExceeded, words, Namespace}
		}
	}
	return s
}

// exceeds says in words that the quota of a claim's namespace has no room for so many members of its gang more, or never has any for
// all of them; empty where it has.
func exceeds(quota bundle.Quota, c *v1alpha1.ServerClaim, f *Fleet, more int) string {
	if gang := policies.GangOf(c); gang != nil && more > 0 && c.Spec.ServerRef == nil {
		if words := quota.TooSmall(c.Namespace, gang.Size); words != "" {
			return fmt.Sprintf("gang %q: %s", gang.Name, words)
		}
	}
	return claims.QuotaExceeded(quota, c.Namespace, f.heldIn[c.Namespace], more)
}

// judge is what is to be said to a member in a fleet.
func (s *search) judge(ctx context.Context, member int, f *Fleet) (Answer, error) {
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

// answers are those of the members that have a server already; the others are still to be found.
func (s *search) answers() []Answer {
	all := make([]Answer, len(s.members))
	for i, m := range s.members {
		all[i] = Answer{Total: len(s.fleet.servers), Has: s.fleet.own[keyOf(m.Claim)]}
	}
	return all
}

// inOrder has members choose one after the other. It returns those that are left without a server.
func (s *search) inOrder(ctx context.Context, order []int) (Served, []int, error) {
	served := Served{Answers: s.answers(), After: s.fleet}
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

// inOtherOrders tries several orders, as the scheduler does: those with the fewest choices first, and then each time those first that
// were left without a server. Where none serves them all it returns nothing.
func (s *search) inOtherOrders(ctx context.Context, m *match) (Served, error) {
	order := slices.Clone(s.wanting)
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(m.choices(slices.Index(s.wanting, a)), m.choices(slices.Index(s.wanting, b)))
	})
	for range min(maxOrders, len(s.members)) {
		served, missing, err := s.inOrder(ctx, order)
		if err != nil || served.Complete {
			return served, err
		}
		order = slices.DeleteFunc(order, func(i int) bool { return slices.Contains(missing, i) })
		order = append(missing, order...)
	}
	return Served{}, nil
}

// asMatched has each member take the server that it is matched to, where there is one for each. What a policy that follows counts, or
// a spread that the matching did not know of, says meanwhile is asked anew.
func (s *search) asMatched(ctx context.Context, m *match) (Served, error) {
	servers, complete := m.solve()
	if !complete {
		return Served{}, nil
	}
	served := Served{Answers: s.answers(), After: s.fleet, Complete: true}
	for _, k := range m.Order(servers, m.counts) {
		i := s.wanting[k]
		a, err := s.judge(ctx, i, served.After)
		if err != nil || !a.take(m.names[servers[k]]) {
			return Served{}, err
		}
		served.Answers[i] = a
		served.After = served.After.Bind(s.members[i].Claim, m.names[servers[k]])
	}
	return served, nil
}

// take puts a server first that fits. It says whether it does.
func (a *Answer) take(name string) bool {
	at := slices.IndexFunc(a.Verdicts[:a.Fits], func(v Verdict) bool { return v.Name == name })
	if at < 0 || a.Failed != nil || a.Refused != nil {
		return false
	}
	taken := a.Verdicts[at]
	copy(a.Verdicts[1:at+1], a.Verdicts[:at])
	a.Verdicts[0] = taken
	for i := range a.Fits {
		a.Verdicts[i].Rank = i + 1
	}
	a.Verdicts[0].Later = false
	return true
}
