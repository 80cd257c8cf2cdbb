// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/controllers/server/gates"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/controllers/server/status"
	"github.com/metalaw/metalaw/controllers/trigger"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// Answers are what became of the acts of a reconcile.
type Answers struct {
	// Decision is the decision that stood, Gated is how it came to that, and Outcome is how far its effects came.
	Decision engine.Decision
	Gated    gates.Output
	Outcome  loop.Outcome
	// Governance is what governs the server, and Clock that of its deadline; nil if the stored one still serves.
	Governance rollout.Governance
	Clock      *v1alpha1.DeadlineClock
	// Verdict is why something was held back, and LetThrough says that something was let through.
	Verdict    *fleet.Verdict
	LetThrough bool
	// AwaitsBMC says that something waits for the BMC to show it, and Unbooted that the reference to a boot was taken away.
	AwaitsBMC, Unbooted bool
	// Attested and Proved are what the inventory keeps since this reconcile for an operation; nil if nothing was written.
	Attested *operations.Answer
	Proved   *policyv1alpha1.MachineIdentity
}

// Recorded is what a reconcile leaves behind.
type Recorded struct {
	// Server is the server as it is to be stored.
	Server *v1alpha1.Server
	Memory Memory
	Notes  []operations.Note
	// Wake is when to look again at the latest; 0 for no particular time.
	Wake time.Duration
	// Settled and Rested are those of status.Output. Stays says that it is settled in a state that it does not leave soon by itself.
	Settled, Rested, Stays bool
	// Labels show the hardware, by which a plain selector asks for it. They take their turn, so that a fleet changes over
	// without a burst of writes; nil if nothing waits for that.
	Labels map[string]string
}

// Record brings the server up to date with what was decided and done: requests, the move, operations, then the conditions.
func Record(s Seen, a Answers) Recorded {
	r := recording{Seen: s, Answers: a}
	r.Server = s.Server.DeepCopy()
	stored := r.Server.Status.Lifecycle != nil
	if s.Fresh() {
		r.Memory.Waits = time.Time{} // the next decision needs a reading of its own
	}
	r.request()
	if out := status.Moved(r.statusInput(loop.Outcome{})); out.Entered {
		r.Server = out.Server
		r.Memory.Enter(r.Server, r.Now)
	} else {
		r.Server = out.Server
	}
	r.operations()
	settled := r.conditions()
	alongside := a.Unbooted
	if stored { // order 3: the finalizer without a lifecycle must mean that a status was lost
		alongside = addFinalizer(r.Server) || alongside
	}
	r.Memory.Unsettled, r.Memory.AwaitsBMC = !settled, a.AwaitsBMC
	if settled {
		r.Memory.Waits = time.Time{}
	}
	r.out.Stays = settled && r.stays()
	r.labels(alongside)
	r.out.Server, r.out.Memory = r.Server, r.Memory
	return r.out
}

// recording is a record in the making. Server is a copy.
type recording struct {
	Seen
	Answers
	out Recorded
}

func (r *recording) wake(in time.Duration) { r.out.Wake = trigger.Earlier(r.out.Wake, in) }

// request keeps what became of the power request.
func (r *recording) request() {
	if shown := shownNow(&r.Seen); shown != nil {
		shown(r.Server)
	}
	l := r.Server.Status.Lifecycle
	if l == nil {
		return
	}
	l.Request = r.Requested().Recorded()
	// The machine was seen on in this entry, so that something may be running on it.
	if l.SeenOnAt == nil && r.Shows(redfish.PowerOn) && r.BMC.Begun.After(r.Memory.EnteredAt(r.Server)) {
		at := metav1.NewMicroTime(r.Now)
		l.SeenOnAt, l.SeenOnCounted = &at, r.CountedNow.Stored()
	}
}

// operations takes in what is asked for, and ends what is done.
func (r *recording) operations() {
	in := r.Operations()
	in.Decision, in.Attested, in.Proved = r.Decision, r.Attested, r.Proved
	out := operations.Decide(in)
	r.Server, r.out.Notes = out.Server, out.Notes
	r.wake(out.Again)
}

// conditions takes over the conditions, and says whether the server is where its decision wants it.
func (r *recording) conditions() (settled bool) {
	in, m := r.statusInput(r.Outcome), &r.Memory
	m.Reads = since(m.Reads, r.Outcome.Progress.Reason == power.WaitsForReading && r.BMC.Reachable(), r.Now)
	m.Held = since(m.Held, r.Gated.Postponed, r.Now)
	in.Since = status.Since{LastJob: r.BMC.LastJob, Reading: m.Reads, Postponed: m.Held}
	out := status.Decide(in)
	r.Server, r.out.Settled, r.out.Rested = out.Server, out.Settled, out.Rested
	r.wake(out.Wake)
	return out.Settled
}

// statusInput is everything that the status is made of.
func (r *recording) statusInput(outcome loop.Outcome) status.Input {
	in := status.Input{Observation: r.Observation, Facts: r.Facts, Decision: r.Decision, Gated: r.Gated, Outcome: outcome,
		Governance: r.Governance, Clock: r.Clock, Stated: r.BMC.Stated.Stated, Reading: r.reading(), Withheld: r.Verdict,
		LetThrough: r.LetThrough, BootTarget: r.BootTarget}
	in.Governance.Bundle = r.Bundle
	if l := r.Server.Status.Lifecycle; l != nil && l.Request != nil {
		asked := r.Requested()
		in.Power = status.Power{Unsolved: asked.Unsolved(), Since: asked.Since()}
	}
	return in
}

// reading is what the BMC said last.
func (r *recording) reading() status.Reading {
	out := status.Reading{Tried: r.BMC.Tried, Reachable: r.BMC.Reachable(), Never: r.BMC.At.IsZero(), NoTarget: r.BMC.Lacks != nil,
		Crowded: redfish.Crowded(r.BMC.Err), Snapshot: r.BMC.System}
	if r.BMC.Err == nil {
		return out
	}
	out.Reason = redfish.Reason(r.BMC.Err)
	var missing *access.Error
	if errors.As(r.BMC.Err, &missing) {
		out.Reason = missing.Reason
	}
	out.Message, out.News = access.Describe(r.BMC.Err)
	if ref := r.Server.Spec.BMCRef; ref != nil {
		out.Message += access.Retry(r.BMC.Err, ref.Name)
	}
	return out
}

// stays says that the state is no step on the way to another, such as an inspection.
func (r *recording) stays() bool {
	state := r.Server.Status.State
	return r.Bundle == nil || state == v1alpha1.StateError || r.Bundle.Lifecycle.Stable(engine.State(state))
}

// labels shows the hardware in labels alongside another write of the metadata, or else in its turn while the server rests.
func (r *recording) labels(alongside bool) {
	if r.Server.Status.Lifecycle == nil || !alongside && !r.out.Stays {
		return
	}
	labels := policies.LabelsFor(r.Server.Labels, policies.CandidateOf(r.Server, policies.HardwareOf(r.Inventory)), r.Settings)
	switch {
	case maps.Equal(labels, r.Server.Labels):
	case alongside:
		r.Server.Labels = labels
	default:
		r.out.Labels = labels
	}
}

// addFinalizer says whether the server lacked it.
func addFinalizer(s *v1alpha1.Server) bool {
	for _, f := range s.Finalizers {
		if f == v1alpha1.FinalizerServer {
			return false
		}
	}
	s.Finalizers = append(s.Finalizers, v1alpha1.FinalizerServer)
	return true
}
