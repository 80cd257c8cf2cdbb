// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/trigger"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/internal/ratelimit"
	"github.com/metalaw/metalaw/policies/index"
)

// The message of a claim that waits holds counts of the whole fleet, which changes all the time. Messages follow it at a slow rate and
// without the policy being asked, so that an event costs nothing for the claims that it cannot help.
const (
	// restateAfter is how long after a change of the fleet the messages are counted anew, at the soonest.
	restateAfter = time.Second
	// restateShare bounds what that may cost: the next count begins no sooner than so many times what the last one took.
	restateShare = 20
	// askAgainFollowing is when a policy is asked again about a claim that it gave no server, where it looks at counts or at time.
	askAgainFollowing = 5 * time.Second
	// askAgain is when it is asked again where it does not: what it rejected has changed since, and so have the counts by code.
	askAgain = worthRewriting
	// reportFailureAgain is how long no other failure of the policy for a server is reported: each claim that waits may have it fail at
	// another place.
	reportFailureAgain = 15 * time.Minute
	// mostFailures bounds the servers that are reported in that time.
	mostFailures = 1024
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

// messages are the conditions of the claims that wait, and the Events of the scheduler.
type messages struct {
	verdicts *verdicts
	recorder events.EventRecorder
	fleet    *index.Index
	pending  *pending
	now      func() time.Time
	// failures spaces the reports of the servers that the policy fails for.
	failures *ratelimit.Limiter
	// restating says that the messages of the claims that wait are to be counted anew, and pause after how many nanoseconds.
	restating atomic.Bool
	pause     atomic.Int64
	// claims triggers the claim loop, passes the scheduler's own.
	claims trigger.Source
	passes *trigger.TypedSource[pass]
}

// explain gives the claims that a cycle left without a server their verdicts, once all that could be bound are, so that the
// counts hold for all. A claim that has closed since gets none.
func (m *messages) explain(snapshot *solve.Snapshot, left []refused) {
	memo := solve.Tallies{}
	later := time.Duration(0)
	for _, l := range left {
		m.pending.refuse(l.claim.UID, &l)
		later = trigger.Earlier(later, m.give(snapshot, l, memo))
		later = trigger.Earlier(later, l.askedAgain())
	}
	if later > 0 {
		m.passes.AddAfter(pass{words: true}, later)
	}
}

// give gives a claim its verdict. It returns when to do so again. The first verdict is an Event, and so is each from which on a person has
// to act.
func (m *messages) give(snapshot *solve.Snapshot, r refused, memo solve.Tallies) time.Duration {
	uid := r.claim.UID
	words := snapshot.Message(r.ask, r.refusal, memo)
	verdict := Verdict{Reason: words.Reason, Message: words.Message, counts: words.Counts}
	last, known := m.verdicts.get(uid)
	changed, later := m.verdicts.give(uid, verdict, m.now(), func() bool { return m.pending.isOpen(uid) })
	if !changed {
		return later
	}
	m.claims.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(r.claim)})
	if m.recorder == nil {
		return later
	}
	if given := meta.FindStatusCondition(r.claim.Status.Conditions, v1alpha1.ConditionBound); !known && given != nil { // by a manager before
		known, last.Reason = true, given.Reason
	}
	switch {
	case verdict.IsFinal() && (!known || last.Reason != verdict.Reason):
		m.recorder.Eventf(r.claim, nil, corev1.EventTypeWarning, verdict.Reason, "Bind", "%s", verdict.Message)
	case !known:
		m.recorder.Eventf(r.claim, nil, corev1.EventTypeNormal, verdict.Reason, "Bind", "%s", verdict.Message)
	}
	return later
}

// restateSoon has the messages of the claims that wait counted anew, if there are any.
func (m *messages) restateSoon() {
	if !m.restating.Load() && m.pending.anyRefused() && m.restating.CompareAndSwap(false, true) {
		m.passes.AddAfter(pass{words: true}, max(restateAfter, time.Duration(m.pause.Load())))
	}
}

// restate counts the messages of the claims that wait anew, and has the policy asked again about those for which that is due. It
// returns when to do so again.
func (m *messages) restate() time.Duration {
	began := m.now()
	m.restating.Store(false)
	snapshot := &solve.Snapshot{Fleet: m.fleet.Index}
	memo := solve.Tallies{}
	again, due := time.Duration(0), false
	for _, r := range m.pending.refusals() {
		if after := r.askedAgain(); after > 0 {
			left := after - began.Sub(r.asked)
			if left <= 0 {
				m.pending.wake(r.claim.UID)
				due = true
				continue
			}
			again = trigger.Earlier(again, left)
		}
		again = trigger.Earlier(again, m.give(snapshot, r, memo))
	}
	if due {
		m.passes.Add(pass{})
	}
	m.pause.Store(int64(restateShare * m.now().Sub(began)))
	return again
}

// adopted says on both that the claim has what is on the machine. Where a former claim of the name had it, that is a
// warning: its author may have wanted a fresh machine. Events of a server lie in namespace default, and name no claim of a tenant.
func (m *messages) adopted(c *v1alpha1.ServerClaim, server *v1alpha1.Server, former string) {
	if m.recorder == nil {
		return
	}
	kind, of := corev1.EventTypeNormal, "; nobody had recorded which claim of that name is meant"
	if former != "" {
		kind, of = corev1.EventTypeWarning, " that a former claim of that name ("+former+") left there"
	}
	m.recorder.Eventf(c, server, kind, v1alpha1.ReasonServerAdopted, "Bind",
		"Took over server %s with the data%s", server.Name, of)
	m.recorder.Eventf(server, nil, kind, v1alpha1.ReasonServerAdopted, "Bind",
		"Taken over, by the claim that spec.serverClaimRef names, with the data%s", of)
}

// policyFailed reports servers that the policy fails for: claims get other servers, and their messages name none. The Event names the
// rule. Only the log says what it failed on, which may be a label of a claim or a server. Where it failed for all that it was asked
// about, that may be for the claim's sake, and one line in the log is all.
func (m *messages) policyFailed(ctx context.Context, failures []selection.CandidateError, all bool) {
	const what = "the selection policy cannot be evaluated for a server, which such claims do not get"
	if all {
		if len(failures) > 0 && m.failures.Due("", m.now()) {
			logf.FromContext(ctx).Error(failures[0].Err, what, "server", failures[0].Server)
		}
		return
	}
	for _, failed := range failures {
		if !m.failures.Due(failed.Server, m.now()) {
			continue
		}
		logf.FromContext(ctx).Error(failed.Err, what, "server", failed.Server)
		if e := m.fleet.Get(failed.Server); e != nil && m.recorder != nil {
			m.recorder.Eventf(index.Server(e), nil, corev1.EventTypeWarning, v1alpha1.ReasonSelectionPolicyFailed, "Select",
				"%s; claims for which that is so do not get this server", selection.Anonymous(failed))
		}
	}
}
