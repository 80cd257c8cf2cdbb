// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

func badRequest(says string) error {
	return &redfish.ResponseError{Address: "bmc", Method: "PATCH", Path: "/redfish/v1/Systems/1", Status: 400, Message: says}
}

func TestARefusedPowerOnIsLoud(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		m.refuses = func(asked string) error {
			if asked == "SetBootOnce" {
				return badRequest("The property BootSourceOverrideTarget is not writable")
			}
			return nil
		}
		w := inWorld(t, m, reserved(v1alpha1.PowerOn)...)
		w.manager.run(5 * time.Second)
		r := w.server().Status.Lifecycle.Request
		if r == nil || r.Refusals != 1 || r.RefusedAt == nil || !strings.Contains(r.Refusal, "BootSourceOverrideTarget is not writable") {
			t.Fatalf("after the first refusal %+v", r)
		}
		told := func() (n int) {
			for i, reason := range w.events {
				if reason == v1alpha1.ReasonPowerRefused {
					if n++; !strings.Contains(w.said[i], "The BMC refuses the power-on") || !strings.Contains(w.said[i], "is not writable") {
						t.Errorf("told %q", w.said[i])
					}
				}
			}
			return n
		}
		if told() != 1 {
			t.Errorf("events %q", w.events)
		}
		w.start().run(5 * time.Second) // another process: it heard nothing of the BMC
		if r := w.server().Status.Lifecycle.Request; r.Refusals != 1 || !strings.Contains(r.Refusal, "is not writable") {
			t.Errorf("after a restart %+v", r)
		}
		if ready := meta.FindStatusCondition(w.server().Status.Conditions, v1alpha1.ConditionReady); ready == nil || !strings.Contains(ready.Message, "is not writable") {
			t.Errorf("after a restart Ready says %+v", ready)
		}
		w.manager.run(5 * time.Minute)
		if r := w.server().Status.Lifecycle.Request; r.Refusals < 3 {
			t.Errorf("five minutes later %+v", r)
		}
		if told() != 1 {
			t.Errorf("told %d times: %q", told(), w.events)
		}
		m.mu.Lock()
		m.refuses = nil
		m.mu.Unlock()
		w.manager.run(9 * time.Minute)
		if r := w.server().Status.Lifecycle.Request; r.Refusals != 0 || r.Refusal != "" || r.ShownAt == nil {
			t.Errorf("once it is on %+v", r)
		}
	})
}

func TestAFewEqualRefusalsEndInError(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(n int) error
		want   v1alpha1.ServerState
	}{
		"the same each time":         {func(int) error { return badRequest("ResetType is not supported") }, v1alpha1.StateError},
		"a conflict, which may pass": {func(int) error { return &redfish.ResponseError{Method: "POST", Status: 409} }, v1alpha1.StateInitial},
		"an account without a right": {func(int) error { return &redfish.AuthError{Status: 403} }, v1alpha1.StateInitial},
		"a write that lost a race":   {func(int) error { return &redfish.ResponseError{Method: "POST", Status: 412} }, v1alpha1.StateInitial},
		"an iLO that is busy": {func(int) error {
			return &redfish.ResponseError{Method: "POST", Status: 400, MessageID: "iLO.2.14.UnableToModifyRightNow"}
		}, v1alpha1.StateInitial},
		"one or the other by turns":   {func(n int) error { return badRequest([]string{"no", "never"}[n%2]) }, v1alpha1.StateInitial},
		"a BMC that was switched off": {func(int) error { return &redfish.UnreachableError{Method: "POST"} }, v1alpha1.StateInitial},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOn)
				n := 0
				m.refuses = func(asked string) error {
					if asked == "ForceOff" {
						n++
						return c.answer(n)
					}
					return nil
				}
				w := inWorld(t, m, serverIn(v1alpha1.StateInitial, func(s *v1alpha1.Server) {
					s.Status.Lifecycle.EnteredAt = metav1.NewMicroTime(time.Now())
				}))
				w.manager.run(10 * time.Minute)
				if s := w.server(); s.Status.State != v1alpha1.StateInitial {
					t.Errorf("after ten minutes, in which a BMC may take new firmware, %s by %s", s.Status.State, s.Status.Lifecycle.Rule)
				}
				w.manager.run(2 * time.Minute)
				s := w.server()
				if s.Status.State != c.want || c.want == v1alpha1.StateError && s.Status.Lifecycle.Rule != "PowerOffRefused" {
					t.Errorf("%s by %s, %+v", s.Status.State, s.Status.Lifecycle.Rule, s.Status.Lifecycle.Request)
				}
				if c.want == v1alpha1.StateError && (n != 4 || !strings.Contains(s.Status.Lifecycle.Request.Refusal, "is not supported")) {
					t.Errorf("asked %d times, kept is %+v", n, s.Status.Lifecycle.Request)
				}
			})
		})
	}
}
