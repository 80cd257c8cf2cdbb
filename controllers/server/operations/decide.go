// SPDX-License-Identifier: Apache-2.0

// Package operations decides what becomes of an operation that an annotation asks for. It does nothing itself.
//
// An operation goes through these steps, each one write, so that it happens at most once:
//
//  1. It is recorded in status.operation as Pending, while the annotation still stands.
//  2. The annotation is taken away.
//  3. Only now do the facts show it: a rule moves on it, or an effect records it as InProgress and carries it out.
//  4. It ends as Succeeded, Failed or Refused.
package operations

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// Input is everything that a decision about operations depends on. Decide changes none of it.
type Input struct {
	// Observation is what the facts were made of; its Server is the server as it is about to be stored.
	policies.Observation
	Facts *policies.Facts
	// Bundle is the one that governs; nil where none does, and then no operation begins or ends.
	Bundle *bundle.Bundle
	// Holder is, where a release by hand is asked for, the claim that holds the server; empty where it does not exist.
	Holder string
	// NotOff says that the machine is seen not to be off, or that its BMC does not tell.
	NotOff bool
	// Unconfirmed says that what is asked for by hand could not be read past the cache.
	Unconfirmed bool
	// Attested is what was written into the inventory for operation attest-disk; nil where nothing was.
	Attested *Answer
	// Proved is what was written into the inventory for operation prove; nil where nothing was.
	Proved *policyv1alpha1.MachineIdentity
	// NewID names an operation, or a holder, that is recorded now.
	NewID string
	// Decision is what was decided about the server, and Move the forced move among it; nil where none was asked for.
	Decision engine.Decision
	Move     *Move
}

// Note is an event to be told once: a warning unless it is Fine.
type Note struct {
	Reason, Message string
	Fine            bool
}

// Output is what is to be recorded of operations.
type Output struct {
	// Server is the server with what is recorded.
	Server *v1alpha1.Server
	Notes  []Note
	// Again is when to look again; 0 where nothing is to follow.
	Again time.Duration
}

// Decide takes in what is asked for, and ends what is done.
func Decide(in Input) Output {
	d := &decision{Input: in, server: in.Server}
	d.out.Server = in.Server
	if in.Server.Status.Lifecycle == nil || in.Bundle == nil || in.Move == nil && !Stands(in.Server) {
		return d.out // nothing is copied for a server of which nothing is asked
	}
	d.server = in.Server.DeepCopy()
	d.out.Server = d.server
	d.dropPark()
	d.record()
	d.servePark()
	return d.out
}

// decision is an Output on its way. server is a copy, which may be changed.
type decision struct {
	Input
	server *v1alpha1.Server
	out    Output
}

func (d *decision) note(reason, message string) {
	d.out.Notes = append(d.out.Notes, Note{Reason: reason, Message: message, Fine: reason == v1alpha1.ReasonParkDeferred})
}

// record takes in what is asked for, and ends what is done.
func (d *decision) record() {
	d.end()
	d.recordForce()
	asked := Asked(d.server)
	if asked == "" {
		if _, written := d.server.Annotations[v1alpha1.OperationAnnotation]; written {
			d.note(v1alpha1.ReasonUnknownOperation, "the operation annotation names no operation")
			d.dropRequest()
		}
		return
	}
	op := d.server.Status.Operation
	if op.Active() {
		if op.State == v1alpha1.OperationPending && op.Name == asked {
			if asked == v1alpha1.OperationSanitize {
				if d.Unconfirmed {
					return
				}
				d.beginSanitize()
			}
			d.dropRequest()
			d.out.Again = time.Millisecond
			return
		}
		if op.State == v1alpha1.OperationInProgress || op.Name == asked {
			return // a second request waits until the first has ended
		}
	}
	if d.Unconfirmed || allowsDeletion(d.server, asked) {
		return
	}
	if op.Active() {
		d.admitInstead(asked)
		return
	}
	d.admitOperation(asked)
}

