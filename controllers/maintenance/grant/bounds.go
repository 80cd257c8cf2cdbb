// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"fmt"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// bound is a limit of the policy, or a budget of the FleetControl.
type bound struct {
	words string
	per   string
	// budget says that it counts servers in maintenance; a limit counts all that are down.
	budget bool
	// place is where a server counts; false where the bound does not cover it.
	place  func(*server) (string, bool)
	most   func(servers int) int
	shares map[string]*share
}

// share is how far a bound is used at one place.
type share struct{ servers, used, most int }

// countBounds counts, for each bound, the servers that use it up already.
func (x *pass) countBounds(list []server) {
	x.bounds = make([]bound, 0, len(x.policy.Limits)+len(x.Budgets))
	for i := range x.policy.Limits {
		l := &x.policy.Limits[i]
		x.bounds = append(x.bounds, bound{words: "limit " + l.Name, per: l.Per, most: l.Most.Of, place: func(s *server) (string, bool) {
			namespace := ""
			if s.Claim != nil {
				namespace = s.Claim.Namespace
			}
			return l.Place(s.Labels, s.Rack, namespace)
		}})
	}
	for i := range x.Budgets {
		b := &x.Budgets[i]
		x.bounds = append(x.bounds, bound{words: "budget " + b.Name, per: b.Per, most: b.Most, budget: true, place: func(s *server) (string, bool) {
			if !b.Covers(s.Labels) {
				return "", false
			}
			return s.Labels[b.Per], true
		}})
	}
	shares := make([]*share, len(list)*len(x.bounds))
	for i := range list {
		list[i].shares = shares[i*len(x.bounds) : (i+1)*len(x.bounds)]
	}
	for i := range x.bounds {
		x.bounds[i].count(i, list)
	}
}

func (b *bound) count(index int, list []server) {
	b.shares = map[string]*share{}
	for i := range list {
		s := &list[i]
		place, covers := b.place(s)
		if !covers {
			continue
		}
		of := b.shares[place]
		if of == nil {
			of = &share{}
			b.shares[place] = of
		}
		of.servers++
		if b.counts(s) {
			of.used++
		}
		s.shares[index] = of
	}
	for _, of := range b.shares {
		of.most = b.most(of.servers)
	}
}

// counts says that a server uses the bound up already, so that a maintenance of it adds nothing.
func (b *bound) counts(s *server) bool { return s.Holder != nil || (s.Down && !b.budget) }

// full is the first bound that one more maintenance would pass.
func (x *pass) full(s *server) Answer {
	for i := range x.bounds {
		b, of := &x.bounds[i], s.shares[i]
		if of == nil || b.counts(s) || of.used < of.most {
			continue
		}
		place, _ := b.place(s)
		where, verb := "", "be down"
		if b.per != "" {
			where = fmt.Sprintf(" (%s %s)", b.per, place)
		}
		if b.budget {
			verb = "be in maintenance"
		}
		return answer(v1alpha1.ReasonLimitReached, "The %s%s lets %d of %d servers %s, and as many are. The maintenance begins once one is back.",
			b.words, where, of.most, of.servers, verb)
	}
	return Answer{}
}

// take counts a server that is granted, or no longer.
func (x *pass) take(s *server, n int) {
	for i := range x.bounds {
		if of := s.shares[i]; of != nil && !x.bounds[i].counts(s) {
			of.used += n
		}
	}
}
