// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/events"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/redfish"
)

func TestARetryAsksABMCThatFailedAtOnce(t *testing.T) {
	for _, operation := range []string{"retry", "retry-failed-state-resource"} {
		inWorld(t, func(w *world) {
			w.devices["b"].change(func(d *device) {
				d.fails = &redfish.AuthError{Address: "b", Status: 401, Until: time.Now().Add(5 * time.Minute)}
			})
			w.pass("b", 3*time.Minute) // the attempts are far apart by now
			w.expect("b", v1alpha1.ConditionReady, "False AuthenticationFailed")
			w.devices["b"].change(func(d *device) { d.fails = nil })
			w.annotate("b", operation)
			w.devices["b"].seen()
			asked := time.Now()
			w.rest("b")
			w.expect("b", v1alpha1.ConditionReady, "True Connected")
			if took := time.Since(asked); took > time.Second {
				t.Errorf("%s: it took %s", operation, took)
			}
			if len(w.retried) != 1 || w.bmc("b").Annotations[v1alpha1.OperationAnnotation] != "" {
				t.Errorf("%s: retried %v, annotations %v", operation, w.retried, w.bmc("b").Annotations)
			}
		})
	}
}

func TestARetryThatComesTooSoonSaysWhenItMayBe(t *testing.T) {
	inWorld(t, func(w *world) {
		w.rest("b")
		w.again = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		w.annotate("b", "retry")
		w.rest("b")
		recorder, ok := w.subject.Recorder.(*events.FakeRecorder)
		if !ok {
			t.Fatal("another recorder")
		}
		var told []string
		for len(recorder.Events) > 0 {
			if e := <-recorder.Events; strings.Contains(e, "RetriedLately") || strings.Contains(e, "UnknownOperation") {
				told = append(told, e)
			}
		}
		if len(told) != 1 || !strings.Contains(told[0], "before 03:04:05 UTC") || w.bmc("b").Annotations[v1alpha1.OperationAnnotation] != "" {
			t.Errorf("told %q", told)
		}
	})
}

func TestNewCredentialsAreTriedAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.devices["b"].change(func(d *device) {
			d.fails = &redfish.AuthError{Address: "b", Status: 401, Until: time.Now().Add(5 * time.Minute)}
		})
		w.pass("b", 3*time.Minute)
		w.expect("b", v1alpha1.ConditionReady, "False AuthenticationFailed")
		w.devices["b"].change(func(d *device) { d.fails = nil })
		s := &v1alpha1.BMCSecret{}
		w.must(w.api.Get(t.Context(), request("b").NamespacedName, s))
		s.Data["password"] = []byte("right")
		w.must(w.api.Update(t.Context(), s))
		if got := w.subject.naming(fieldindex.BMCBySecret)(t.Context(), s); len(got) != 1 || got[0] != request("b") {
			t.Fatalf("a changed BMCSecret wakes %v", got)
		}
		changed := time.Now()
		w.rest("b")
		w.expect("b", v1alpha1.ConditionReady, "True Connected")
		if took := time.Since(changed); took > time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
