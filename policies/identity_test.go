// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/engine"
)

func TestIdentityOf(t *testing.T) {
	for name, c := range map[string]struct {
		same bool
		uuid string
		want string
	}{
		"the one that the Server names":                         {true, "4c4c4544-0000-4000-8000-000000000001", IdentitySame},
		"the one that the Server names, known without its UUID": {true, "", IdentitySame},
		"another one":                                               {false, "4c4c4544-0000-4000-8000-000000000002", IdentityOther},
		"another one, whose UUID is no UUID":                        {false, "system-2", IdentityOther},
		"one that gives no UUID, as a BMC that starts does":         {false, "", IdentityUnknown},
		"one that gives a UUID of blanks":                           {false, "  ", IdentityUnknown},
		"one whose UUID is all zeros":                               {false, "00000000-0000-0000-0000-000000000000", IdentityUnknown},
		"one whose UUID is all zeros, in another spelling":          {false, "urn:uuid:{00000000000000000000000000000000}", IdentityUnknown},
		"one whose UUID is all ones":                                {false, "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", IdentityUnknown},
		"another one, whose UUID begins with zeros":                 {false, "00000000-0000-4000-8000-000000000002", IdentityOther},
		"another one, whose UUID consists of zeros and ones, mixed": {false, "00000000-ffff-0000-ffff-000000000000", IdentityOther},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IdentityOf(c.same, c.uuid); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestOnlyTheServersOwnMachineTellsItsPowerAndHealth(t *testing.T) {
	reading := func(change func(*SystemReading)) SystemReading {
		r := SystemReading{Reachable: true, Power: "Off", Health: "Critical", Faulty: []string{"Memory"}, Identity: IdentitySame, OverrideSet: true}
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		system SystemReading
		want   BMCFacts
	}{
		"it tells all of itself": {reading(func(*SystemReading) {}),
			BMCFacts{Reachable: true, Power: "Off", Health: "Critical", Identity: "Same", OverrideSet: true}},
		"what it does not say is unknown": {reading(func(r *SystemReading) { r.Power, r.Health = "", "" }),
			BMCFacts{Reachable: true, Power: "Unknown", Health: "Unknown", Identity: "Same", OverrideSet: true}},
		"another machine tells nothing of it": {reading(func(r *SystemReading) { r.Identity = IdentityOther }),
			BMCFacts{Reachable: true, Power: "Unknown", Health: "Unknown", Identity: "Other"}},
		"nor does one that does not say which it is": {reading(func(r *SystemReading) { r.Identity = IdentityUnknown }),
			BMCFacts{Reachable: true, Power: "Unknown", Health: "Unknown", Identity: "Unknown"}},
		"nor does one of which nobody compared the identity": {reading(func(r *SystemReading) { r.Identity = "" }),
			BMCFacts{Reachable: true, Power: "Unknown", Health: "Unknown", Identity: "Unknown"}},
		"nor does one that does not answer": {reading(func(r *SystemReading) { r.Reachable = false }),
			BMCFacts{Power: "Unknown", Health: "Unknown", Identity: "Unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Observation{Server: held(), Now: noon, System: c.system}.Facts().BMC
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAnUnknownIdentityIsWaitedOutAndAnotherMachineHalts(t *testing.T) {
	for name, c := range map[string]struct {
		facts  *Facts
		want   []string
		awaits string
		open   engine.Requirement
	}{
		"Reserved prepares the claim's boot and changes nothing on the machine": {
			ours("Reserved", nil), []string{EffectBootAsClaimed}, EffectLocate, sameMachine},
		"Available tidies up nothing before the machine is known to be off": {
			free("Available", nil), nil, EffectPowerOff, sameMachine},
		"Discovery prepares no boot before the machine is known to be off": {
			free("Discovery", nil), nil, EffectBootProbe, probeBeginsFromOff},
		"Discovery keeps the boot that it prepared, and switches nothing on": {
			free("Discovery", func(f *Facts) { f.Boot = BootFacts{Purpose: "Probe", State: "Pending"} }),
			[]string{EffectBootProbe}, EffectPowerOn, sameMachine},
		"Cleanup prepares no wipe": {
			free("Cleanup", func(f *Facts) { f.Claim.Released, f.Lifecycle.Marks = true, []string{MarkDirty, MarkManaged} }),
			[]string{EffectReleaseClaim}, EffectBootWipe, sameMachine},
		"Error shows nothing": {
			free("Error", nil), nil, EffectLocate, sameMachine},
	} {
		t.Run(name, func(t *testing.T) {
			l := defaultLifecycle(t)
			c.facts.BMC = BMCFacts{Power: unknown, Health: unknown, Identity: IdentityUnknown}
			d := l.Decide(c.facts)
			want := &engine.Awaited{Effect: c.awaits, Rule: c.open.Rule, Message: c.open.Doc}
			if d.Halt != nil || d.Moves() {
				t.Fatalf("got %+v, halted by %+v", d, d.Halt)
			}
			if diff := cmp.Diff(c.want, names(d)); diff != "" {
				t.Errorf("effects (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(want, d.Awaits); diff != "" {
				t.Errorf("awaits (-want +got)\n%s", diff)
			}
			c.facts.BMC = BMCFacts{Reachable: true, Power: unknown, Health: unknown, Identity: IdentityOther}
			wantSafetyHalt(t, l.Decide(c.facts), "IdentityFirst")
		})
	}
}
