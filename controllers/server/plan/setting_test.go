// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"testing"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// frozen is how a call ended that a freeze held back.
var frozen = &redfish.NotAskedError{What: "the setting", Err: &power.PostponedError{Cause: errors.New("frozen")}}

func shines(led redfish.IndicatorLED) func(*Seen) {
	return func(s *Seen) { s.BMC.System.LED = led }
}

func wantsLight(led v1alpha1.IndicatorLED) func(*Seen) {
	return func(s *Seen) { s.Server.Spec.IndicatorLED = led }
}

func TestALightOfAStateIsOnRecordBeforeItShines(t *testing.T) {
	located := marks(policies.MarkLocated)
	ask := func(led string) string { return "ask 7/led-" + led + " call.Light{LED:" + led + "} as setting" }
	unmarked := func(s *v1alpha1.Server) { s.Status.Lifecycle.Marks = nil }
	for name, c := range map[string]struct {
		seen  Seen
		state string
		want  want
	}{
		"the mark is permitted and stored first": {seenIn(v1alpha1.StateError, shines(redfish.LEDOff)), "Lit", want{
			acts: []string{"permit setting", "set"}, then: "waits MarkStored 1ms",
			records: func(s *v1alpha1.Server) { s.Status.Lifecycle.Marks = []string{policies.MarkLocated} }}},
		"then the light is asked for": {seenIn(v1alpha1.StateError, shines(redfish.LEDOff), located), "Lit", want{acts: []string{"permit setting", ask("Lit")}}},
		"a light that a person asks for has no mark": {seenIn(v1alpha1.StateError, shines(redfish.LEDOff), wantsLight("Blinking")), "Lit", want{
			acts: []string{"permit setting", ask("Blinking")}}},
		"and takes the mark away": {seenIn(v1alpha1.StateError, shines(redfish.LEDLit), wantsLight("Blinking"), located), "Lit", want{
			acts: []string{"set", "permit setting", ask("Blinking")}, records: unmarked}},
		"it goes out once no state asks for it": {seenIn(v1alpha1.StateAvailable, shines(redfish.LEDLit), located), "", want{acts: []string{"permit setting", ask("Off")}}},
		"and is forgotten once it is out":       {seenIn(v1alpha1.StateAvailable, shines(redfish.LEDOff), located), "", want{acts: []string{"set"}, records: unmarked}},
		"but not while the BMC works":           {seenIn(v1alpha1.StateAvailable, shines(redfish.LEDOff), located, job("7/led-Lit", power.Job{Running: true})), "", want{}},
		"nor by a reading of before the last request": {seenIn(v1alpha1.StateAvailable, shines(redfish.LEDOff), located,
			job("7/led-Lit", power.Job{EndedAt: noon.Add(-time.Second)})), "", want{}},
		"the light of a person stays": {seenIn(v1alpha1.StateAvailable, shines(redfish.LEDLit)), "", want{}},
		"one that shines as asked":    {seenIn(v1alpha1.StateError, shines(redfish.LEDLit), located), "Lit", want{}},
		"one that the BMC accepted":   {seenIn(v1alpha1.StateError, shines(redfish.LEDOff), located, job("7/led-Lit", power.Job{EndedAt: noon.Add(-time.Minute)})), "Lit", want{}},
		"one that failed rests":       {seenIn(v1alpha1.StateError, shines(redfish.LEDOff), located, job("7/led-Lit", failed(time.Minute))), "Lit", want{acts: []string{"wake 9m0s"}}},
		"and is told and asked for again": {seenIn(v1alpha1.StateError, shines(redfish.LEDOff), located, job("7/led-Lit", failed(time.Hour))), "Lit", want{
			acts: []string{"tell LocatorFailed", "forget 7/led-Lit", "permit setting", ask("Lit")}}},
		"a machine without a light":  {seenIn(v1alpha1.StateError), "Lit", want{}},
		"a light that is not known":  {seenIn(v1alpha1.StateError, shines(redfish.LEDUnknown)), "Lit", want{}},
		"a BMC that does not answer": {seenIn(v1alpha1.StateError, shines(redfish.LEDOff), silent), "Lit", want{}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, c.seen, effect(policies.EffectLocate, param("unlessAsked", engine.StringValue(c.state))), c.want)
		})
	}
}

