// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

// The reasons of the condition Bound that a Refusal has. They are those of the API.
const (
	ReasonPending          = "Pending"
	ReasonNoServers        = "NoServers"
	ReasonNoneClaimable    = "NoneClaimable"
	ReasonPolicyRejected   = "PolicyRejected"
	ReasonServerNotFound   = "ServerNotFound"
	ReasonServerTaken      = "ServerTaken"
	ReasonInvalidSelector  = "InvalidSelector"
	ReasonGuardError       = "GuardError"
	ReasonQuotaExceeded    = claims.ReasonQuotaExceeded
	ReasonInvalidPlacement = claims.ReasonInvalidPlacement
	ReasonGangWaiting      = claims.ReasonGangWaiting
)

// Message is a Refusal in the words of the condition Bound. It carries codes and counts, and no names of servers or of other claims.
type Message struct {
	Reason, Message string
	// Counts are the rejections by code.
	Counts map[string]int
}

// Tallies remembers the counts of the fleet for claims that ask for the same.
type Tallies map[string]tally

// tally counts the fleet for one claim.
type tally struct {
	total, matching int
	byCode          map[string]int
}

// String is like "12 of 40 servers match: rack full 7, memory 5", the most frequent code first.
func (t tally) String() string {
	return countWords(fmt.Sprintf("%d of %d servers match", t.matching, t.total), t.byCode)
}

// countWords adds counts by code to a text, the most frequent first.
func countWords(text string, byCode map[string]int) string {
	codes := slices.SortedFunc(maps.Keys(byCode), func(a, b string) int {
		return cmp.Or(cmp.Compare(byCode[b], byCode[a]), cmp.Compare(a, b))
	})
	parts := make([]string, len(codes))
	for i, code := range codes {
		parts[i] = fmt.Sprintf("%s %d", code, byCode[code])
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// Message puts a refusal into words. Where the counts of the fleet give them, they are counted now.
func (s *Snapshot) Message(c *claims.Claim, r Refusal, memo Tallies) Message {
	if !r.Count {
		return Message{Reason: r.Reason, Message: r.Message}
	}
	t, ok := memo[c.Contract()]
	if !ok {
		t.total, t.matching, t.byCode = s.Fleet.Tally(c.Spec)
		memo[c.Contract()] = t
	}
	m := noServer(c.Spec.ServerRef != "", t, r)
	if m.Reason == ReasonServerTaken {
		e := s.Fleet.Get(c.Spec.ServerRef)
		switch {
		case r.LeftOut != "":
			m.Reason = ReasonNoneClaimable
			m.Message = "the server that spec.serverRef names is not free, and would not be given to this claim if it were: " + r.LeftOut
		case e != nil && e.Holder.Kept:
			m.Message = fmt.Sprintf("the claim that held the server %q has ended, and its data is kept (reclaimPolicy Retain) until it is given up. "+
				"This claim may get the server once it is wiped; ask an operator of the fleet", e.Name())
		}
	}
	if r.Gang != "" {
		m.Reason, m.Message = ReasonGangWaiting, r.Gang+m.Message
	}
	return m
}

// noServer is the message for a claim that the hard contract, its placement or the policy left without a server.
func noServer(named bool, t tally, r Refusal) Message {
	reason := reasonOf(named, t, r)
	if len(r.Rejected)+len(r.Misplaced)+r.Unjudged > 0 && t.matching > 0 {
		t.byCode = sum(t.byCode, r.Rejected, r.Misplaced)
		if r.Unjudged > 0 {
			t.byCode[selection.CodePolicyError] += r.Unjudged
		}
	}
	message := t.String()
	switch reason {
	case ReasonGuardError:
		if r.Unknown != "" { // the words for a gang have it already
			message += "; " + r.Unknown
		}
	case ReasonServerTaken:
		message = "the server that spec.serverRef names is held by another claim; " +
			"this claim gets it once that one has ended and the server is Available"
	}
	return Message{Reason: reason, Message: message, Counts: t.byCode}
}

func reasonOf(named bool, t tally, r Refusal) string {
	switch {
	case named && t.byCode[selection.CodeClaimed] > 0:
		return ReasonServerTaken
	case t.matching == 0:
		return ReasonNoServers
	case r.Unjudged > 0 && !mayPass(t.byCode, r): // nothing else is to be waited for
		return ReasonGuardError
	case len(r.Rejected) > 0 && r.Misplaced[placement.CodeSpread] == 0: // the policy was not asked about what the spread leaves out
		return ReasonPolicyRejected
	default:
		return ReasonNoneClaimable
	}
}

// mayPass says that some server may be had without an operator: once it is ready or another claim ends, or the policy thinks otherwise
// of it.
func mayPass(byCode map[string]int, r Refusal) bool {
	for _, counts := range []map[string]int{byCode, r.Misplaced} {
		for code, n := range counts {
			if passing := PassingOf(code); n > 0 && (passing == ByItself || passing == ByOthers) {
				return true
			}
		}
	}
	return len(r.Rejected) > 0
}
