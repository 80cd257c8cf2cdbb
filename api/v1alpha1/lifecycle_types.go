// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LifecycleStatus is the manager's record of a server's lifecycle.
type LifecycleStatus struct {
	// revision names the PolicyRevision that governs the server.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision,omitempty"`
	// entry counts the moves so far; a report or proof belongs to one entry and never satisfies another.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Entry int64 `json:"entry,omitempty"`
	// enteredAt is when the present state was entered.
	// +optional
	EnteredAt metav1.MicroTime `json:"enteredAt,omitzero"`
	// enteredCounted is enteredAt in counted time, which no step of a clock changes.
	// +optional
	EnteredCounted metav1.Duration `json:"enteredCounted,omitzero"`
	// seenOnAt is when the BMC first showed the machine on in the present entry. Until then nobody's report is taken for that
	// of something which runs on it.
	// +optional
	SeenOnAt *metav1.MicroTime `json:"seenOnAt,omitempty"`
	// seenOnCounted is seenOnAt in counted time.
	// +optional
	SeenOnCounted metav1.Duration `json:"seenOnCounted,omitzero"`
	// bootedAt is when the BMC first showed on, in the present entry, a machine that was asked to boot what the entry prepared.
	// Without it a machine that is on was switched on by somebody else, and runs what it found.
	// +optional
	BootedAt *metav1.MicroTime `json:"bootedAt,omitempty"`
	// retries counts the exits marked as a retry since the server last rested in a stable state.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Retries int32 `json:"retries,omitempty"`
	// restoredInspection is custody.doubt.inspectSince of the ServerInventory for which an inspection was begun last.
	// +optional
	RestoredInspection *metav1.MicroTime `json:"restoredInspection,omitempty"`
	// marks are the facts of the past that cannot be observed, such as Managed and Dirty.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Marks []string `json:"marks,omitempty"`
	// rule is the rule of the last move.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Rule string `json:"rule,omitempty"`
	// credential is what the agent of the present entry has to show.
	// +optional
	Credential *ProbeCredential `json:"credential,omitempty"`
	// clock is the counted time of the present entry; it is there only where time had to be left out.
	// +optional
	Clock *DeadlineClock `json:"clock,omitempty"`
	// request is the last power change that was asked of the BMC. It is stored before the BMC is asked, so that a manager
	// that comes after does not ask again for what may have been done.
	// +optional
	Request *PowerRequest `json:"request,omitempty"`
	// begun is when each kind of power change was last asked of the BMC, by a request or by an operation. It is stored with
	// the request or operation itself, and outlives it: budgets count from here.
	// +optional
	// +listType=map
	// +listMapKey=action
	// +kubebuilder:validation:MaxItems=8
	Begun []BegunAction `json:"begun,omitempty"`
	// halts says under which policy revisions the server was halted last, one entry for each revision, the newest last. It
	// outlives the halt: what a canary has cost is counted from here.
	// +optional
	// +listType=map
	// +listMapKey=revision
	// +kubebuilder:validation:MaxItems=4
	Halts []LifecycleHalt `json:"halts,omitempty"`
	// history lists the last moves, the newest last.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	History []LifecycleMove `json:"history,omitempty"`
}

// LifecycleHalt is the last halt of a server under one policy revision.
type LifecycleHalt struct {
	// revision names the PolicyRevision.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision,omitempty"`
	// at is when the server was halted.
	// +required
	At metav1.MicroTime `json:"at,omitzero"`
}

// maxHalts is how many revisions LifecycleStatus.Halts tells of.
const maxHalts = 4

// Halt notes that the server was halted under the revision that governs it.
func (l *LifecycleStatus) Halt(at metav1.MicroTime) {
	if l.Revision == "" {
		return
	}
	l.Halts = slices.DeleteFunc(l.Halts, func(h LifecycleHalt) bool { return h.Revision == l.Revision })
	l.Halts = append(l.Halts, LifecycleHalt{Revision: l.Revision, At: at})
	l.Halts = slices.Clone(l.Halts[max(0, len(l.Halts)-maxHalts):])
}

