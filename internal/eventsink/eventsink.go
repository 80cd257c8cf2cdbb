// SPDX-License-Identifier: Apache-2.0

// Package eventsink writes Events with lastTimestamp, by which people sort them.
//
// The recorder of client-go writes events.k8s.io/v1, for which the API server refuses lastTimestamp. As core/v1 the same
// Event may have it.
package eventsink

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// manager is a manager whose recorders write to a broadcaster of its own. That of controller-runtime takes no other sink.
type manager struct {
	ctrl.Manager
	broadcaster events.EventBroadcaster
}

// For makes the recorders of a manager write Events that bear lastTimestamp. They are written until the process ends.
func For(ctx context.Context, mgr ctrl.Manager) (ctrl.Manager, error) {
	client, err := corev1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	broadcaster := events.NewBroadcaster(sink{client})
	ctx = context.WithoutCancel(ctx) // what is told while the manager stops is written too
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	if _, err := broadcaster.StartLogging(mgr.GetLogger().WithName("events").V(1)); err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	return manager{mgr, broadcaster}, nil
}

// GetEventRecorder returns a recorder that reports under a name.
func (m manager) GetEventRecorder(name string) recorder.EventRecorder {
	r := m.broadcaster.NewRecorder(m.GetScheme(), name)
	return struct {
		events.EventRecorder
		events.AnnotatedEventRecorder
	}{r, r.(events.AnnotatedEventRecorder)} // as controller-runtime takes it: client-go's recorder is both
}

// sink stores Events as core/v1.
type sink struct{ client corev1client.EventsGetter }

// Create implements events.EventSink. It returns what it was given: the broadcaster reads nothing of the answer.
func (s sink) Create(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	_, err := s.client.Events(e.Namespace).Create(ctx, stamped(e), metav1.CreateOptions{})
	return e, err
}

// Update implements events.EventSink.
func (s sink) Update(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	_, err := s.client.Events(e.Namespace).Update(ctx, stamped(e), metav1.UpdateOptions{})
	return e, err
}

// Patch implements events.EventSink. The patch that the broadcaster made has the series alone.
func (s sink) Patch(ctx context.Context, e *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	repeated := stamped(e)
	patch, err := json.Marshal(map[string]any{
		"series": repeated.Series, "lastTimestamp": repeated.LastTimestamp, "count": repeated.Count})
	if err != nil {
		return nil, err
	}
	_, err = s.client.Events(e.Namespace).Patch(ctx, e.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return e, err
}

// stamped is an Event as core/v1, with the times, the count and the source that older readers look for.
func stamped(e *eventsv1.Event) *corev1.Event {
	is := &corev1.Event{
		ObjectMeta:          e.ObjectMeta,
		InvolvedObject:      e.Regarding,
		Related:             e.Related,
		Reason:              e.Reason,
		Message:             e.Note,
		Type:                e.Type,
		Action:              e.Action,
		EventTime:           e.EventTime,
		FirstTimestamp:      second(e.EventTime.Time),
		LastTimestamp:       second(e.EventTime.Time),
		Count:               1,
		Source:              corev1.EventSource{Component: e.ReportingController},
		ReportingController: e.ReportingController,
		ReportingInstance:   e.ReportingInstance,
	}
	if s := e.Series; s != nil {
		is.Series = &corev1.EventSeries{Count: s.Count, LastObservedTime: s.LastObservedTime}
		is.Count, is.LastTimestamp = s.Count, second(s.LastObservedTime.Time)
	}
	return is
}

func second(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }
