// SPDX-License-Identifier: Apache-2.0

package verify

import "github.com/metalaw/metalaw/engine/diag"

// The codes of findings. They are stable.
const (
	CodeSafetyEffect    = "safety-effect"
	CodeSafetyMove      = "safety-move"
	CodeInvariant       = "invariant-violated"
	CodeUnreachable     = "state-unreachable"
	CodeDeadEnd         = "state-dead-end"
	CodeNeverFires      = "rule-never-fires"
	CodeLivelock        = "livelock"
	CodeToItself        = "exit-to-itself"
	CodeAlwaysTrue      = "guard-always-true"
	CodeGuardError      = "guard-error"
	CodeNeverEnsured    = "effect-never-ensured"
	CodeUnused          = "definition-unused"
	CodeDeadlineTooLate = "deadline-too-late"
	CodeOrderDecides    = "order-decides"
	CodeUndecided       = "verify-undecided"
)

// Code is what a finding's code means.
type Code struct {
	Code     string
	Severity diag.Severity
	Doc      string
}

// Codes lists every code with its usual severity, for the reference page.
func Codes() []Code {
	return []Code{
		{CodeSafetyEffect, diag.Error, "An effect can be wanted where a safety rule forbids it: the server would be halted there."},
		{CodeSafetyMove, diag.Error, "A rule can fire where a safety rule forbids to enter its target or to clear a mark: " +
			"the server would be halted there."},
		{CodeInvariant, diag.Error, "Facts exist by which an invariant of the bundle does not hold."},
		{CodeUnreachable, diag.Error, "No rule that can fire leads to the state. " +
			"A warning where servers are adopted into it from another operator."},
		{CodeDeadEnd, diag.Error, "No rule that can fire leads out of the state, or none of the ways out of a state that is not stable " +
			"leads to a stable one."},
		{CodeNeverFires, diag.Error, "No facts make the rule fire: its guard is never true, or earlier rules always fire instead."},
		{CodeLivelock, diag.Error, "Moves lead round and round while nothing outside changes and no time passes."},
		{CodeToItself, diag.Error, "An exit leads to its own state: where it is taken nothing moves, and nothing is ensured either."},
		{CodeAlwaysTrue, diag.Warning, "The guard is true whenever it is asked: what comes after it is never reached, or the guard can be left out."},
		{CodeGuardError, diag.Warning, "Facts exist by which a guard is an error, such as a division by zero: the server would be halted there."},
		{CodeNeverEnsured, diag.Warning, "No facts make the state want the effect."},
		{CodeUnused, diag.Warning, "No guard uses the definition."},
		{CodeDeadlineTooLate, diag.Warning, "The state is always left before the deadline: another exit without a guard has a shorter one."},
		{CodeOrderDecides, diag.Info, "Two exits of a state to different targets can hold at once; the first is taken."},
		{CodeUndecided, diag.Error, "Something could not be decided; what the report does not say is no proof."},
	}
}
