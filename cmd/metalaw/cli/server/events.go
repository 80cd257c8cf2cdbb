// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
)

// refusals are the reasons of the Events in which the manager says that something asked for is not done.
var refusals = []string{v1alpha1.ReasonOperationRefused, v1alpha1.ReasonUnknownOperation,
	v1alpha1.ReasonParkedOperationDropped, v1alpha1.ReasonParkRequestDropped}

// listRefusals lists the Events about servers in which the manager refuses what was asked.
func (r *run) listRefusals(ctx context.Context) ([]corev1.Event, error) {
	var all []corev1.Event
	for _, reason := range refusals {
		var list corev1.EventList
		// Events about what has no namespace are in this one.
		where := client.InNamespace(metav1.NamespaceDefault)
		about := fields.Set{"involvedObject.kind": "Server", "reason": reason}
		if err := r.client.List(ctx, &list, where, client.MatchingFieldsSelector{Selector: fields.SelectorFromSet(about)}); err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
	}
	return all, nil
}

// formerEvents are the resource versions of Events about refusals that were there before anything was asked, by UID. They
// tell a new refusal from a former one without anybody's clock: a repeated Event is one object with a new version.
type formerEvents map[types.UID]string

// rememberEvents looks at what was refused before. Where the right to do so is missing, it says at once what cannot be told.
func (r *run) rememberEvents(ctx context.Context) {
	r.former = formerEvents{}
	events, err := r.listRefusals(ctx)
	if r.blind(err) {
		r.report.terminal.Notef("why something is refused cannot be read: %v", r.unreadable)
	}
	for i := range events {
		r.former[events[i].UID] = events[i].ResourceVersion
	}
}

// readRefusals are the Events about refusals by the name of the server; none where they cannot be read.
func (r *run) readRefusals(ctx context.Context) map[string][]corev1.Event {
	if r.unreadable != nil {
		return nil
	}
	events, err := r.listRefusals(ctx)
	if r.blind(err) {
		return nil
	}
	by := map[string][]corev1.Event{}
	for i := range events {
		name := events[i].InvolvedObject.Name
		by[name] = append(by[name], events[i])
	}
	return by
}

// blind says that an error in reading Events is about rights, and keeps it; another one may pass.
func (r *run) blind(err error) bool {
	if err == nil || !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		return false
	}
	r.unreadable = access.Explain(err, "list", access.Events)
	return true
}

// newest is what the last Event about an operation says that was not there before.
func newest(events []corev1.Event, operation string, former formerEvents) string {
	found := ""
	var last time.Time
	for i := range events {
		e := &events[i]
		if at := lastTime(e); !at.Before(last) && former[e.UID] != e.ResourceVersion && about(e, operation) {
			found, last = e.Message, at
		}
	}
	if strings.Contains(found, v1alpha1.ForceOverrideAnnotation) {
		found += " (that is --override-safety)"
	}
	return found
}

// about says that an Event tells of an operation that was refused.
func about(e *corev1.Event, operation string) bool {
	switch e.Reason {
	case v1alpha1.ReasonOperationRefused, v1alpha1.ReasonParkedOperationDropped, v1alpha1.ReasonParkRequestDropped:
		return strings.HasPrefix(e.Message, operation)
	case v1alpha1.ReasonUnknownOperation:
		return strings.Contains(e.Message, `"`+operation+`"`)
	default:
		return false
	}
}

// lastTime is when an Event happened last; a repeated one is one object with a series.
func lastTime(e *corev1.Event) time.Time {
	at := e.CreationTimestamp.Time
	for _, t := range []time.Time{e.EventTime.Time, e.LastTimestamp.Time} {
		if t.After(at) {
			at = t
		}
	}
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	return at
}
