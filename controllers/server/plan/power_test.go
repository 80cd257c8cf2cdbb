// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// asked is the stored request for a power change.
func asked(action v1alpha1.PowerAction, ago time.Duration, change ...func(*v1alpha1.PowerRequest)) func(*Seen) {
	return lifecycle(func(l *v1alpha1.LifecycleStatus) {
		l.Request = &v1alpha1.PowerRequest{Action: action, AskedAt: micro(ago), Entry: 7}
		if action == v1alpha1.PowerActionOn {
			l.Request.Attempts = 1
		}
		for _, c := range change {
			c(l.Request)
		}
	})
}

func cameTrue(r *v1alpha1.PowerRequest) { r.ShownAt = microPtr(time.Minute) }

// requests records a request that is made now, and what budgets count of it.
func requests(action v1alpha1.PowerAction, begins []fleet.Action, change ...func(*v1alpha1.Server)) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		l := s.Status.Lifecycle
		l.Request = &v1alpha1.PowerRequest{Action: action, AskedAt: micro(0), Entry: 7}
		if action == v1alpha1.PowerActionOn {
			l.Request.Attempts = 1
		}
		for _, a := range begins {
			fleet.Begin(l, a, micro(0), metav1.Duration{})
		}
		for _, c := range change {
			c(s)
		}
	}
}

const (
	onID    = "On/2026-05-01T12:00:00Z"
	offID   = "ForceOff/2026-05-01T12:00:00Z"
	downID  = "GracefulShutdown/2026-05-01T12:00:00Z"
	network = "{Target:Pxe Media:}"
	iso     = "https://boot/a.iso"
)

// askOn asks for a power-on by these ways.
func askOn(ways, rest, actions string) string {
	return "ask " + onID + " call.PowerOn{Ways:[" + ways + "] Mode: Service:" + rest + "} as " + actions + ", once it is stored, shows later"
}

// media has the boot service publish an image, and the policy boot from it first.
func media(s *Seen) {
	s.MediaURL = "https://boot"
	s.Settings.Boot.Ways = []string{bundle.BootWayVirtualMedia, bundle.BootWayNetwork}
	metav1.SetMetaDataAnnotation(&s.Boot.ObjectMeta, v1alpha1.MediaURLAnnotation, iso)
}

func inserted(s *Seen) { annotated(v1alpha1.MediaInsertedAnnotation, "true")(s) }

// reported has the machine report from what it booted in this entry.
func reported(s *Seen) {
	keeps(func(i *policyv1alpha1.ServerInventory) { i.Report = &policyv1alpha1.ProbeReport{Entry: 7} })(s)
}

func overridden(s *Seen) { s.BMC.System.Boot.Enabled = "Once" }

func recallsAsked(m *Memory) { m.Asked = noon }

// recallsOn is what is remembered of a power-on that is asked for now.
func recallsOn(m *Memory) {
	m.Asked = noon
	m.Boot, _, _ = boots.Watch{}.Look(onID, redfish.BootProgress{})
}

