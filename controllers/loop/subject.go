// SPDX-License-Identifier: Apache-2.0

// Package loop is the one reconciler that runs every kind: observe, decide, apply, write, and then what the outcome lists.
package loop

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// FieldOwner owns the fields that metalaw writes, so that clients which apply an object again and again do not take them
// away.
const FieldOwner = v1alpha1.FieldManager

// Subject is one kind as the loop sees it. D is what is decided about an object of the kind.
type Subject[T client.Object, D any] interface {
	// Observe reads everything that one decision about the object needs, and writes nothing. Trouble with hardware is a
	// fact, not an error; an error is an API server that did not answer.
	Observe(ctx context.Context, object T) (Scope[D], error)
}

// Scope is one object in one reconcile. Its methods change the object in memory; the loop writes it, once per
// subresource.
type Scope[D any] interface {
	// Decide is pure: the same observation gives the same decision.
	Decide() D
	// Apply makes the effects of the decision hold, and records the outcome in the object: state, conditions, observed
	// values. It is called in every reconcile, does nothing where an effect holds, and never waits for hardware.
	Apply(ctx context.Context, decision D) Outcome
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
	// Request asks a machine for what the effect has recorded in the object; nil where it asks for nothing.
	Request func()
}

// Then is the progress of an effect that recorded a request, which is made once the record is stored.
func (p Progress) Then(request func()) Progress {
	p.Request = request
	return p
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

// Outcome is what a decision led to, and what is done after the write. Where the write fails none of that is done.
type Outcome struct {
	// Effect is the first effect that does not hold; empty where all hold.
	Effect   string
	Progress Progress
	// Again is when to look again, whatever Progress says; 0 leaves it to that.
	Again time.Duration
	// Requests ask machines for what the write records (order 1: the record is stored first). With one of them nothing of
	// the record is deferred.
	Requests []func()
	// Reports tell what no difference of the object shows, such as a request that was refused. They come last.
	Reports []func(context.Context)
	// MayWait says that Reconciler.Defers may leave the status to a later write.
	MayWait bool
}

// Settled says that every effect holds.
func (o Outcome) Settled() bool { return o.Effect == "" }

// InOrder makes effects hold in order, up to the first that does not.
func InOrder[E any](effects []E, name func(E) string, apply func(E) Progress) Outcome {
	var o Outcome
	for _, effect := range effects {
		p := apply(effect)
		if p.Request != nil {
			o.Requests = append(o.Requests, p.Request)
		}
		if p.Phase != Done {
			o.Effect, o.Progress = name(effect), p
			return o
		}
	}
	return o
}
