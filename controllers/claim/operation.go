// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/internal/mergepatch"
	"github.com/metalaw/metalaw/internal/stored"
	"github.com/metalaw/metalaw/policies"
)

// An operation asked for on a claim is handed on to its server at most once, in three writes: the request gets an ID on
// the claim; the operation and the ID go to the server in one patch, where the ID stays; both are taken off the claim. A
// crash in between finds the ID on the server and only does the last.

// operated says what became of the operation that the claim asks for.
type operated uint8

const (
	// operationNamed: it gets its ID. The zero value is none, or one that waits.
	operationNamed operated = iota + 1
	// operationForwarded: it is on the server.
	operationForwarded
	// operationRefused: there is no server to hand it to.
	operationRefused
)

// forwardable says that a claim asks for one of the operations that its server carries out.
func forwardable(c *v1alpha1.ServerClaim) bool {
	return policies.IsReset(c.Annotations[v1alpha1.OperationAnnotation])
}

// refuses says that a claim asks for an operation that claims do not know, or by an empty annotation for none.
func refuses(c *v1alpha1.ServerClaim) bool {
	_, written := c.Annotations[v1alpha1.OperationAnnotation]
	return written && !forwardable(c) && !v1alpha1.Ignored(c)
}

// forward hands the operation on, or waits until the server can take it.
func (v *scope) forward(ctx context.Context) loop.Progress {
	c := v.facts.claim
	if !v.standing.bound {
		v.operated = operationRefused
		return loop.Failing("NotBound", "the claim has no server", 0)
	}
	id := c.Annotations[v1alpha1.OperationIDAnnotation]
	if id == "" {
		v.operated = operationNamed
		return loop.Waiting("Naming", "the operation gets its ID", 0)
	}
	server, err := stored.One[v1alpha1.Server](ctx, v.Live, "", v.facts.server.Name)
	switch {
	case err != nil:
		return loop.Broken(err)
	case server != nil && !agree(server, c) && policies.RelationOf(server, c) == policies.Adoptable:
		return loop.Waiting(v1alpha1.ReasonAdopting, "the operation waits until the claim's UID is recorded on its server", 0)
	case server == nil || !agree(server, c):
		v.operated = operationRefused
		return loop.Failing("NotBound", "the claim has no server", 0)
	case server.Annotations[v1alpha1.OperationIDAnnotation] == id:
		v.operated = operationForwarded
		return loop.Holds()
	case !isFree(server):
		return loop.Waiting("ServerBusy", "the operation waits until the server has done another one", 0)
	}
	before := server.DeepCopy()
	server.Annotations[v1alpha1.OperationAnnotation] = c.Annotations[v1alpha1.OperationAnnotation]
	server.Annotations[v1alpha1.OperationIDAnnotation] = id
	err = v.Client.Patch(ctx, server, mergepatch.Locked(before))
	if err != nil {
		return loop.Broken(err)
	}
	v.operated = operationForwarded
	return loop.Holds()
}

// isFree says that a server has no operation to do.
func isFree(s *v1alpha1.Server) bool {
	return s.Annotations[v1alpha1.OperationAnnotation] == "" && !s.Status.Operation.Active()
}

// recordOperation brings the claim's annotations up to date with what became of the operation.
func (v *scope) recordOperation() {
	c := v.facts.claim
	operation := c.Annotations[v1alpha1.OperationAnnotation]
	switch {
	case refuses(c):
		v.note = note{v1alpha1.ReasonUnknownOperation, fmt.Sprintf("A claim does not know the operation %q; it was removed. "+
			"Known are ignore, and the five that restart or switch the claim's server", operation)}
	case v.operated == operationRefused:
		v.note = note{v1alpha1.ReasonOperationRefused, fmt.Sprintf("The operation %q was removed: the claim has no server; "+
			"ask again once it is Bound", operation)}
	case v.operated == operationForwarded:
	case v.operated == operationNamed:
		c.Annotations[v1alpha1.OperationIDAnnotation] = fmt.Sprintf("%s-%s", c.UID, c.ResourceVersion)
		return
	default:
		return
	}
	delete(c.Annotations, v1alpha1.OperationAnnotation)
	delete(c.Annotations, v1alpha1.OperationIDAnnotation)
}

// note is a warning for the author of a claim.
type note struct{ reason, message string }

// report tells what was refused, and keeps the change of Ready that is stored now.
func (v *scope) report(context.Context) {
	if v.turned != nil {
		v.turns.keep(v.facts.claim, *v.turned)
	}
	if v.note.reason != "" {
		v.Recorder.Eventf(v.facts.claim, nil, corev1.EventTypeWarning, v.note.reason, "Operate", "%s", v.note.message)
	}
}
