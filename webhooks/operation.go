// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/webhooks/review"
)

const (
	// forcer is the ClusterRole of the shipped manifests that holds the right to force servers.
	forcer = "metalaw-server-forcer"
	// maxReason is what status.operation can store, in characters.
	maxReason = 1024
)

// wording are the annotations that a request for an operation on a server consists of.
var wording = []string{v1alpha1.OperationAnnotation, v1alpha1.OperationReasonAnnotation,
	v1alpha1.ForceToAnnotation, v1alpha1.ForceOverrideAnnotation, v1alpha1.AttestDiskAnnotation, v1alpha1.AttestMethodAnnotation}

// ownRight is the right that an operation takes besides the right to patch the server, with a reason.
type ownRight struct {
	verb string
	// role is the ClusterRole of the shipped manifests that gives it.
	role string
	// what says what the user may not do without it, and why what the reason is for.
	what, why string
}

// ownRights are the operations that take a right of their own, but for those that go past the rules of the policy.
var ownRights = map[string]ownRight{
	v1alpha1.OperationSanitize: {"sanitize", "metalaw-server-sanitizer", "have servers erased",
		"say why the disks may be erased; the server keeps it"},
	v1alpha1.OperationDecommission: {"decommission", "metalaw-server-decommissioner", "take servers out of service",
		"say why the server goes out of service; the server keeps it"},
	v1alpha1.OperationRecommission: {"decommission", "metalaw-server-decommissioner", "take servers back into service",
		"say why the server stays or comes back into service; the server keeps it"},
	v1alpha1.OperationAttestDisk: {"attest-disk", "metalaw-disk-attester", "answer for disks that are not erased",
		"say what became of the disk; the ServerInventory keeps it"},
	v1alpha1.OperationProve: {"prove", "metalaw-server-prover", "answer for the machine of a server",
		"say how you know the machine; the ServerInventory keeps it"},
}

// attestWords are the annotations that say for which disk a user answers. They are held to the right to that also where nothing is
// asked for yet.
var attestWords = []string{v1alpha1.AttestDiskAnnotation, v1alpha1.AttestMethodAnnotation}

// forceWords are the annotations that say how a server is to be forced. They are held to the right to force also where
// no force is asked for yet, so that nobody can put words into the request of somebody else.
var forceWords = []string{v1alpha1.ForceToAnnotation, v1alpha1.ForceOverrideAnnotation}

// asksAnew says that a request for an operation is made, or worded differently: whoever does that is who asks.
func asksAnew(before, after *v1alpha1.Server) bool {
	return after.Annotations[v1alpha1.OperationAnnotation] != "" &&
		slices.ContainsFunc(wording, func(name string) bool { return annotationChanges(before, after, name) })
}

func annotationChanges(before, after *v1alpha1.Server, name string) bool {
	if before == nil {
		before = &v1alpha1.Server{}
	}
	return before.Annotations[name] != after.Annotations[name]
}

// recordWho writes who asks for an operation, whatever the client wrote there. Where a request is withdrawn it takes away
// what it said besides, so that the next request says only what is said then. The manager asks for nobody.
func recordWho(c review.Change[v1alpha1.Server]) []review.Edit {
	if c.ByManager {
		return nil
	}
	if asksAnew(c.Old, c.New) {
		if who := review.NameOf(c.User); c.New.Annotations[v1alpha1.OperationByAnnotation] != who {
			return []review.Edit{{Op: "add", Path: review.AnnotationPath(v1alpha1.OperationByAnnotation), Value: who}}
		}
		return nil
	}
	var edits []review.Edit
	if !c.Created() && c.Old.Annotations[v1alpha1.OperationAnnotation] != "" && c.New.Annotations[v1alpha1.OperationAnnotation] == "" {
		for _, name := range append([]string{v1alpha1.OperationByAnnotation}, wording[1:]...) {
			if _, written := c.New.Annotations[name]; written && !annotationChanges(c.Old, c.New, name) {
				edits = append(edits, review.Edit{Op: "remove", Path: review.AnnotationPath(name)})
			}
		}
	}
	return edits
}

// operationFacts is what was looked up for a request for an operation.
type operationFacts struct {
	// mayForce says that the user holds the right to force this server. It is looked up where forces says so.
	mayForce bool
	// holdsRight says that the user holds the right of its own that the operation takes. It is looked up where ownRightOf says so.
	holdsRight bool
	// status is what governs the server, looked up in the same case.
	statusFacts
}

// forces says that a change asks for a server to be forced, or says how.
func forces(c review.Change[v1alpha1.Server]) bool {
	if c.Deleted() || c.ByManager {
		return false
	}
	if pastRules(c.New.Annotations[v1alpha1.OperationAnnotation]) && asksAnew(c.Old, c.New) {
		return true
	}
	return slices.ContainsFunc(forceWords, func(name string) bool {
		return c.New.Annotations[name] != "" && annotationChanges(c.Old, c.New, name)
	})
}

// ownRightOf is the right of its own that a change takes; nil where it takes none. Asks says that the operation is asked for, and not
// only laid out.
func ownRightOf(c review.Change[v1alpha1.Server]) (right *ownRight, asks bool) {
	if c.Deleted() || c.ByManager {
		return nil, false
	}
	if own, takes := ownRights[c.New.Annotations[v1alpha1.OperationAnnotation]]; takes && asksAnew(c.Old, c.New) {
		return &own, true
	}
	if slices.ContainsFunc(attestWords, func(name string) bool {
		return c.New.Annotations[name] != "" && annotationChanges(c.Old, c.New, name)
	}) {
		own := ownRights[v1alpha1.OperationAttestDisk]
		return &own, false
	}
	return nil, false
}

