// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"fmt"
	"slices"

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
type share struct {
	servers, used, most int
	// by are the servers that use it.
	by map[*server]bool
	// sorted are their names; nil where they are to be sorted anew.
	sorted []string
}

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
			of = &share{by: map[*server]bool{}}
			b.shares[place] = of
		}
		of.servers++
		if b.counts(s) {
			of.use(s, 1)
		}
		s.shares[index] = of
	}
	for _, of := range b.shares {
		of.most = b.most(of.servers)
	}
}

// counts says that a server uses the bound up already, so that a maintenance of it adds nothing.
func (b *bound) counts(s *server) bool { return s.Holder != nil || (s.Down && !b.budget) }

// use counts a server that uses the share, or no longer.
func (of *share) use(s *server, n int) {
	of.used, of.sorted = of.used+n, nil
	if n > 0 {
		of.by[s] = true
	} else {
		delete(of.by, s)
	}
}

// names are the servers that use the share, in order.
func (of *share) names() []string {
	if of.sorted == nil {
		of.sorted = make([]string, 0, len(of.by))
		for s := range of.by {
			of.sorted = append(of.sorted, s.name)
		}
		slices.Sort(of.sorted)
	}
	return of.sorted
}

// full are the bounds that one more maintenance would pass, at most so many.
func (x *pass) full(s *server, most int) []Obstacle {
	var all []Obstacle
	for i := range x.bounds {
		b, of := &x.bounds[i], s.shares[i]
		if of != nil && !b.counts(s) && of.used >= of.most && len(all) < most {
			place, _ := b.place(s)
			all = append(all, b.filled(place, of))
		}
	}
	return all
}

// filled is a bound that is used up at a place.
func (b *bound) filled(place string, of *share) Obstacle {
	where, verb := "", "be down"
	if b.per != "" {
		where = fmt.Sprintf(" (%s %s)", b.per, place)
	}
	if b.budget {
		verb = "be in maintenance"
	}
	names := of.names()
	ends := "No maintenance begins until it allows one."
	if len(names) > 0 {
		ends = "The maintenance begins once one of these is back: " + some(names) + "."
	}
	return Obstacle{Servers: names, Answer: answer(v1alpha1.ReasonLimitReached, "The %s%s lets %d of %d servers %s. %s",
		b.words, where, of.most, of.servers, verb, ends)}
}

// take counts a server that is granted, or no longer.
func (x *pass) take(s *server, n int) {
	for i := range x.bounds {
		if of := s.shares[i]; of != nil && !x.bounds[i].counts(s) {
			of.use(s, n)
		}
	}
}