// BegunAction is when one kind of power change was last asked of the BMC.
type BegunAction struct {
	// action is what budgets call it.
	// +required
	// +kubebuilder:validation:Enum=ForcedOff;PowerCycle;PowerOn
	Action string `json:"action,omitempty"`
	// at is when it was recorded, just before the BMC was asked.
	// +required
	At metav1.MicroTime `json:"at,omitzero"`
	// counted is at in counted time.
	// +optional
	Counted metav1.Duration `json:"counted,omitzero"`
}

// Begin notes that a kind of power change is about to be asked of the BMC.
func (l *LifecycleStatus) Begin(action string, at metav1.MicroTime, counted metav1.Duration) {
	for i := range l.Begun {
		if l.Begun[i].Action == action {
			l.Begun[i].At, l.Begun[i].Counted = at, counted
			return
		}
	}
	l.Begun = append(l.Begun, BegunAction{Action: action, At: at, Counted: counted})
}

// PowerAction is a power change, in the words of Redfish's ResetType.
// +kubebuilder:validation:Enum=On;GracefulShutdown;ForceOff
type PowerAction string

const (
	// PowerActionOn switches the machine on.
	PowerActionOn PowerAction = "On"
	// PowerActionGracefulShutdown asks the operating system to shut down.
	PowerActionGracefulShutdown PowerAction = "GracefulShutdown"
	// PowerActionForceOff cuts the power.
	PowerActionForceOff PowerAction = "ForceOff"
)

// PowerRequest is a power change that was asked of a BMC.
type PowerRequest struct {
	// action is what was asked for.
	// +required
	Action PowerAction `json:"action,omitempty"`
	// askedAt is when the request was recorded, just before the BMC was asked.
	// +required
	AskedAt metav1.MicroTime `json:"askedAt,omitzero"`
	// askedCounted is askedAt in counted time.
	// +optional
	AskedCounted metav1.Duration `json:"askedCounted,omitzero"`
	// entry is the entry in which it was recorded; a request of a former one was made for another reason.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Entry int64 `json:"entry,omitempty"`
	// attempts counts the power-ons of this entry that did not show, this one included; the pause before the next grows with it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Attempts int32 `json:"attempts,omitempty"`
	// uncounted says that budgets of forced power-offs do not count the request: the machine ran an agent that the manager had
	// booted, and nothing else since.
	// +optional
	Uncounted bool `json:"uncounted,omitempty"`
	// unasked says of a power-off that the machine ran without a power-on which the manager had asked for.
	// +optional
	Unasked bool `json:"unasked,omitempty"`
	// shownAt is when the BMC first showed what was asked for.
	// +optional
	ShownAt *metav1.MicroTime `json:"shownAt,omitempty"`
	// refusal is what the BMC said when it last refused this power change in this entry, in its own words.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Refusal string `json:"refusal,omitempty"`
	// refusals counts how often in a row it was refused with that.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Refusals int32 `json:"refusals,omitempty"`
	// refusedAt is when the BMC refused this very request; absent where it did not, or where that is not known yet.
	// +optional
	RefusedAt *metav1.MicroTime `json:"refusedAt,omitempty"`
}

// ProbePurpose is what an agent was booted for.
// +kubebuilder:validation:Enum=Probe;Wipe
type ProbePurpose string

const (
	// ProbePurposeProbe is an agent that reports the hardware.
	ProbePurposeProbe ProbePurpose = "Probe"
	// ProbePurposeWipe is an agent that erases the disks and reports it.
	ProbePurposeWipe ProbePurpose = "Wipe"
)

// ProbeCredential is what an agent has to show: a token minted for one server, one purpose and one entry.
type ProbeCredential struct {
	// purpose is what the token may be used for.
	// +required
	Purpose ProbePurpose `json:"purpose,omitempty"`
	// entry is the lifecycle entry for which the token was minted.
	// +required
	// +kubebuilder:validation:Minimum=0
	Entry int64 `json:"entry"`
	// tokenHash is the SHA-256 of the token in lower-case hex; the token itself is stored nowhere but in the ignition.
	// +required
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=64
	TokenHash string `json:"tokenHash,omitempty"`
}