// pastRules says that an operation goes past the rules of the policy, which takes the right to force.
func pastRules(operation string) bool {
	return operation == v1alpha1.OperationForce || operation == v1alpha1.OperationDeclareClean
}

// checkOperation holds the request for an operation against the rules: who asks is written by admission alone, what is
// stored has a length, and a server is forced only by somebody who may, and to a state that there is.
func checkOperation(c review.Change[v1alpha1.Server], f operationFacts, found *review.Findings) {
	path := review.AnnotationsPath
	after := c.New.Annotations
	checkWho(c, path.Key(v1alpha1.OperationByAnnotation), found)
	if annotationChanges(c.Old, c.New, v1alpha1.OperationReasonAnnotation) &&
		utf8.RuneCountInString(after[v1alpha1.OperationReasonAnnotation]) > maxReason {
		err := field.TooLong(path.Key(v1alpha1.OperationReasonAnnotation), "", maxReason)
		err.Detail = fmt.Sprintf("may not be longer than %d characters", maxReason)
		found.Deny(err)
	}
	override, set := after[v1alpha1.ForceOverrideAnnotation]
	if set && override != "true" && annotationChanges(c.Old, c.New, v1alpha1.ForceOverrideAnnotation) {
		found.Deny(field.NotSupported(path.Key(v1alpha1.ForceOverrideAnnotation), override, []string{"true"}))
	}
	checkOwnRight(c, f, found)
	if !forces(c) {
		return
	}
	at := path.Key(v1alpha1.OperationAnnotation)
	if !f.mayForce {
		found.Deny(field.Forbidden(at, fmt.Sprintf(
			"user %q may not force servers: that takes the verb force on servers.%s, which ClusterRole %s gives",
			c.User.Username, v1alpha1.GroupVersion.Group, forcer)))
		return
	}
	if after[v1alpha1.OperationAnnotation] == v1alpha1.OperationForce {
		checkForceTo(after[v1alpha1.ForceToAnnotation], f.statusFacts, path.Key(v1alpha1.ForceToAnnotation), found)
	}
}

// checkOwnRight: what takes a right of its own is asked for by a user who holds it, and who says why.
func checkOwnRight(c review.Change[v1alpha1.Server], f operationFacts, found *review.Findings) {
	own, asks := ownRightOf(c)
	if own == nil {
		return
	}
	path := review.AnnotationsPath
	if !f.holdsRight {
		found.Deny(field.Forbidden(path.Key(v1alpha1.OperationAnnotation), fmt.Sprintf(
			"user %q may not %s: that takes the verb %s on servers.%s, which ClusterRole %s gives",
			c.User.Username, own.what, own.verb, v1alpha1.GroupVersion.Group, own.role)))
	}
	if asks && strings.TrimSpace(c.New.Annotations[v1alpha1.OperationReasonAnnotation]) == "" {
		found.Deny(field.Required(path.Key(v1alpha1.OperationReasonAnnotation), own.why))
	}
}

func checkWho(c review.Change[v1alpha1.Server], path *field.Path, found *review.Findings) {
	by := c.New.Annotations[v1alpha1.OperationByAnnotation]
	switch {
	case asksAnew(c.Old, c.New):
		if by != review.NameOf(c.User) {
			found.Deny(field.Forbidden(path, "admission writes who asks; leave it out"))
		}
	case !annotationChanges(c.Old, c.New, v1alpha1.OperationByAnnotation):
	case by == "" && c.New.Annotations[v1alpha1.OperationAnnotation] == "":
	default:
		found.Deny(field.Forbidden(path, "admission writes who asks; keep it as it is stored"))
	}
}

func checkForceTo(to string, f statusFacts, path *field.Path, found *review.Findings) {
	if f.governing == nil {
		found.Deny(field.Forbidden(path, fmt.Sprintf(
			"policy revision %s, which governs the server, cannot be loaded; whether it defines the state cannot be told", f.revision)))
		return
	}
	states := make([]string, 0, len(f.governing.Lifecycle.States()))
	for _, s := range f.governing.Lifecycle.States() {
		states = append(states, string(s))
	}
	slices.Sort(states)
	switch {
	case to == "":
		found.Deny(field.Required(path, fmt.Sprintf("say to which state the server is forced; policy revision %s defines %s",
			f.revision, strings.Join(states, ", "))))
	case !f.governing.Lifecycle.Defines(engine.State(to)):
		found.Deny(field.NotSupported(path, to, states))
	}
}

// operation looks up what checkOperation needs.
func (l *serverRules) operation(ctx context.Context, c review.Change[v1alpha1.Server]) (operationFacts, error) {
	var f operationFacts
	var err error
	if own, _ := ownRightOf(c); own != nil {
		if f.holdsRight, err = l.may(ctx, c.User, rightTo(own.verb, c.New.Name)); err != nil {
			return f, err
		}
	}
	if !forces(c) {
		return f, nil
	}
	record := c.New
	if c.Old != nil {
		record = c.Old // the status of the new object is what the client sent
	}
	f.statusFacts = l.governing(record.Status.Lifecycle)
	f.mayForce, err = l.may(ctx, c.User, rightTo("force", c.New.Name))
	return f, err
}

// rightTo is a verb of ours on a server.
func rightTo(verb, server string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Verb: verb, Group: v1alpha1.GroupVersion.Group, Resource: "servers", Name: server}
}
