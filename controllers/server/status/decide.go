// SPDX-License-Identifier: Apache-2.0

// Package status decides what the status of a server says: its state and history, what is known of its hardware, and its
// conditions. It is pure: the server that it returns is a changed copy of the one that it is given.
package status

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/controllers/server/gates"
	"github.com/metalaw/metalaw/controllers/trigger"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// Input is everything that the status is made of. Nothing in it is changed.
type Input struct {
	// Observation is what the facts were made of; its Server is the server as it is about to be stored.
	policies.Observation
	Facts      *policies.Facts
	Decision   engine.Decision
	Gated      gates.Output
	Outcome    loop.Outcome
	Governance rollout.Governance
	// Clock is that of the deadline, to be stored; nil where the stored one still serves.
	Clock   *v1alpha1.DeadlineClock
	Reading Reading
	Stated  Stated
	Since   Since
	Power   Power
	// Withheld is why an action was held back in this reconcile, and LetThrough says that one was let through.
	Withheld   *fleet.Verdict
	LetThrough bool
	BootTarget string
}

// Reading is what the BMC said last.
type Reading struct {
	// Tried says that the BMC was asked, Reachable that it answered, and Never that it has not answered this process yet.
	Tried, Reachable, Never bool
	// NoTarget says that it is not known how to reach the BMC, and Crowded that the BMC had no room for another session.
	NoTarget, Crowded bool
	// Reason and Message say why the BMC does not answer. News says that it was asked, rather than left alone.
	Reason, Message string
	News            bool
	Snapshot        redfish.SystemSnapshot
}

// Since is when what is waited for began; zero where nothing is waited for.
type Since struct {
	// Postponed is since when moves have been put off, Reading since when an effect waits for a reading, and LastJob when the
	// BMC was last asked for something.
	Postponed, Reading, LastJob time.Time
}

// Power is how far the last power request has come.
type Power struct {
	// Unsolved says that it failed, or that this is not known yet. Since is the time since the BMC was asked.
	Unsolved bool
	Since    time.Duration
}

// Output is what the status says, and what follows.
type Output struct {
	Server *v1alpha1.Server
	// Entered says that the server came into an entry.
	Entered bool
	// Settled says that the server is where its decision wants it: nothing moves, waits or halts.
	Settled bool
	// Rested says that the decision was made on word of the machine and leaves it at rest.
	Rested bool
	// Wake is when to look again at the latest; 0 for no particular time.
	Wake time.Duration
}

// record is a status in the making.
type record struct {
	*Input
	s       *v1alpha1.Server
	wake    time.Duration
	entered bool
}

// Moved is the server with its hardware as it is known, and with the move of the decision.
func Moved(in Input) Output {
	r := &record{Input: &in, s: in.Server.DeepCopy()}
	r.recordHardware()
	r.recordMove()
	r.recordStranger()
	r.recordRevision()
	return Output{Server: r.s, Entered: r.entered}
}

// Decide is the server with its conditions, once its move, its requests and its operations are recorded.
func Decide(in Input) Output {
	r := &record{Input: &in, s: in.Server.DeepCopy()}
	r.recordConditions()
	if r.s.Status.Lifecycle != nil {
		r.s.Status.ObservedGeneration = r.s.Generation
	}
	r.recordParked()
	r.consumeConsent()
	r.s.Spec.Power = ""
	stays := in.Decision.Halt == nil && !in.Gated.Postponed && !in.Decision.Moves()
	return Output{Server: r.s, Wake: r.wake, Settled: stays && in.Outcome.Settled(),
		Rested: stays && r.rests() && in.Facts.BMC.Identity == policies.IdentitySame}
}

// consumeConsent takes the consent to manage a machine away once it has served: from when the mark Managed is stored, the
// mark lets the machine be stopped. A consent that stayed would hold as well for whoever runs the machine later.
func (r *record) consumeConsent() {
	if r.s.Status.Lifecycle != nil && slices.Contains(r.Facts.Lifecycle.Marks, policies.MarkManaged) {
		delete(r.s.Annotations, v1alpha1.ConsentAnnotation)
	}
}

// recordParked keeps the durable marker in step with the state, so that a lost status does not unpark a server. The state
// before the move is kept beside it, for unpark.
func (r *record) recordParked() {
	s := r.s
	switch from := r.Decision.From; {
	case s.Status.Lifecycle == nil:
	case s.Status.State != v1alpha1.StateParked:
		delete(s.Annotations, v1alpha1.ParkedAnnotation)
		if from != engine.State(v1alpha1.StateParked) { // the status may not be stored yet, and unpark would ask once more
			delete(s.Annotations, v1alpha1.PreParkStateAnnotation)
		}
	case r.Decision.Moves() && from != "":
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.PreParkStateAnnotation, string(from))
		fallthrough
	default:
		if _, marked := s.Annotations[v1alpha1.ParkedAnnotation]; !marked {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ParkedAnnotation, "true")
		}
	}
}

// recordOverrideMissing says what follows from a BMC that shows no boot override.
func (r *record) recordOverrideMissing() {
	switch {
	case r.Facts.BMC.Identity != policies.IdentitySame: // what was said before stands
	case !r.Reading.Snapshot.Boot.Missing:
		r.drop(v1alpha1.ConditionBootOverrideMissing)
	default:
		r.condition(v1alpha1.ConditionBootOverrideMissing, metav1.ConditionTrue, v1alpha1.ReasonBootOverrideMissing,
			boot.WithoutOverride(r.Settings.Boot.WithoutOverride))
	}
}

func (r *record) condition(kind string, status metav1.ConditionStatus, reason, message string) {
	SetCondition(r.s, r.Now, kind, status, reason, message)
}

// SetCondition sets a condition of a server, and shortens its message.
func SetCondition(s *v1alpha1.Server, now time.Time, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason,
		Message: loop.Shortened(message, loop.MaxMessage), ObservedGeneration: s.Generation, LastTransitionTime: metav1.NewTime(now)})
}

// wakeIn notes a moment at which to look again; the earliest counts.
func (r *record) wakeIn(d time.Duration) {
	r.wake = trigger.Earlier(r.wake, d)
}
