// SPDX-License-Identifier: Apache-2.0

package verify

// The codes of findings. They are stable, and documented in engine/diag.
const (
	CodeSafetyEffect      = "safety-effect"
	CodeSafetyMove        = "safety-move"
	CodeSafetyStay        = "safety-stay"
	CodeInvariant         = "invariant-violated"
	CodeUnreachable       = "state-unreachable"
	CodeDeadEnd           = "state-dead-end"
	CodeNeverFires        = "rule-never-fires"
	CodeLivelock          = "livelock"
	CodeToItself          = "exit-to-itself"
	CodeQuarrel           = "effects-quarrel"
	CodeAlwaysTrue        = "guard-always-true"
	CodeGuardError        = "guard-error"
	CodeNeverEnsured      = "effect-never-ensured"
	CodeUnused            = "definition-unused"
	CodeDeadlineTooLate   = "deadline-too-late"
	CodeRetriesNotGrown   = "retries-never-grow"
	CodeDestination       = "operation-destination"
	CodeOperationUnlisted = "operation-unlisted"
	CodeOperationIdle     = "operation-idle"
	CodeMarkForfeited     = "mark-given-up"
	CodeInitialGuarded    = "initial-guarded"
	CodeMigrateUnguarded  = "migrate-unguarded"
	CodeOrderDecides      = "order-decides"
	CodeUndecided         = "verify-undecided"
	CodeNotProven         = "verify-not-proven"
)
