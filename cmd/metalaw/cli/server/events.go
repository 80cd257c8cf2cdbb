// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
)

// eventsOf lists the Events about a server, or about all where none is named.
func (r *run) eventsOf(ctx context.Context, name string) ([]corev1.Event, error) {
	set := fields.Set{"involvedObject.kind": "Server"}
	if name != "" {
		set["involvedObject.name"] = name
	} else {
		set["reason"] = v1alpha1.ReasonOperationRefused
	}
	var list corev1.EventList
	// Events about what has no namespace are in this one.
	where := client.InNamespace(metav1.NamespaceDefault)
	err := r.client.List(ctx, &list, where, client.MatchingFieldsSelector{Selector: fields.SelectorFromSet(set)})
	return list.Items, access.Explain(err, "list", access.Events)
}

// formerEvents are the resource versions of Events about refusals that were there before anything was asked, by UID. They
// tell a new refusal from a former one without anybody's clock: a repeated Event is one object with a new version.
type formerEvents map[types.UID]string

// rememberEvents looks at what was refused before. Where that cannot be read, the refusals to come cannot be either.
func (r *run) rememberEvents(ctx context.Context) formerEvents {
	former := formerEvents{}
	events, err := r.eventsOf(ctx, "")
	if err != nil {
		return former
	}
	for i := range events {
		former[events[i].UID] = events[i].ResourceVersion
	}
	return former
}

// eventWords looks for the Event that explains why a request was taken away; empty where there is none yet.
func (f *follower) eventWords(ctx context.Context, name string) (string, error) {
	events, err := f.eventsOf(ctx, name)
	return newest(events, f.verb.operation, f.former), err
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
	case v1alpha1.ReasonOperationRefused:
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
