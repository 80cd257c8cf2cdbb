// SPDX-License-Identifier: Apache-2.0

package power

import (
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/policies"
)

// agentFor is how long after the move that its word made a machine counts as one that runs our agent. A user may have
// booted something else by hand later.
const agentFor = 10 * time.Minute

// RunsAgent says that a machine surely runs an agent that we booted, and nothing else since: it was switched on last for the
// entry before, the agent of that entry was heard, and a rule made the move. What is not known for certain counts as a system.
func RunsAgent(s *v1alpha1.Server, f *policies.Facts, at policies.Instant) bool {
	l := s.Status.Lifecycle
	if l == nil || l.Request == nil {
		return false
	}
	r := l.Request
	if r.Action == v1alpha1.PowerActionForceOff && r.Uncounted && r.Entry == l.Entry && r.ShownAt == nil {
		return recent(l, at) // it is asked for once more
	}
	return bootedFor(r, l.Entry-1) && heardIn(f, l.Entry-1) && movedByRule(l) && !restartedSince(s.Status.Operation, r) &&
		recent(l, at)
}

// bootedFor says that the machine was switched on last for an entry. One without attempts was seen off since, where it was to
// be off: see switchOff.
func bootedFor(r *v1alpha1.PowerRequest, entry int64) bool {
	return r.Action == v1alpha1.PowerActionOn && r.ShownAt != nil && r.Entry == entry && entry > 0 && r.Attempts > 0
}

// heardIn says that the agent of an entry was heard to its end.
func heardIn(f *policies.Facts, entry int64) bool {
	return f.Probe.Entry == entry && f.Probe.Complete || f.Wipe.Entry == entry && (f.Wipe.Verified || f.Wipe.Failed)
}

// movedByRule says that a rule of the policy made the last move, and neither a user nor the takeover from another operator.
func movedByRule(l *v1alpha1.LifecycleStatus) bool {
	if len(l.History) == 0 {
		return false
	}
	last := l.History[len(l.History)-1]
	return last.Entry == l.Entry && last.By == "" && last.Rule != v1alpha1.RuleAdopted && last.Rule != v1alpha1.RuleForced
}

// restartedSince says that an operation reached the machine after the power-on.
func restartedSince(op *v1alpha1.OperationStatus, on *v1alpha1.PowerRequest) bool {
	return op != nil && op.BegunAt != nil && !op.BegunAt.Time.Before(on.AskedAt.Time)
}

// recent says that the present entry began lately, by counted time and by the wall clock: the one leaves out the time without
// a manager, and the other may step.
func recent(l *v1alpha1.LifecycleStatus, at policies.Instant) bool {
	passed, known := at.Counted.Since(counted.From(l.EnteredCounted))
	wall := at.Now.Sub(l.EnteredAt.Time)
	return known && passed < agentFor && wall.Abs() < agentFor
}
