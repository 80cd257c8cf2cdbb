// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/diag"
)

const (
	// forcer is the ClusterRole of the shipped manifests that holds the right to force servers.
	forcer = "metalaw-server-forcer"
	// maxReason and maxUser are what status.operation can store, in characters.
	maxReason = 1024
	maxUser   = 253
)

// wording are the annotations that a request for an operation on a server consists of.
var wording = []string{v1alpha1.OperationAnnotation, v1alpha1.OperationReasonAnnotation,
	v1alpha1.ForceToAnnotation, v1alpha1.ForceOverrideAnnotation}

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
func recordWho(m mutation[v1alpha1.Server]) []replacement {
	if m.byManager {
		return nil
	}
	if asksAnew(m.old, m.new) {
		if who := nameOf(m.user); m.new.Annotations[v1alpha1.OperationByAnnotation] != who {
			return []replacement{{Op: "add", Path: annotationPath(v1alpha1.OperationByAnnotation), Value: who}}
		}
		return nil
	}
	var changes []replacement
	if m.old != nil && m.old.Annotations[v1alpha1.OperationAnnotation] != "" && m.new.Annotations[v1alpha1.OperationAnnotation] == "" {
		for _, name := range append([]string{v1alpha1.OperationByAnnotation}, wording[1:]...) {
			if _, written := m.new.Annotations[name]; written && !annotationChanges(m.old, m.new, name) {
				changes = append(changes, replacement{Op: "remove", Path: annotationPath(name)})
			}
		}
	}
	return changes
}

func annotationPath(name string) string {
	return "/metadata/annotations/" + strings.ReplaceAll(name, "/", "~1")
}

// nameOf is the user's name as far as status.operation can store it.
func nameOf(user authenticationv1.UserInfo) string {
	return diag.ShortenedCharacters(user.Username, maxUser)
}

// operationFacts is what was looked up for a request for an operation.
type operationFacts struct {
	// mayForce says that the user holds the right to force this server. It is looked up where forces says so.
	mayForce bool
	// status is what governs the server, looked up in the same case.
	statusFacts
}

// forces says that a change asks for a server to be forced, or says how.
func forces(c change[v1alpha1.Server]) bool {
	if c.deleted() || c.byManager {
		return false
	}
	if pastRules(c.new.Annotations[v1alpha1.OperationAnnotation]) && asksAnew(c.old, c.new) {
		return true
	}
	return slices.ContainsFunc(forceWords, func(name string) bool {
		return c.new.Annotations[name] != "" && annotationChanges(c.old, c.new, name)
	})
}

// pastRules says that an operation goes past the rules of the policy, which takes the right to force.
func pastRules(operation string) bool {
	return operation == v1alpha1.OperationForce || operation == v1alpha1.OperationDeclareClean
}

// checkOperation holds the request for an operation against the rules: who asks is written by admission alone, what is
// stored has a length, and a server is forced only by somebody who may, and to a state that there is.
func checkOperation(c change[v1alpha1.Server], f operationFacts, found *findings) {
	path := field.NewPath("metadata", "annotations")
	after := c.new.Annotations
	checkWho(c, path.Key(v1alpha1.OperationByAnnotation), found)
	if annotationChanges(c.old, c.new, v1alpha1.OperationReasonAnnotation) &&
		utf8.RuneCountInString(after[v1alpha1.OperationReasonAnnotation]) > maxReason {
		err := field.TooLong(path.Key(v1alpha1.OperationReasonAnnotation), "", maxReason)
		err.Detail = fmt.Sprintf("may not be longer than %d characters", maxReason)
		found.deny(err)
	}
	override, set := after[v1alpha1.ForceOverrideAnnotation]
	if set && override != "true" && annotationChanges(c.old, c.new, v1alpha1.ForceOverrideAnnotation) {
		found.deny(field.NotSupported(path.Key(v1alpha1.ForceOverrideAnnotation), override, []string{"true"}))
	}
	if !forces(c) {
		return
	}
	at := path.Key(v1alpha1.OperationAnnotation)
	if !f.mayForce {
		found.deny(field.Forbidden(at, fmt.Sprintf(
			"user %q may not force servers: that takes the verb force on servers.%s, which ClusterRole %s gives",
			c.user.Username, v1alpha1.GroupVersion.Group, forcer)))
		return
	}
	if after[v1alpha1.OperationAnnotation] == v1alpha1.OperationForce {
		checkForceTo(after[v1alpha1.ForceToAnnotation], f.statusFacts, path.Key(v1alpha1.ForceToAnnotation), found)
	}
}

func checkWho(c change[v1alpha1.Server], path *field.Path, found *findings) {
	by := c.new.Annotations[v1alpha1.OperationByAnnotation]
	switch {
	case asksAnew(c.old, c.new):
		if by != nameOf(c.user) {
			found.deny(field.Forbidden(path, "admission writes who asks; leave it out"))
		}
	case !annotationChanges(c.old, c.new, v1alpha1.OperationByAnnotation):
	case by == "" && c.new.Annotations[v1alpha1.OperationAnnotation] == "":
	default:
		found.deny(field.Forbidden(path, "admission writes who asks; keep it as it is stored"))
	}
}

func checkForceTo(to string, f statusFacts, path *field.Path, found *findings) {
	if f.governing == nil {
		found.deny(field.Forbidden(path, fmt.Sprintf(
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
		found.deny(field.Required(path, fmt.Sprintf("say to which state the server is forced; policy revision %s defines %s",
			f.revision, strings.Join(states, ", "))))
	case !f.governing.Lifecycle.Defines(engine.State(to)):
		found.deny(field.NotSupported(path, to, states))
	}
}

// operation looks up what checkOperation needs.
func (l *serverRules) operation(ctx context.Context, c change[v1alpha1.Server]) (operationFacts, error) {
	if !forces(c) {
		return operationFacts{}, nil
	}
	record := c.new
	if c.old != nil {
		record = c.old // the status of the new object is what the client sent
	}
	f := operationFacts{statusFacts: l.governing(record.Status.Lifecycle)}
	var err error
	f.mayForce, err = l.may(ctx, c.user, authorizationv1.ResourceAttributes{
		Verb: "force", Group: v1alpha1.GroupVersion.Group, Resource: "servers", Name: c.new.Name})
	return f, err
}
