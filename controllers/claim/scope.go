// SPDX-License-Identifier: Apache-2.0

// Package claim runs ServerClaims: it holds them by their finalizer before anything is bound, says in their conditions how
// far they are, and records their end on their server. Which server a claim gets is the scheduler's; what becomes of the
// server is its lifecycle's.
package claim

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/scheduler"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/internal/stored"
)

// Subject is ServerClaims as the loop sees them.
type Subject struct {
	// Client reads from the cache and writes; Live reads from the API server.
	Client client.Client
	Live   client.Reader
	// Scheduler says why a claim waits, and keeps bindings away from a claim that ends.
	Scheduler *scheduler.Scheduler
	Recorder  events.EventRecorder
	Now       func() time.Time
	Counted   *counted.Clock

	turns turns
}

var _ loop.Subject[*v1alpha1.ServerClaim, standing] = &Subject{}

// Observe reads what a claim's standing follows from: its server, its boot configuration, and the scheduler's word.
func (s *Subject) Observe(ctx context.Context, c *v1alpha1.ServerClaim) (loop.Scope[standing], error) {
	v := &scope{Subject: s, now: s.Now(), facts: facts{claim: c, turned: s.turns.of(c)}}
	if !c.DeletionTimestamp.IsZero() {
		return v, nil // its end is found out uncached
	}
	if verdict, ok := s.Scheduler.Verdict(c.UID); ok {
		v.facts.verdict = &verdict
	}
	if c.Spec.ServerRef == nil {
		v.facts.binding = s.Scheduler.Binding(c)
		return v, nil
	}
	var err error
	if v.facts.server, err = stored.One[v1alpha1.Server](ctx, s.Client, "", c.Spec.ServerRef.Name); err != nil {
		return nil, fmt.Errorf("server %s: %w", c.Spec.ServerRef.Name, err)
	}
	if v.facts.boot, err = stored.One[v1alpha1.ServerBootConfiguration](ctx, s.Client, c.Namespace, c.Name); err != nil {
		return nil, fmt.Errorf("boot configuration: %w", err)
	}
	return v, nil
}

// scope is one look at one claim.
type scope struct {
	*Subject
	facts    facts
	standing standing
	operated operated
	note     note
	// now is the time of this look.
	now time.Time
	// quiet is how long the standing need not be written.
	quiet time.Duration
	// turned is the change of Ready that is about to be stored; nil where there is none.
	turned *turn
}

// effectForward is the only effect of a claim: hand an operation on to its server.
const effectForward = "ForwardOperation"

// Decide implements loop.Scope. A claim has no lifecycle of its own: its standing is read off, and it never moves.
func (v *scope) Decide() standing { return judge(v.facts) }

// Apply implements loop.Scope.
func (v *scope) Apply(ctx context.Context, decided standing) loop.Outcome {
	v.standing, v.quiet = decided, v.facts.quiet(decided, v.now)
	var effects []string
	if forwardable(v.facts.claim) {
		effects = []string{effectForward}
	}
	outcome := loop.InOrder(effects, func(effect string) string { return effect }, func(string) loop.Progress { return v.forward(ctx) })
	v.record()
	outcome.Again = v.again()
	outcome.Reports = []func(context.Context){v.report}
	return outcome
}

// record brings the claim up to date: the finalizer first, because a claim without it is not bound.
func (v *scope) record() {
	c := v.facts.claim
	controllerutil.AddFinalizer(c, v1alpha1.FinalizerServerClaim)
	v.recordOperation()
	if v.standing.silent || v.quiet > 0 {
		return
	}
	c.Status.Phase = v1alpha1.PhaseUnbound
	if v.standing.bound {
		c.Status.Phase = v1alpha1.PhaseBound
	}
	c.Status.ObservedGeneration = c.Generation
	v.recordConditions()
}

// again is when to look again.
func (v *scope) again() time.Duration {
	if v.standing.reason == v1alpha1.ReasonBindingLost && v.standing.stalled {
		return lostAgain // what is advised follows the state of a server that names no claim, of which nothing else tells
	}
	return v.quiet
}

// lostAgain is when to look again at a claim that lost its server.
const lostAgain = time.Minute

// recordConditions follows kstatus. Reconciling, Stalled and ServerMissing are left out where they have nothing to say.
func (v *scope) recordConditions() {
	s := v.standing
	if s.bound {
		v.condition(v1alpha1.ConditionBound, true, v1alpha1.ReasonBound, "bound to server "+v.facts.server.Name)
	} else {
		v.condition(v1alpha1.ConditionBound, false, s.reason, s.message)
	}
	was := meta.IsStatusConditionTrue(v.facts.claim.Status.Conditions, v1alpha1.ConditionReady)
	v.condition(v1alpha1.ConditionReady, s.ready, s.reason, s.message)
	if was != s.ready {
		v.turned = &turn{claim: v.facts.claim.UID, at: v.now, unprepared: s.unprepared, generation: v.facts.claim.Generation}
	}
	v.conditionIf(v1alpha1.ConditionReconciling, !s.ready && !s.stalled)
	v.conditionIf(v1alpha1.ConditionStalled, s.stalled)
	v.conditionIf(v1alpha1.ConditionServerMissing, s.vanished)
}

func (v *scope) condition(kind string, holds bool, reason, message string) {
	status := metav1.ConditionFalse
	if holds {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&v.facts.claim.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason,
		Message: loop.Shortened(message, loop.MaxMessage), ObservedGeneration: v.facts.claim.Generation, LastTransitionTime: metav1.NewTime(v.now)})
}

func (v *scope) conditionIf(kind string, holds bool) {
	if holds {
		v.condition(kind, true, v.standing.reason, v.standing.message)
		return
	}
	meta.RemoveStatusCondition(&v.facts.claim.Status.Conditions, kind)
}
