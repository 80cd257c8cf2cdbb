// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/trigger"
	"github.com/metalaw/metalaw/engine/claims/solve"
)

// What a claim that waits is told holds counts of the whole fleet, which changes all the time. Words follow it at a slow rate and
// without the policy being asked, so that an event costs nothing for the claims that it cannot help.
const (
	// restateAfter is how long after a change of the fleet the words are counted anew, at the soonest.
	restateAfter = time.Second
	// restateShare bounds what that may cost: the next count begins no sooner than so many times what the last one took.
	restateShare = 20
	// askAgainFollowing is when a policy is asked again about a claim that it gave no server, where it looks at counts or at time.
	askAgainFollowing = 5 * time.Second
	// askAgain is when it is asked again where it does not: what it rejected has changed since, and so have the counts by code.
	askAgain = worthRewriting
)

// refused is a claim that a cycle left without a server.
type refused struct {
	pendingClaim
	refusal solve.Refusal
	asked   time.Time
}

// askedAgain is when the policy is to be asked again; 0 where it had no say.
func (r refused) askedAgain() time.Duration {
	switch {
	case r.refusal.Follows:
		return askAgainFollowing
	case len(r.refusal.Rejected)+len(r.refusal.Misplaced)+r.refusal.Unjudged > 0:
		return askAgain
	}
	return 0
}

// explain hands the claims that a pass left without a server their verdicts, once all that could be bound are, so that the
// counts hold for all. A claim that has closed since gets none.
func (s *Scheduler) explain(r *cycle) {
	memo := solve.Tallies{}
	later := time.Duration(0)
	for _, l := range r.left {
		s.pending.refuse(l.claim.UID, l)
		later = trigger.Earlier(later, s.tell(r.snapshot, l, memo))
		later = trigger.Earlier(later, l.askedAgain())
	}
	if later > 0 {
		s.passes.AddAfter(pass{words: true}, later)
	}
	if len(r.passed) > 0 || r.bound > 0 {
		s.restateSoon()
	}
}

// tell gives a claim its verdict. It returns when to do so again. An Event tells of the first one, and of each by which somebody has to
// act from now on.
func (s *Scheduler) tell(snapshot *solve.Snapshot, r refused, memo solve.Tallies) time.Duration {
	uid := r.claim.UID
	m := snapshot.Message(r.ask, r.refusal, memo)
	verdict := Verdict{Reason: m.Reason, Message: m.Message, counts: m.Counts}
	last, known := s.verdicts.get(uid)
	changed, later := s.verdicts.give(uid, verdict, s.now(), func() bool { return s.pending.isOpen(uid) })
	if !changed {
		return later
	}
	s.claims.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(r.claim)})
	if s.recorder == nil {
		return later
	}
	if told := meta.FindStatusCondition(r.claim.Status.Conditions, v1alpha1.ConditionBound); !known && told != nil { // by a manager before
		known, last.Reason = true, told.Reason
	}
	switch {
	case verdict.IsFinal() && (!known || last.Reason != verdict.Reason):
		s.recorder.Eventf(r.claim, nil, corev1.EventTypeWarning, verdict.Reason, "Bind", "%s", verdict.Message)
	case !known:
		s.recorder.Eventf(r.claim, nil, corev1.EventTypeNormal, verdict.Reason, "Bind", "%s", verdict.Message)
	}
	return later
}

// restateSoon has the words of the claims that wait counted anew, if there are any.
func (s *Scheduler) restateSoon() {
	if !s.restating.Load() && s.pending.anyRefused() && s.restating.CompareAndSwap(false, true) {
		s.passes.AddAfter(pass{words: true}, max(restateAfter, time.Duration(s.pause.Load())))
	}
}

// restate counts the words of the claims that wait anew, and has the policy asked again about those for which that is due. It
// returns when to do so again.
func (s *Scheduler) restate() time.Duration {
	began := s.now()
	s.restating.Store(false)
	snapshot := &solve.Snapshot{Fleet: s.fleet.Index}
	memo := solve.Tallies{}
	again, due := time.Duration(0), false
	for _, r := range s.pending.refusals() {
		if after := r.askedAgain(); after > 0 {
			left := after - began.Sub(r.asked)
			if left <= 0 {
				s.pending.wake(r.claim.UID)
				due = true
				continue
			}
			again = trigger.Earlier(again, left)
		}
		again = trigger.Earlier(again, s.tell(snapshot, r, memo))
	}
	if due {
		s.passes.Add(pass{})
	}
	s.pause.Store(int64(restateShare * s.now().Sub(began)))
	return again
}
