// SPDX-License-Identifier: Apache-2.0

package power

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

func TestEachStepOfSwitchingOffAMachineThatTheManagerDidNotSwitchOnIsTold(t *testing.T) {
	type request = v1alpha1.PowerRequest
	const on, soft, hard = v1alpha1.PowerActionOn, v1alpha1.PowerActionGracefulShutdown, v1alpha1.PowerActionForceOff
	at := func(minute int) metav1.MicroTime {
		return metav1.NewMicroTime(noon.Add(time.Duration(minute) * time.Minute))
	}
	one := at(1)
	server := func(power v1alpha1.PowerState, r *request) *v1alpha1.Server {
		return &v1alpha1.Server{Status: v1alpha1.ServerStatus{PowerState: power,
			Lifecycle: &v1alpha1.LifecycleStatus{Request: r}}}
	}
	operated := func(s *v1alpha1.Server) *v1alpha1.Server {
		s.Status.Operation = &v1alpha1.OperationStatus{BegunAt: &one}
		return s
	}
	off := []engine.Effect{{Name: policies.EffectPowerOff}}
	wasOff := &request{Action: hard, AskedAt: at(0), ShownAt: &one}
	for name, c := range map[string]struct {
		before, after *v1alpha1.Server
		effects       []engine.Effect
		want          string
	}{
		"one that came on after its power-off": {server("Off", wasOff), server("On", wasOff), off, "SwitchedOnByHand"},
		"one that came on and is asked to shut down at once": {server("Off", wasOff),
			server("On", &request{Action: soft, AskedAt: at(2), Unasked: true}), off, "SwitchedOnByHand ShutdownAsked"},
		"one that was never switched on by the manager": {server("Off", nil), server("On", nil), off, "SwitchedOnByHand"},
		"one that was seen off after its power-on": {server("Off", &request{Action: on, ShownAt: &one}),
			server("On", &request{Action: on, ShownAt: &one}), off, "SwitchedOnByHand"},
		"not one whose power-on comes true": {server("Off", &request{Action: on, Attempts: 1}),
			server("On", &request{Action: on, Attempts: 1, ShownAt: &one}), off, ""},
		"not one whose power-on comes true late": {server("Off", &request{Action: on}), server("On", &request{Action: on}), off, ""},
		"not one that an operation restarted":    {server("Off", wasOff), operated(server("On", wasOff)), off, ""},
		"not one that may be on":                 {server("Off", wasOff), server("On", wasOff), nil, ""},
		"not one that was known to be on":        {server("On", wasOff), server("On", wasOff), off, ""},
		"one whose power is cut after a shutdown": {server("On", &request{Action: soft, AskedAt: at(2), Unasked: true}),
			server("On", &request{Action: hard, AskedAt: at(3), Unasked: true}), off, "ForcedOff"},
		"not one whose power is cut once more": {server("On", &request{Action: hard, AskedAt: at(3), Unasked: true}),
			server("On", &request{Action: hard, AskedAt: at(4), Unasked: true}), off, ""},
		"one that is off": {server("On", &request{Action: hard, AskedAt: at(3), Unasked: true}),
			server("Off", &request{Action: hard, AskedAt: at(3), Unasked: true, ShownAt: &one}), off, "SwitchedOff"},
		"one that comes on again is told anew": {server("Off", &request{Action: soft, AskedAt: at(3), Unasked: true, ShownAt: &one}),
			server("On", &request{Action: soft, AskedAt: at(5), Unasked: true}), off, "SwitchedOnByHand ShutdownAsked"},
		"not one that the manager had switched on": {server("On", &request{Action: on, Attempts: 1, ShownAt: &one}),
			server("On", &request{Action: soft, AskedAt: at(3)}), off, ""},
		"one whose BMC refuses the power-on": {server("Off", &request{Action: on, AskedAt: at(3), Attempts: 1}),
			server("Off", &request{Action: on, AskedAt: at(3), Attempts: 1, RefusedAt: &one, Refusals: 1, Refusal: "locked"}), nil, "PowerRefused"},
		"not the second refusal in a row": {server("Off", &request{Action: on, AskedAt: at(3), Attempts: 1}),
			server("Off", &request{Action: on, AskedAt: at(3), Attempts: 1, RefusedAt: &one, Refusals: 2, Refusal: "locked"}), nil, ""},
		"a server without a lifecycle": {&v1alpha1.Server{}, &v1alpha1.Server{}, off, ""},
	} {
		var reasons []string
		for _, n := range Told(c.before, c.after, c.effects) {
			reasons = append(reasons, n.Reason)
		}
		if got := strings.Join(reasons, " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestAPowerOffRemembersThatTheManagerHadNotSwitchedTheMachineOn(t *testing.T) {
	shown := metav1.NewMicroTime(noon.Add(-30 * time.Minute))
	asked := func(change func(*v1alpha1.PowerRequest)) func(*Input) {
		return func(in *Input) {
			in.Request = &v1alpha1.PowerRequest{Entry: 7, AskedAt: metav1.NewMicroTime(noon.Add(-time.Hour))}
			change(in.Request)
			in.RecordedAt = in.Request.AskedAt.Time
		}
	}
	for name, c := range map[string]struct {
		change func(*Input)
		want   bool
	}{
		"one that it had switched off": {asked(func(r *v1alpha1.PowerRequest) { r.Action, r.ShownAt = v1alpha1.PowerActionForceOff, &shown }), true},
		"one that it had switched on and that went off where it was to be off": {asked(func(r *v1alpha1.PowerRequest) {
			r.Action, r.ShownAt = v1alpha1.PowerActionOn, &shown
		}), true},
		"not one that it had switched on": {asked(func(r *v1alpha1.PowerRequest) {
			r.Action, r.ShownAt, r.Attempts = v1alpha1.PowerActionOn, &shown, 1
		}), false},
		"one that does not shut down": {asked(func(r *v1alpha1.PowerRequest) {
			r.Action, r.Unasked = v1alpha1.PowerActionGracefulShutdown, true
		}), true},
		"not one of its own that does not shut down":                {asked(func(r *v1alpha1.PowerRequest) { r.Action = v1alpha1.PowerActionGracefulShutdown }), false},
		"one that it never asked for anything, and that was off":    {func(in *Input) { in.WasOff = true }, true},
		"not one that it never asked for anything, and that was on": {func(*Input) {}, false},
	} {
		out := Decide(reserved(redfish.PowerOn, wantsOff(time.Minute, true), c.change))
		if out.Ask == "" || out.Request.Unasked != c.want {
			t.Errorf("%s: %s, unasked %t", name, text(out), out.Request.Unasked)
		}
	}
	if out := Decide(reserved(redfish.PowerOff, wantsOn, func(in *Input) { in.WasOff = true })); out.Request.Unasked {
		t.Error("a power-on is called unasked")
	}
}
