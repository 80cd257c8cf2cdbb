// SPDX-License-Identifier: Apache-2.0

package eventsink

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 5000, time.UTC)
	later = noon.Add(time.Hour)
)

func event(change ...func(*eventsv1.Event)) *eventsv1.Event {
	e := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "a.1", Namespace: "default"},
		EventTime: metav1.NewMicroTime(noon), ReportingController: "metalaw-server", ReportingInstance: "metalaw-server-host",
		Action: "Move", Reason: "ProbeReported", Note: "moved", Type: "Normal",
		Regarding: corev1.ObjectReference{Kind: "Server", Name: "a"}, Related: &corev1.ObjectReference{Kind: "BMC", Name: "b"}}
	for _, c := range change {
		c(e)
	}
	return e
}

func stored(change ...func(*corev1.Event)) *corev1.Event {
	at := metav1.NewTime(noon.Truncate(time.Second))
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "a.1", Namespace: "default"},
		EventTime: metav1.NewMicroTime(noon), FirstTimestamp: at, LastTimestamp: at, Count: 1,
		Source:              corev1.EventSource{Component: "metalaw-server"},
		ReportingController: "metalaw-server", ReportingInstance: "metalaw-server-host",
		Action: "Move", Reason: "ProbeReported", Message: "moved", Type: "Normal",
		InvolvedObject: corev1.ObjectReference{Kind: "Server", Name: "a"}, Related: &corev1.ObjectReference{Kind: "BMC", Name: "b"}}
	for _, c := range change {
		c(e)
	}
	return e
}

func TestAnEventBearsTheTimesThatOlderReadersLookFor(t *testing.T) {
	for name, c := range map[string]struct{ event, want any }{
		"one that happened once": {stamped(event()), stored()},
		"one that happened again": {
			stamped(event(func(e *eventsv1.Event) {
				e.Series = &eventsv1.EventSeries{Count: 3, LastObservedTime: metav1.NewMicroTime(later)}
			})),
			stored(func(e *corev1.Event) {
				e.Series = &corev1.EventSeries{Count: 3, LastObservedTime: metav1.NewMicroTime(later)}
				e.Count, e.LastTimestamp = 3, metav1.NewTime(later.Truncate(time.Second))
			})},
	} {
		if diff := cmp.Diff(c.want, c.event); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
