// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/selection"
)

// mostAttained bounds how many attainments are remembered, of 4 bytes each: those of 400 questions about 10,000 servers.
const mostAttained = 4 << 20

// attainments remembers which servers a policy might ever allow. That follows from its revision, what it asks of the claim, and the version of
// the server, so that it is found out once for each, and not each time that some server has changed. Only the loop uses it.
type attainments struct {
	revision engine.Revision
	// known is by question, and by number of the server.
	known map[string][]attainment
}

// of are those of a question of a revision, for servers with numbers below n, to be read and written until it is called again.
func (a *attainments) of(revision engine.Revision, question string, n int) []attainment {
	if a.revision != revision || a.known == nil {
		a.revision, a.known = revision, map[string][]attainment{}
	}
	each := a.known[question]
	if len(each) < n {
		each = append(each, make([]attainment, n-len(each))...)
	}
	a.known[question] = each
	for other := range a.known { // in no order: where claims ask more than there is room for, in turn, some of it is still known
		if len(a.known)*n <= mostAttained {
			break
		}
		if other != question {
			delete(a.known, other)
		}
	}
	return each
}

// attainment is what is known of one version of a server: the stamp of that in judgements, and in the last bit whether the policy turns it
// away; 0 where nothing is known.
type attainment uint32

// attainmentOf is what is to be remembered. That the rules fail is not: what they read of the fleet may be another the next time.
func attainmentOf(is selection.Attainment, stamp uint32) attainment {
	switch is {
	case selection.Attained:
		return attainment(stamp << 1)
	case selection.TurnedAway:
		return attainment(stamp<<1 | 1)
	default:
		return 0
	}
}

// at is what is known of the version with a stamp.
func (a attainment) at(stamp uint32) selection.Attainment {
	switch uint32(a) {
	case stamp << 1:
		return selection.Attained
	case stamp<<1 | 1:
		return selection.TurnedAway
	default:
		return selection.Unsure
	}
}
