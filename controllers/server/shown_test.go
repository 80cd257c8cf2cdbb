// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/plan"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

func TestWhatWasAskedForIsSeenOnlyByAReadingTakenSince(t *testing.T) {
	asked := noon.Add(-10 * time.Second)
	off := func(change ...func(*scope)) *scope {
		return newScope(t, "Reserved", append([]func(*scope){func(v *scope) {
			v.server.Status.Lifecycle.Request = &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionForceOff, AskedAt: metav1.NewMicroTime(asked)}
			v.seen.Memory.Asked = asked
			v.seen.BMC = plan.BMC{Tried: true, Begun: asked.Add(time.Second), At: noon}
			v.seen.BMC.System.Power = redfish.PowerOff
			v.seen.Facts.BMC.Identity = policies.IdentitySame
		}}, change...)...)
	}
	for name, c := range map[string]struct {
		scope *scope
		want  bool
	}{
		"a reading begun since shows it":                 {off(), true},
		"a reading begun at the same time shows nothing": {off(func(v *scope) { v.seen.BMC.Begun = asked }), false},
		"a reading begun before shows nothing":           {off(func(v *scope) { v.seen.BMC.Begun = asked.Add(-time.Millisecond) }), false},
		"a reading of this process shows what another asked, whose clock is ahead": {off(func(v *scope) {
			v.server.Status.Lifecycle.Request.AskedAt = metav1.NewMicroTime(noon.Add(10 * time.Minute))
		}), true},
		"a reading that failed shows nothing":               {off(func(v *scope) { v.seen.BMC.Err = errDown }), false},
		"another machine shows nothing":                     {off(func(v *scope) { v.seen.Facts.BMC.Identity = policies.IdentityOther }), false},
		"the opposite shows nothing":                        {off(func(v *scope) { v.seen.BMC.System.Power = redfish.PowerOn }), false},
		"a power state that nobody knows shows nothing":     {off(func(v *scope) { v.seen.BMC.System.Power = redfish.PowerUnknown }), false},
		"a power state on the way to Off is not Off":        {off(func(v *scope) { v.seen.BMC.System.Power = redfish.PowerPoweringOff }), false},
		"a shutdown is shown by the same reading as a cut":  {off(asks(v1alpha1.PowerActionGracefulShutdown)), true},
		"a power-on is not shown by a machine which is Off": {off(asks(v1alpha1.PowerActionOn)), false},
	} {
		t.Run(name, func(t *testing.T) {
			c.scope.record(engine.Decision{}, loop.Outcome{})
			shown := c.scope.server.Status.Lifecycle.Request.ShownAt
			if got := shown != nil; got != c.want {
				t.Errorf("shown %t, want %t", got, c.want)
			}
			if shown != nil && !shown.Time.Equal(noon) {
				t.Errorf("shown at %s, want %s", shown, noon)
			}
		})
	}
}

func asks(action v1alpha1.PowerAction) func(*scope) {
	return func(v *scope) { v.server.Status.Lifecycle.Request.Action = action }
}

func TestWhenSomethingWasFirstShownIsKept(t *testing.T) {
	v := newScope(t, "Reserved", func(v *scope) {
		at, first := metav1.NewMicroTime(noon.Add(-time.Hour)), metav1.NewMicroTime(noon.Add(-30*time.Minute))
		v.server.Status.Lifecycle.Request = &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionOn, AskedAt: at, ShownAt: &first}
		v.seen.BMC = plan.BMC{Tried: true, Begun: noon, At: noon}
		v.seen.BMC.System.Power = redfish.PowerOn
		v.seen.Facts.BMC.Identity = policies.IdentitySame
	})
	v.record(engine.Decision{}, loop.Outcome{})
	if got := v.server.Status.Lifecycle.Request.ShownAt.Time; !got.Equal(noon.Add(-30 * time.Minute)) {
		t.Errorf("shown at %s", got)
	}
}

func TestAnAgentMayRunOnAMachineOnceItWasSeenOn(t *testing.T) {
	entered := noon.Add(-time.Hour)
	in := func(change ...func(*scope)) *scope {
		return newScope(t, "Discovery", append([]func(*scope){func(v *scope) {
			v.seen.Memory.Enter(v.server, entered)
			v.seen.BMC = plan.BMC{Tried: true, Begun: entered.Add(time.Second), At: noon}
			v.seen.BMC.System.Power = redfish.PowerOn
			v.seen.Facts.BMC.Identity = policies.IdentitySame
		}}, change...)...)
	}
	for name, c := range map[string]struct {
		scope *scope
		want  bool
	}{
		"On":                         {in(), true},
		"not while on its way there": {in(func(v *scope) { v.seen.BMC.System.Power = redfish.PowerPoweringOn }), false},
		"not while Off":              {in(func(v *scope) { v.seen.BMC.System.Power = redfish.PowerOff }), false},
		"not while nobody knows":     {in(func(v *scope) { v.seen.BMC.System.Power = redfish.PowerUnknown }), false},
		"not when the BMC is silent": {in(func(v *scope) { v.seen.BMC.Err = errDown }), false},
		"in an entry that another process began, whose clock is ahead": {in(func(v *scope) {
			v.seen.Memory = plan.Memory{}
			v.server.Status.Lifecycle.EnteredAt = metav1.NewMicroTime(noon.Add(10 * time.Minute))
		}), true},
		"not before the entry began": {in(func(v *scope) { v.seen.BMC.Begun = entered.Add(-time.Second) }), false},
		"not when it is another":     {in(func(v *scope) { v.seen.Facts.BMC.Identity = policies.IdentityOther }), false},
	} {
		t.Run(name, func(t *testing.T) {
			c.scope.record(engine.Decision{}, loop.Outcome{})
			if got := c.scope.server.Status.Lifecycle.SeenOnAt != nil; got != c.want {
				t.Errorf("seen on: %t, want %t", got, c.want)
			}
		})
	}
}