// DeadlineClock counts the time of an entry without the time in which the server was held back.
type DeadlineClock struct {
	// counted is the time that counts against deadlines, up to asOf.
	// +required
	Counted metav1.Duration `json:"counted"`
	// asOf is when counted was computed.
	// +required
	AsOf metav1.MicroTime `json:"asOf,omitzero"`
	// asOfCounted is asOf in counted time.
	// +optional
	AsOfCounted metav1.Duration `json:"asOfCounted,omitzero"`
	// held says that time since asOf does not count.
	// +optional
	Held bool `json:"held,omitempty"`
	// reason says in one word why time does not count.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`
}

// LifecycleMove is one move of a server.
type LifecycleMove struct {
	// from is the state left; empty for the first move.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	From ServerState `json:"from,omitempty"`
	// to is the state entered.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	To ServerState `json:"to,omitempty"`
	// rule is the rule that moved the server.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Rule string `json:"rule,omitempty"`
	// entry is the lifecycle entry that began with this move.
	// +required
	// +kubebuilder:validation:Minimum=0
	Entry int64 `json:"entry"`
	// at is when the server moved.
	// +required
	At metav1.MicroTime `json:"at,omitzero"`
	// counted is at in counted time.
	// +optional
	Counted metav1.Duration `json:"counted,omitzero"`
	// revision names the PolicyRevision that decided.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision,omitempty"`
	// by is who forced the move; empty where a rule made it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by,omitempty"`
	// reason is why the move was made that no rule of the policy made: why it was forced, or why another revision took over.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// overrides are the safety rules that a forced move set aside, because whoever forced it asked for that as well.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Overrides []string `json:"overrides,omitempty"`
	// uncounted says that the breaker does not count the move: it was made for storage alone that no disk of the kernel shows.
	// +optional
	Uncounted bool `json:"uncounted,omitempty"`
}

// RuleForced is the rule of a move that somebody forced past the rules of the policy.
const RuleForced = "Forced"

// RuleRestored is the rule of a move that has a server inspected which is in doubt since the cluster's store was restored.
const RuleRestored = "RestoredInspection"

// RuleAdopted is the rule of an entry in which a server was taken over in the state that it had: nothing happened to the
// machine.
const RuleAdopted = "Adopted"

// RuleEntryVoided is the rule of the move that ends an entry for which two agents with different keys reported.
const RuleEntryVoided = "EntryVoided"

// OperationState is how far an operation has come.
// +kubebuilder:validation:Enum=Pending;InProgress;Succeeded;Failed;Refused
type OperationState string

const (
	// OperationPending is recorded; nothing was done yet.
	OperationPending OperationState = "Pending"
	// OperationInProgress was begun.
	OperationInProgress OperationState = "InProgress"
	// OperationSucceeded is done.
	OperationSucceeded OperationState = "Succeeded"
	// OperationFailed could not be done; the message says why.
	OperationFailed OperationState = "Failed"
	// OperationRefused cannot be done in the present state; the message says why.
	OperationRefused OperationState = "Refused"
)

// OperationStatus is an operation that was asked for by annotation; it is recorded before anything is done, so that
// each is done at most once.
type OperationStatus struct {
	// id tells one request from the next.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	ID string `json:"id,omitempty"`
	// name is the operation, for example park.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// state is how far the operation has come.
	// +required
	State OperationState `json:"state,omitempty"`
	// startedAt is when the operation was recorded.
	// +required
	StartedAt metav1.MicroTime `json:"startedAt,omitzero"`
	// begunAt is when the reset or power change that the operation asks for was recorded as begun, just before the BMC was
	// asked; it is not there where nothing was asked of a BMC. An operation may wait for long before.
	// +optional
	BegunAt *metav1.MicroTime `json:"begunAt,omitempty"`
	// finishedAt is when the operation ended.
	// +optional
	FinishedAt *metav1.MicroTime `json:"finishedAt,omitempty"`
	// entry is the lifecycle entry in which the operation was asked for.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Entry int64 `json:"entry,omitempty"`
	// message says what was done, or why not.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// by is who asked for it, as the API server knows the user.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by,omitempty"`
	// reason is why, in the words of whoever asked.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// to is the state that operation force leads to.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	To ServerState `json:"to,omitempty"`
	// override says that operation force was asked to set safety rules aside where it must.
	// +optional
	Override bool `json:"override,omitempty"`
	// overrides are the safety rules that operation force sets aside.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Overrides []string `json:"overrides,omitempty"`
}