func TestAPowerOnIsPermittedThenRecordedAndAskedForOnceThatIsStored(t *testing.T) {
	probe := booting(v1alpha1.BootPurposeProbe)
	power1 := func(s *Seen) { s.Server.Status.Lifecycle.Marks = nil }
	for name, c := range map[string]struct {
		seen Seen
		want want
	}{
		"of a machine that is off and prepared": {seenIn(v1alpha1.StateDiscovery, probe), want{
			acts: []string{"permit power-on", "set", "remember", "remember", "set", askOn(network, " Inserted:false Overridden:false", "power-on")},
			then: "waits WaitsForPower", records: requests(v1alpha1.PowerActionOn, []fleet.Action{fleet.PowerOn}, managed),
			recalls: recallsOn}},
		"by an image, which is recorded before": {seenIn(v1alpha1.StateDiscovery, probe, media), want{
			acts: []string{"permit power-on", "set", "remember", "remember", "set", "set", "forget 7/eject-media",
				askOn("{Target:Cd Media:"+iso+"} "+network, "https://boot Inserted:false Overridden:false", "power-on")},
			then: "waits WaitsForPower", recalls: nil,
			records: requests(v1alpha1.PowerActionOn, []fleet.Action{fleet.PowerOn}, managed, func(s *v1alpha1.Server) {
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.MediaInsertedAnnotation, "true")
			})}},
		"past an image of a former entry": {seenIn(v1alpha1.StateDiscovery, probe, inserted), want{
			acts: []string{"permit power-on", "set", "remember", "remember", "set", askOn(network, " Inserted:true Overridden:false", "power-on")},
			then: "waits WaitsForPower", records: requests(v1alpha1.PowerActionOn, []fleet.Action{fleet.PowerOn}, managed)}},
		"into a wipe, which a budget counts": {seenIn(v1alpha1.StateCleanup, booting(v1alpha1.BootPurposeWipe)), want{
			acts: []string{"permit wipe and power-on", "set", "remember", "remember", "set",
				askOn(network, " Inserted:false Overridden:false", "wipe and power-on")},
			then: "waits WaitsForPower", records: requests(v1alpha1.PowerActionOn, []fleet.Action{fleet.Wipe, fleet.PowerOn}, managed)}},
		"not before the boot is written":  {seenIn(v1alpha1.StateDiscovery), want{then: "waits WaitsForBoot"}},
		"not before the boot is prepared": {seenIn(v1alpha1.StateDiscovery, booting(v1alpha1.BootPurposeProbe, pending)), want{then: "waits WaitsForBoot"}},
		"not by a way that there is not": {seenIn(v1alpha1.StateDiscovery, probe, func(s *Seen) {
			s.Settings.Boot.Ways = []string{bundle.BootWayVirtualMedia}
		}), want{then: "waits WaitsForBoot"}},
		"not on an old reading":       {seenIn(v1alpha1.StateDiscovery, probe, stale), want{acts: []string{"refresh"}, then: "waits WaitsForReading"}},
		"not while the BMC is silent": {seenIn(v1alpha1.StateDiscovery, probe, silent), want{acts: []string{"refresh"}, then: "waits WaitsForReading"}},
		"not of another machine":      {seenIn(v1alpha1.StateDiscovery, probe, other), want{acts: []string{"refresh", "poll 0s"}, then: "waits WaitsForReading 15s"}},
		"not while the power is unsure": {seenIn(v1alpha1.StateDiscovery, probe, func(s *Seen) { s.BMC.System.Power = redfish.PowerUnknown }), want{
			acts: []string{"poll 0s"}, then: "waits WaitsForPower 15s"}},
		"not while the BMC works":           {seenIn(v1alpha1.StateDiscovery, probe, job("7/led-Lit", power.Job{Running: true})), want{then: "waits WaitsForPower"}},
		"not where no override is shown":    {seenIn(v1alpha1.StateDiscovery, probe, noOverride), want{then: "fails BootOverrideMissing 1m0s"}},
		"not again while it may still show": {seenIn(v1alpha1.StateDiscovery, probe, asked(v1alpha1.PowerActionOn, 20*time.Second)), want{acts: []string{"poll 0s"}, then: "waits WaitsForPower 15s"}},
		"not again at once where it failed": {seenIn(v1alpha1.StateDiscovery, probe, asked(v1alpha1.PowerActionOn, 20*time.Second), job("On/2026-05-01T11:59:40Z", failed(10*time.Second))), want{acts: []string{"set"}, then: "fails RequestFailed 1m20s", records: func(s *v1alpha1.Server) {
			r := s.Status.Lifecycle.Request
			r.Refusal, r.Refusals, r.RefusedAt = "no", 1, microPtr(0)
		}}},
		"nothing of a machine that runs": {seenIn(v1alpha1.StateDiscovery, probe, on), want{}},
		"a shutdown is given up once it runs": {seenIn(v1alpha1.StateDiscovery, probe, on, asked(v1alpha1.PowerActionForceOff, time.Hour, cameTrue)), want{
			acts: []string{"set"}, records: func(s *v1alpha1.Server) { s.Status.Lifecycle.Request = nil }}},
	} {
		t.Run(name, func(t *testing.T) {
			power1(&c.seen)
			if c.want.recalls == nil && strings.Contains(strings.Join(c.want.acts, ","), "remember") {
				c.want.recalls = recallsOn
			}
			check(t, c.seen, func(s Seen) Steps {
				return Effect(s, engine.Effect{Name: policies.EffectPowerOn, Earns: []string{policies.MarkManaged}})
			}, c.want)
		})
	}
}

func managed(s *v1alpha1.Server) { s.Status.Lifecycle.Marks = []string{policies.MarkManaged} }

func pending(b *v1alpha1.ServerBootConfiguration) {
	b.Status.State = v1alpha1.ServerBootConfigurationStatePending
}