// admitInstead takes in what is asked for while another operation could not be begun yet. The later wish takes the place of
// the earlier one, if it can be granted; one that is refused changes nothing.
func (d *decision) admitInstead(asked string) {
	former, conditions := d.server.Status.Operation, slices.Clone(d.server.Status.Conditions)
	d.admitOperation(asked)
	switch op := d.server.Status.Operation; {
	case op.ID == former.ID:
	case op.State == v1alpha1.OperationRefused:
		d.note(v1alpha1.ReasonOperationRefused, fmt.Sprintf("%s: %s; %s, which was asked for before, goes on", op.Name, op.Message, former.Name))
		d.server.Status.Operation, d.server.Status.Conditions = former, conditions // OperationDone tells of the one that goes on
	case former.Name == v1alpha1.OperationPark && d.server.Annotations[v1alpha1.ParkRequestedAnnotation] != "":
		d.note(v1alpha1.ReasonParkDeferred,
			fmt.Sprintf("park waits for %s, which was asked for before it could be begun", asked))
	default:
		d.note(v1alpha1.ReasonOperationRefused, fmt.Sprintf("%s is not done: %s was asked for before it could be begun", former.Name, asked))
	}
}

func (d *decision) admitOperation(asked string) {
	s := d.server
	if d.takesLeave(asked) {
		return
	}
	if why := droppedWhileParked(d.Bundle, s, asked); why != "" {
		d.note(v1alpha1.ReasonParkedOperationDropped, asked+" is dropped: "+why)
		d.dropRequest()
		return
	}
	accepted := accepts(d.Bundle, s, asked)
	switch {
	case asked == v1alpha1.OperationPark, asked == v1alpha1.OperationUnpark && !accepted:
		d.takePark(asked)
	case pastRules(asked):
		d.admitMove(asked)
	case !accepted:
		d.note(refusal(d.Bundle, s, asked, d.tooLate("the machine is being erased")))
		d.dropRequest()
	case asked == v1alpha1.OperationRelease:
		d.releaseByHand()
	case asked == v1alpha1.OperationUndoRelease:
		d.undoRelease()
	case asked == v1alpha1.OperationSanitize:
		d.admitSanitize()
	default:
		d.beginOperation(asked)
	}
}

// refusal says why an operation cannot be begun here; late is why a release cannot be taken back while the machine is
// erased.
func refusal(b *bundle.Bundle, s *v1alpha1.Server, asked, late string) (reason, message string) {
	state := engine.State(s.Status.State)
	switch {
	case otherKinds[asked] != "":
		return v1alpha1.ReasonOperationRefused, asked + " is no operation of a Server: " + otherKinds[asked]
	case asked == v1alpha1.OperationUndoRelease && v1alpha1.ReleaseRecorded(s) && b.Lifecycle.Ensures(state, policies.EffectBootWipe):
		return v1alpha1.ReasonOperationRefused, asked + ": " + late
	case knownOperations[asked]:
		return v1alpha1.ReasonOperationRefused, fmt.Sprintf("%s cannot be used in state %s", asked, state) + Instead(b, s, asked)
	}
	return v1alpha1.ReasonUnknownOperation, fmt.Sprintf("there is no operation %q", asked)
}

// beginOperation records an operation before anything is done about it.
func (d *decision) beginOperation(name string) {
	s := d.server
	s.Status.Operation = &v1alpha1.OperationStatus{ID: d.NewID, Name: name, State: v1alpha1.OperationPending,
		StartedAt: metav1.NewMicroTime(d.Now), Entry: s.Status.Lifecycle.Entry,
		By: s.Annotations[v1alpha1.OperationByAnnotation], Reason: s.Annotations[v1alpha1.OperationReasonAnnotation]}
	d.out.Again = time.Millisecond
}

// take records an operation that is answered at once, and takes its request away.
func (d *decision) take(name string) {
	d.beginOperation(name)
	d.dropRequest()
}

// keep answers a person for whose words the inventory has a place. kept is what the inventory keeps, and why says why it
// keeps nothing; where both are empty it is written first.
func (d *decision) keep(name, kept, why string) {
	switch {
	case kept != "":
		d.take(name)
		d.succeed(kept)
	case why != "":
		d.take(name)
		d.finish(v1alpha1.OperationRefused, why)
	}
}

// succeed ends the operation with what was done, for which person, and why.
func (d *decision) succeed(what string) {
	op := d.server.Status.Operation
	if op.By != "" {
		what += " by " + op.By
	}
	if op.Reason != "" {
		what += ": " + op.Reason
	}
	d.finish(v1alpha1.OperationSucceeded, what)
}

// dropRequest takes the annotations of a request away.
func (d *decision) dropRequest() {
	for _, name := range []string{v1alpha1.OperationAnnotation, v1alpha1.OperationReasonAnnotation, v1alpha1.OperationByAnnotation,
		v1alpha1.ForceToAnnotation, v1alpha1.ForceOverrideAnnotation, v1alpha1.AttestDiskAnnotation, v1alpha1.AttestMethodAnnotation} {
		delete(d.server.Annotations, name)
	}
}
