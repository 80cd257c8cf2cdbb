// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"maps"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/policies/index"
)

// shortage is what became of the search for servers that did not find one for every member.
type shortage struct {
	// found is for how many members there is a server, also those that had one before.
	found int
	// everyone are the members, steps what was decided for each.
	everyone []asking
	steps    []step
	// wanted are the servers that were found, by member; nil for none.
	wanted []*index.Entry
	// failed is why the policy could not be asked about the servers that members may have, unknown why it says nothing of some; empty
	// where it says something of all.
	failed, unknown string
}

// words are what a member is told: how many members can have servers, why none are kept for it, and what keeps the others of the fleet
// from it.
func (s *shortage) words(gang string, size, member, kept int, why string) step {
	todo := s.steps[member]
	if todo.action == refuse && !todo.count {
		return todo
	}
	if s.failed != "" { // how many could be had is not known
		todo = refusal(v1alpha1.ReasonGuardError, s.failed)
		todo.follows = true
		return todo
	}
	short := len(s.steps) - s.found
	text := fmt.Sprintf("gang %q: servers for %d of its %d members can be had now, %d short; ", gang, size-short, size, short)
	if kept > 0 {
		text += fmt.Sprintf("%d are kept free for it and count as claimed; ", kept)
	}
	if why != "" {
		text += why + "; "
	}
	if s.unknown != "" {
		text += "of some servers nobody knows whether it may have them: " + s.unknown + "; "
	}
	out := step{action: refuse, count: true, spec: todo.spec, rejected: todo.rejected, misplaced: todo.misplaced, unjudged: todo.unjudged,
		follows: todo.follows, gang: text}
	if first := s.first(member); first != nil {
		out.rejected, out.misplaced, out.unjudged = first.rejected, maps.Clone(first.misplaced), first.unjudged
		if out.misplaced == nil {
			out.misplaced = map[string]int{}
		}
		if kept == 0 {
			out.misplaced[placement.CodeGang] = first.allowed
		}
	}
	return out
}

// first is the choice that was made before any of the members that ask for the same had a server; nil where none was.
func (s *shortage) first(member int) *choice {
	var first *choice
	for i, todo := range s.steps {
		if s.everyone[i].class == s.everyone[member].class && todo.choice != nil && (first == nil || todo.choice.allowed > first.allowed) {
			first = todo.choice
		}
	}
	return first
}
