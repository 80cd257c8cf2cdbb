// SPDX-License-Identifier: Apache-2.0

// Package loop is the one reconciler that runs every kind: observe, decide, then move or act, record, and tell.
package loop

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
)

// FieldOwner owns the fields that metalaw writes, so that clients which apply an object again and again do not take them
// away.
const FieldOwner = v1alpha1.FieldManager

// Subject is one kind as the loop sees it.
type Subject[T client.Object] interface {
	// Observe reads everything that one decision about the object needs, and writes nothing. Trouble with hardware is a
	// fact, not an error; an error is an API server that did not answer.
	Observe(ctx context.Context, object T) (Scope, error)
}

// Scope is one object in one reconcile. Its methods change the object in memory; the loop writes it, once per
// subresource.
type Scope interface {
	// Decide is pure: the same observation gives the same decision.
	Decide() engine.Decision
	// Apply makes one effect hold. It is idempotent: it is called again in every reconcile while the state is kept, does
	// nothing where the effect holds, and never waits for hardware.
	Apply(ctx context.Context, effect engine.Effect) Progress
	// Record writes the outcome into the object: state, conditions, observed values.
	Record(decision engine.Decision, outcome Outcome)
	// Finalize is called in place of Decide once the object is being deleted. When it is done the loop takes the
	// finalizer away.
	Finalize(ctx context.Context) Progress
}

// Phase says how far an effect has come.
type Phase uint8

const (
	// Done: the effect holds.
	Done Phase = iota
	// Pending: the effect was asked for, or waits for something. The effects after it are not applied.
	Pending
	// Failed: the effect cannot be made to hold as things are; it is tried again later.
	Failed
)

// Progress is the outcome of one effect.
type Progress struct {
	Phase Phase
	// Reason is one word in upper camel case; Message says what is waited for or what went wrong.
	Reason, Message string
	// Again is when to look again; 0 leaves it to whatever wakes the object.
	Again time.Duration
	// Err is set for an API error, which the loop returns to its queue.
	Err error
}

// Holds is the progress of an effect that holds.
func Holds() Progress { return Progress{} }

// Waiting is the progress of an effect that waits. again 0 means that an event will wake the object.
func Waiting(reason, message string, again time.Duration) Progress {
	return Progress{Phase: Pending, Reason: reason, Message: message, Again: again}
}

// Failing is the progress of an effect that cannot be made to hold as things are.
func Failing(reason, message string, again time.Duration) Progress {
	return Progress{Phase: Failed, Reason: reason, Message: message, Again: again}
}

// Broken is the progress of an effect that an API error kept from being applied.
func Broken(err error) Progress {
	return Progress{Phase: Failed, Reason: "APIError", Message: err.Error(), Err: err}
}

// Outcome is what applying the decision's effects led to.
type Outcome struct {
	// Effect is the first effect that does not hold; empty where all hold.
	Effect   string
	Progress Progress
}

// Settled says that every effect holds.
func (o Outcome) Settled() bool { return o.Effect == "" }