func noOverride(s *Seen) { s.BMC.System.Boot.Missing = true }

func TestAPowerOnIsAskedForAgainInANewRecord(t *testing.T) {
	s := seenIn(v1alpha1.StateDiscovery, booting(v1alpha1.BootPurposeProbe), asked(v1alpha1.PowerActionOn, 10*time.Minute), job("On/2026-05-01T11:50:00Z", power.Job{EndedAt: noon.Add(-9 * time.Minute)}))
	check(t, s, effect(policies.EffectPowerOn), want{
		acts:    []string{"permit power-on", "set", "remember", "remember", "set", askOn(network, " Inserted:false Overridden:false", "power-on")},
		then:    "waits WaitsForPower",
		records: requests(v1alpha1.PowerActionOn, []fleet.Action{fleet.PowerOn}, func(s *v1alpha1.Server) { s.Status.Lifecycle.Request.Attempts = 2 }),
		recalls: recallsOn,
	})
}

func TestAPowerOffIsPermittedThenRecordedAndAskedForOnceThatIsStored(t *testing.T) {
	forces := []engine.Param{param("graceful", engine.DurationValue(5*time.Minute)), param("thenForce", engine.BoolValue(true))}
	asks := func(id, action, as string) string {
		return "ask " + id + " call.Reset{Action:" + action + "} as " + as + ", once it is stored, shows later"
	}
	agent := func(s *Seen) {
		asked(v1alpha1.PowerActionOn, 30*time.Minute, cameTrue, func(r *v1alpha1.PowerRequest) { r.Entry = 6 })(s)
		l := s.Server.Status.Lifecycle
		l.EnteredAt = micro(time.Minute)
		l.EnteredCounted = metav1.Duration{Duration: time.Hour}
		s.CountedNow = 61 * 60 * 1e9
		l.History = []v1alpha1.LifecycleMove{{Entry: 7, Rule: "Inspected"}}
		keeps(func(i *policyv1alpha1.ServerInventory) {
			i.Wipe = &policyv1alpha1.WipeReport{Entry: 6, State: policyv1alpha1.WipeVerified}
		})(s)
	}
	for name, c := range map[string]struct {
		seen   Seen
		params []engine.Param
		want   want
	}{
		"first by its operating system": {seenIn(v1alpha1.StateAvailable, on), forces, want{
			acts: []string{"permit shutdown", "set", "remember", "set", asks(downID, "GracefulShutdown", "shutdown")},
			then: "waits WaitsForPower", records: requests(v1alpha1.PowerActionGracefulShutdown, nil), recalls: recallsAsked}},
		"again where the one that another process recorded may not have arrived": {seenIn(v1alpha1.StateAvailable, on, asked(v1alpha1.PowerActionGracefulShutdown, 2*time.Minute)), forces, want{
			acts: []string{"permit shutdown", "ask GracefulShutdown/2026-05-01T11:58:00Z call.Reset{Action:GracefulShutdown} as shutdown, once it is stored, shows later"},
			then: "waits WaitsForPower"}},
		"then by force": {seenIn(v1alpha1.StateAvailable, on, asked(v1alpha1.PowerActionGracefulShutdown, 6*time.Minute),
			job("GracefulShutdown/2026-05-01T11:54:00Z", power.Job{EndedAt: noon.Add(-6 * time.Minute)})), forces, want{
			acts: []string{"permit forced power-off", "set", "remember", "set", asks(offID, "ForceOff", "forced power-off")},
			then: "waits WaitsForPower", records: requests(v1alpha1.PowerActionForceOff, []fleet.Action{fleet.ForcedOff}), recalls: recallsAsked}},
		"at once by force where no grace is given": {seenIn(v1alpha1.StateAvailable, on), nil, want{
			acts: []string{"permit forced power-off", "set", "remember", "set", asks(offID, "ForceOff", "forced power-off")},
			then: "waits WaitsForPower", records: requests(v1alpha1.PowerActionForceOff, []fleet.Action{fleet.ForcedOff}), recalls: recallsAsked}},
		"uncounted where it runs our agent": {seenIn(v1alpha1.StateAvailable, on, agent), nil, want{
			acts: []string{"permit power-off of our agent", "set", "remember", "set", asks(offID, "ForceOff", "power-off of our agent")},
			then: "waits WaitsForPower", recalls: recallsAsked, records: requests(v1alpha1.PowerActionForceOff, nil, func(s *v1alpha1.Server) {
				r := s.Status.Lifecycle.Request
				r.Uncounted, r.AskedCounted = true, metav1.Duration{Duration: 61 * time.Minute}
			})}},
		"nothing of a machine that is off": {seenIn(v1alpha1.StateAvailable), forces, want{}},
		"a power-on that came true is not counted on": {seenIn(v1alpha1.StateAvailable, asked(v1alpha1.PowerActionOn, time.Hour, cameTrue)), forces, want{
			acts: []string{"set"}, records: func(s *v1alpha1.Server) { s.Status.Lifecycle.Request.Attempts = 0 }}},
		"not on an old reading": {seenIn(v1alpha1.StateAvailable, on, stale), nil, want{acts: []string{"refresh"}, then: "waits WaitsForReading"}},
		"a power-on may still come true": {seenIn(v1alpha1.StateAvailable, asked(v1alpha1.PowerActionOn, 30*time.Second)), nil, want{
			acts: []string{"poll 0s"}, then: "waits WaitsForPower 15s"}},
		"an override of a power-on that failed goes": {seenIn(v1alpha1.StateAvailable, overridden), nil, want{
			acts: []string{"forget 7/clear-override", "permit setting", "ask 7/clear-override call.ClearOverride{} as setting"}}},
		"an image goes on the side": {seenIn(v1alpha1.StateAvailable, inserted), nil, want{
			acts: []string{"try permit setting, ask 7/eject-media call.Eject{Service:} as setting, poll 0s, then waits WaitsForEject 15s"}}},
	} {
		t.Run(name, func(t *testing.T) { check(t, c.seen, effect(policies.EffectPowerOff, c.params...), c.want) })
	}
}

