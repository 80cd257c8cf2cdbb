// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"slices"

	"github.com/metalaw/metalaw/engine"
)

// mostAttained bounds for how many questions it is remembered which servers a policy might ever allow, of 8 bytes for each server.
const mostAttained = 64

// attainments remembers which servers a policy might ever allow. That follows from its revision, what it asks of the claim, and the version of
// the server, so that it is found out once for each, and not each time that some server has changed. Only the loop uses it.
type attainments struct {
	revision engine.Revision
	known    map[string][]attainment
}

// attainment is what is known of one server, by number. Its stamp is that of the version in judgements; 0 where nothing is known.
type attainment struct {
	stamp uint32
	could bool
}

// of is what is known under a question of a revision, for servers with numbers below n.
func (a *attainments) of(revision engine.Revision, question string, n int) []attainment {
	if a.revision != revision || a.known == nil || len(a.known) >= mostAttained && a.known[question] == nil {
		a.revision, a.known = revision, map[string][]attainment{}
	}
	if each := a.known[question]; len(each) < n {
		a.known[question] = append(each, slices.Repeat([]attainment{{}}, n-len(each))...)
	}
	return a.known[question]
}