func TestTheBootOrderIsAsserted(t *testing.T) {
	const id = "7/boot-order-Disk,Net"
	wants := func(s *Seen) {
		s.Server.Spec.BootOrder = []v1alpha1.BootOrder{{Name: "n", Priority: 2, Device: "Net"}, {Name: "d", Priority: 1, Device: "Disk"}}
	}
	shows := func(devices ...string) func(*Seen) { return func(s *Seen) { s.BMC.System.BootOrder = devices } }
	asks := []string{"permit setting", "ask " + id + " call.BootOrder{Devices:[Disk Net]} as setting"}
	for name, c := range map[string]struct {
		seen Seen
		want want
	}{
		"by priority, with permission":         {seenIn(v1alpha1.StateAvailable, wants, shows("Net", "Disk")), want{acts: asks, then: "waits WaitsForBootOrder"}},
		"not where none is asked for":          {seenIn(v1alpha1.StateAvailable, shows("Net", "Disk")), want{}},
		"not where the BMC shows it at first":  {seenIn(v1alpha1.StateAvailable, wants, shows("Disk", "Net", "Usb")), want{}},
		"not while the BMC is silent":          {seenIn(v1alpha1.StateAvailable, wants, silent), want{}},
		"not on an old reading":                {seenIn(v1alpha1.StateAvailable, wants, stale), want{acts: []string{"refresh"}, then: "waits WaitsForReading"}},
		"not while the machine may be booting": {seenIn(v1alpha1.StateAvailable, wants, asked(v1alpha1.PowerActionOn, 20*time.Second)), want{acts: []string{"wake 40s"}}},
		"it waits while it is asked for":       {seenIn(v1alpha1.StateAvailable, wants, job(id, power.Job{Running: true})), want{then: "waits WaitsForBootOrder"}},
		"it waits while something else is":     {seenIn(v1alpha1.StateAvailable, wants, job("x", power.Job{Running: true})), want{then: "waits WaitsForBootOrder"}},
		"accepted, it may show after a boot":   {seenIn(v1alpha1.StateAvailable, wants, job(id, power.Job{EndedAt: noon.Add(-time.Minute)})), want{}},
		"refused, it holds nothing back":       {seenIn(v1alpha1.StateAvailable, wants, job(id, failed(time.Minute))), want{acts: []string{"wake 9m0s"}}},
		"and is told and asked for again later": {seenIn(v1alpha1.StateAvailable, wants, job(id, failed(time.Hour))), want{
			acts: append([]string{"tell BootOrderFailed", "forget " + id}, asks...), then: "waits WaitsForBootOrder"}},
		"what was not asked is not told": {seenIn(v1alpha1.StateAvailable, wants, job(id, power.Job{Err: frozen, EndedAt: noon.Add(-time.Hour)})), want{
			acts: append([]string{"forget " + id}, asks...), then: "waits WaitsForBootOrder"}},
	} {
		t.Run(name, func(t *testing.T) { check(t, c.seen, effect(policies.EffectApplyBootOrder), c.want) })
	}
}

func TestAnOverrideThatOutlivedItsBootIsCleared(t *testing.T) {
	const id = "7/clear-override"
	probe := booting(v1alpha1.BootPurposeProbe)
	asks := []string{"forget " + id, "permit setting", "ask " + id + " call.ClearOverride{} as setting"}
	recent := lifecycle(func(l *v1alpha1.LifecycleStatus) { l.EnteredAt = micro(time.Minute) })
	for name, c := range map[string]struct {
		seen Seen
		want want
	}{
		"once the machine has reported":              {seenIn(v1alpha1.StateDiscovery, probe, on, overridden, reported), want{acts: append([]string{"remember"}, asks...)}},
		"and once its time for a first word is over": {seenIn(v1alpha1.StateDiscovery, probe, on, overridden), want{acts: append([]string{"remember"}, asks...)}},
		"not before":           {seenIn(v1alpha1.StateDiscovery, probe, on, overridden, recent), want{acts: []string{"remember", "wake 9m0s"}}},
		"not twice at once":    {seenIn(v1alpha1.StateDiscovery, probe, on, overridden, reported, job(id, power.Job{EndedAt: noon.Add(-20 * time.Second)})), want{acts: []string{"remember", "wake 40s"}}},
		"again where it stays": {seenIn(v1alpha1.StateDiscovery, probe, on, overridden, reported, job(id, power.Job{EndedAt: noon.Add(-2 * time.Minute)})), want{acts: append([]string{"remember"}, asks...)}},
		"a refusal is told and tried on": {seenIn(v1alpha1.StateDiscovery, probe, on, overridden, reported, job(id, failed(time.Hour))), want{
			acts: append([]string{"remember", "tell BootOverrideStays"}, asks...)}},
	} {
		t.Run(name, func(t *testing.T) { check(t, c.seen, effect(policies.EffectPowerOn), c.want) })
	}
}

func TestWhatABootWasSinceItWasAskedFor(t *testing.T) {
	reset := func(s *Seen) {
		s.Server.Status.Operation = &v1alpha1.OperationStatus{ID: "op", Name: v1alpha1.OperationHardRestartServer, FinishedAt: microPtr(time.Minute)}
	}
	for name, c := range map[string]struct {
		seen  Seen
		since time.Duration
		id    string
	}{
		"it came into its entry":        {seenIn(v1alpha1.StateDiscovery), time.Hour, "7"},
		"it was switched on since":      {seenIn(v1alpha1.StateDiscovery, asked(v1alpha1.PowerActionOn, 10*time.Minute)), 10 * time.Minute, "On/2026-05-01T11:50:00Z"},
		"it was switched off since":     {seenIn(v1alpha1.StateDiscovery, asked(v1alpha1.PowerActionForceOff, 10*time.Minute)), time.Hour, "7"},
		"a person restarted it since":   {seenIn(v1alpha1.StateDiscovery, asked(v1alpha1.PowerActionOn, 10*time.Minute), reset), time.Minute, "On/2026-05-01T11:50:00Z/op"},
		"another operation ended since": {seenIn(v1alpha1.StateDiscovery, reset, func(s *Seen) { s.Server.Status.Operation.Name = v1alpha1.OperationRetry }), time.Hour, "7"},
	} {
		if since := noon.Sub(c.seen.bootedSince()); since != c.since {
			t.Errorf("%s: booted since %s, want %s", name, since, c.since)
		}
		if id := bootID(c.seen.Server); id != c.id {
			t.Errorf("%s: the boot is %q, want %q", name, id, c.id)
		}
	}
}