func TestTheClaimIsFollowed(t *testing.T) {
	boot := booting(v1alpha1.BootPurposeClaim)
	found := lifecycle(func(l *v1alpha1.LifecycleStatus) {
		l.History = []v1alpha1.LifecycleMove{{From: v1alpha1.StateAvailable, To: v1alpha1.StateReserved, Entry: 7}}
	})
	for name, c := range map[string]struct {
		seen Seen
		want want
	}{
		"to On": {seenIn(v1alpha1.StateReserved, claimed(v1alpha1.PowerOn), boot, found), want{
			acts: []string{"permit power-on", "set", "remember", "remember", "set", askOn(network, " Inserted:false Overridden:false", "power-on")},
			then: "waits WaitsForPower", records: requests(v1alpha1.PowerActionOn, []fleet.Action{fleet.PowerOn}),
			recalls: recallsOn}},
		"to Off, first by its operating system": {seenIn(v1alpha1.StateReserved, claimed(v1alpha1.PowerOff), boot, on), want{
			acts: []string{"permit shutdown", "set", "remember", "set", "ask " + downID + " call.Reset{Action:GracefulShutdown} as shutdown, once it is stored, shows later"},
			then: "waits WaitsForPower", records: requests(v1alpha1.PowerActionGracefulShutdown, nil), recalls: recallsAsked}},
		"what shows in this reconcile counts": {seenIn(v1alpha1.StateReserved, claimed(v1alpha1.PowerOn), boot, on, found,
			asked(v1alpha1.PowerActionOn, 10*time.Second), job("On/2026-05-01T11:59:50Z", power.Job{EndedAt: noon.Add(-9 * time.Second)})), want{
			acts: []string{"set"}, records: func(s *v1alpha1.Server) {
				s.Status.Lifecycle.Request.ShownAt, s.Status.Lifecycle.BootedAt = microPtr(0), microPtr(0)
			}}},
		"one that was switched on by hand runs what it found": {seenIn(v1alpha1.StateReserved, claimed(v1alpha1.PowerOn), boot, on, found), want{
			then: "fails SwitchedOnByHand"}},
		"one that is to be left alone asks for nothing": {seenIn(v1alpha1.StateReserved, claimed(v1alpha1.PowerOn), boot, ignoredClaim), want{}},
	} {
		t.Run(name, func(t *testing.T) { check(t, c.seen, effect(policies.EffectPowerAsClaimed), c.want) })
	}
}

func ignoredClaim(s *Seen) {
	metav1.SetMetaDataAnnotation(&s.Claim.ObjectMeta, v1alpha1.OperationAnnotation, v1alpha1.OperationIgnore)
}
