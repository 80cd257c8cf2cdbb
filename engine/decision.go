// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"time"
)

// State is the name of a lifecycle state.
type State string

// Revision names the content that decided.
type Revision struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Digest  string `json:"digest"`
}

// MarkEffect is the engine's own effect: store a mark before the effect that follows may be carried out.
const MarkEffect = "Mark"

// Param is one typed parameter of an ensured effect.
type Param struct {
	Name  string
	Value Value
}

// Effect is one thing that must hold while a server is in a state.
type Effect struct {
	Name   string
	Params []Param
	// Earns are the marks, not stored yet, that the shell stores in the write that records its request for the effect.
	Earns []string
}

// MarkFirst is the effect that stores a mark.
func MarkFirst(mark string) Effect {
	return Effect{Name: MarkEffect, Params: []Param{{Name: "mark", Value: StringValue(mark)}}}
}

// Param returns the named parameter, or a Missing value.
func (e Effect) Param(name string) Value {
	for _, p := range e.Params {
		if p.Name == name {
			return p.Value
		}
	}
	return Value{}
}

// HaltCause says why a decision was halted.
type HaltCause string

const (
	// HaltUnknownState: the subject is in a state that the revision neither defines nor migrates.
	HaltUnknownState HaltCause = "UnknownState"
	// HaltGuardError: a guard could not be evaluated. An error is never false.
	HaltGuardError HaltCause = "GuardError"
	// HaltSafety: the move or effect would break a safety rule.
	HaltSafety HaltCause = "SafetyRule"
	// HaltInvariant: an invariant of the bundle does not hold.
	HaltInvariant HaltCause = "InvariantViolated"
)

// Halt says that nothing was decided, and why. Nothing moves and nothing is ensured.
type Halt struct {
	Cause HaltCause `json:"cause"`
	// Rule is the rule, effect or invariant at which evaluation stopped.
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// Awaited is an effect that waits until something is known or ready. Neither it nor any effect after it is ensured
// meanwhile.
type Awaited struct {
	// Effect is the effect that waits, and Rule the safety rule that it waits for.
	Effect  string `json:"effect"`
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// Decision is the outcome of one evaluation. It either moves (To != From), or ensures effects, or is halted.
type Decision struct {
	From, To State
	// Rule is the exit or interrupt that fired; empty when nothing moves.
	Rule string
	// Message is what the state entered, or the state kept, means.
	Message string
	// Clears and Marks are the marks that the move takes away and adds.
	Clears, Marks []string
	// Retry says that the move counts as a retry; ResetRetries that the state entered is stable and resets the count.
	Retry, ResetRetries bool
	// Stable says that the state kept or entered is one in which a server may rest.
	Stable bool
	// Effects is what must hold now, in order. Empty when the decision moves or is halted. Decisions share it, so nothing may change it.
	Effects []Effect
	// Awaits is the effect at which Effects ends because it cannot be told yet whether it may be ensured; nil where
	// nothing waits.
	Awaits *Awaited
	// WakeAfter is when the passing of time alone may change the decision; 0 means never.
	WakeAfter time.Duration
	// Deadline and DeadlineRule name the earliest exit by time that is still ahead; 0 where there is none.
	Deadline     time.Duration
	DeadlineRule string
	// Groups are the fact groups that the rule which fired reads.
	Groups   []string
	Halt     *Halt
	Revision Revision
	// Trace is filled only when it was asked for.
	Trace Trace
}

// Moves says whether the decision changes the state.
func (d Decision) Moves() bool { return d.Halt == nil && d.To != d.From }

// MarksAfter are the marks after a move, sorted, so that the same set is always the same list.
func (d Decision) MarksAfter(marks []string) []string {
	var after []string
	for _, m := range marks {
		if !slices.Contains(d.Clears, m) {
			after = append(after, m)
		}
	}
	for _, m := range d.Marks {
		if !slices.Contains(after, m) {
			after = append(after, m)
		}
	}
	slices.Sort(after)
	return after
}

// Reads says whether the rule that fired reads a group of facts.
func (d Decision) Reads(group string) bool { return slices.Contains(d.Groups, group) }

// Trace lists the guards that were evaluated, in order.
type Trace []TraceStep

// TraceStep is one guard as it was evaluated.
type TraceStep struct {
	// Kind is "interrupt", "exit", "ensure", "invariant" or "safety".
	Kind  string `json:"kind"`
	Rule  string `json:"rule"`
	Guard string `json:"guard"`
	// Result is "true", "false", "error" or "waiting" (its time has not come).
	Result string `json:"result"`
	// Atoms are the named facts that the guard consulted, with their values.
	Atoms map[string]string `json:"atoms,omitempty"`
	// Remaining is how long a waiting exit has still to wait.
	Remaining time.Duration `json:"remaining,omitempty"`
	Error     string        `json:"error,omitempty"`
}
