// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

// hostile is a bundle of one state that ensures one effect for any facts.
func hostile(t *testing.T, state, effect string) *lifecycle.Lifecycle {
	t.Helper()
	source := fmt.Sprintf(`apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: %[1]s
define:
  always: lifecycle.entry >= 0
states:
  %[1]s:
    means: Does what it likes.
    stable: true
    ensure: [%[2]s]
`, state, effect)
	l, found, err := lifecycle.Compile("lifecycle.yaml", []byte(source), Vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return l
}

// ours is a machine of ours that runs for a claim.
func ours(state string, change func(*Facts)) *Facts {
	f := &Facts{
		Server:    ServerFacts{ReclaimPolicy: "Recycle", ClaimRefSet: true},
		Lifecycle: LifecycleFacts{State: state, Entry: thisEntry, Marks: []string{MarkDirty, MarkManaged}},
		BMC:       BMCFacts{Reachable: true, Power: "On", Health: "OK", Identity: IdentitySame},
		Boot:      BootFacts{Purpose: "Claim", State: "Ready", Ready: true},
		Claim:     ClaimFacts{Bound: true, Power: "On"},
		Probe:     ProbeFacts{Entry: -1},
		Wipe:      WipeFacts{Entry: -1, Budget: time.Hour},
		Operation: OperationFacts{Name: none, Entry: -1},
		Policy:    PolicyFacts{Sanitization: "required"},
	}
	if change != nil {
		change(f)
	}
	return f
}

// free is a machine of ours that is off, clean and without a claim.
func free(state string, change func(*Facts)) *Facts {
	return ours(state, func(f *Facts) {
		f.Server.ClaimRefSet, f.Claim = false, ClaimFacts{Power: none}
		f.Boot = BootFacts{Purpose: none, State: none}
		f.BMC.Power, f.Lifecycle.Marks = "Off", []string{MarkManaged}
		if change != nil {
			change(f)
		}
	})
}

func wantSafetyHalt(t *testing.T, d engine.Decision, rule string) {
	t.Helper()
	if d.Halt == nil || d.Halt.Cause != engine.HaltSafety || !strings.Contains(d.Halt.Message, "would break "+rule+":") {
		t.Fatalf("got %+v, halted by %+v, want a halt that names %s", d, d.Halt, rule)
	}
	if len(d.Effects) > 0 || d.Moves() {
		t.Errorf("it is halted, and does %+v", d)
	}
}

func TestAHostileBundleIsHaltedBy(t *testing.T) {
	for name, c := range map[string]struct {
		effect string
		facts  *Facts
		rule   string
	}{
		"following a claim's power in the middle of an erase": {EffectPowerAsClaimed,
			ours("Reserved", func(f *Facts) { f.Wipe.Running = true }), "NeverCutAnErase"},
		"a machine of ours whose claim is not found": {EffectPowerOff,
			ours("Reserved", func(f *Facts) { f.Claim = ClaimFacts{Missing: true, Power: none} }), "NotInUse"},
		"a wipe within the grace of a release": {EffectBootWipe,
			ours("Cleanup", func(f *Facts) {
				f.BMC.Power, f.Claim = "Off", ClaimFacts{Ended: true, Power: none}
			}), "AbsenceIsNotEvidence"},
		"a machine with data whose reference was cleared": {EffectPowerOff,
			ours("Reserved", func(f *Facts) { f.Server.ClaimRefSet, f.Claim = false, ClaimFacts{Power: none} }), "NotInUse"},
		"a reset of a machine found running": {EffectResetAsAsked,
			free("Available", func(f *Facts) { f.BMC.Power, f.Lifecycle.Marks = "On", nil }), "NotAStranger"},
		"a reset of a machine that may be running": {EffectResetAsAsked,
			free("Available", func(f *Facts) { f.BMC.Power, f.Lifecycle.Marks = "Unknown", nil }), "NotAStranger"},
		"another boot order for a running machine": {EffectApplyBootOrder,
			ours("Reserved", nil), "OrderOnlyWhileOff"},
		"another boot order for a machine that may be running": {EffectApplyBootOrder,
			ours("Reserved", func(f *Facts) { f.BMC.Power = "Unknown" }), "OrderOnlyWhileOff"},
		"a probe prepared under a running stranger": {EffectBootProbe,
			free("Discovery", func(f *Facts) { f.BMC.Power, f.Lifecycle.Marks = "On", nil }), "ProbeBeginsFromOff"},
		"a probe prepared under a running machine that may hold data": {EffectBootProbe,
			free("Discovery", func(f *Facts) { f.BMC.Power, f.Lifecycle.Marks = "On", []string{MarkDirty, MarkManaged} }), "ProbeBeginsFromOff"},
		"a restart that would boot a prepared wipe": {EffectResetAsAsked,
			free("Cleanup", func(f *Facts) {
				f.Claim.Released, f.Boot = true, BootFacts{Purpose: "Wipe", State: "Ready", Ready: true}
				f.Operation.Name, f.Operation.Reset = "force-on-server", true
			}), "NeverWipeByReset"},
		"a restart that would boot the probe on a claim": {EffectResetAsAsked,
			ours("Discovery", func(f *Facts) {
				f.Boot = BootFacts{Purpose: "Probe", State: "Ready", Ready: true}
				f.Operation.Name, f.Operation.Reset = "hard-restart-server", true
			}), "NeverOnAClaim"},
		"the probe, where a claim wants its machine on": {EffectPowerAsClaimed,
			ours("Discovery", func(f *Facts) {
				f.BMC.Power, f.Boot = "Off", BootFacts{Purpose: "Probe", State: "Ready", Ready: true}
			}), "NeverOnAClaim"},
		"a wipe prepared under a running machine of ours": {EffectBootWipe,
			free("Cleanup", func(f *Facts) { f.BMC.Power, f.Claim.Released = "On", true }), "WipeBeginsFromOff"},
		"a wipe that takes the place of the probe which runs": {EffectBootWipe,
			free("Cleanup", func(f *Facts) {
				f.BMC.Power, f.Claim.Released, f.Boot = "On", true, BootFacts{Purpose: "Probe", State: "Ready", Ready: true}
			}), "WipeBeginsFromOff"},
	} {
		t.Run(name, func(t *testing.T) {
			wantSafetyHalt(t, hostile(t, c.facts.Lifecycle.State, c.effect).Decide(c.facts), c.rule)
		})
	}
}

func TestAWipeIsLeftAsSoonAsItMayNotBe(t *testing.T) {
	source := `apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Cleanup
define:
  never: lifecycle.entry < 0
states:
  Cleanup:
    means: May have a wipe booted.
    stable: true
    ensure:
    - {do: BootWipe, when: never}
`
	l, found, err := lifecycle.Compile("lifecycle.yaml", []byte(source), Vocabulary())
	if err != nil || found.Err() != nil {
		t.Fatal(err, found)
	}
	prepared := BootFacts{Purpose: "Wipe", State: "Ready", Ready: true}
	for name, c := range map[string]struct {
		facts *Facts
		rule  string // none where the server may stay
	}{
		"a wipe that is in order":                                  {free("Cleanup", func(f *Facts) { f.Claim.Released, f.Boot = true, prepared }), ""},
		"nothing stands and nothing runs on a machine that is off": {ours("Cleanup", func(f *Facts) { f.BMC.Power = "Off" }), ""},
		"a wipe is prepared, and the record is gone":               {free("Cleanup", func(f *Facts) { f.Boot = prepared }), "AbsenceIsNotEvidence"},
		"a wipe is prepared, and a claim is restored": {
			ours("Cleanup", func(f *Facts) { f.BMC.Power, f.Boot = "Off", prepared }), "AbsenceIsNotEvidence"},
		"a wipe is prepared, and its data is to be retained": {
			free("Cleanup", func(f *Facts) {
				f.Claim.Released, f.Boot, f.Server.ClaimRefSet, f.Server.ReclaimPolicy = true, prepared, true, "Retain"
			}), "NeverWipeRetained"},
		"the machine runs without its boot, and its data is to be retained": {
			free("Cleanup", func(f *Facts) {
				f.Claim.Released, f.BMC.Power, f.Server.ClaimRefSet, f.Server.ReclaimPolicy = true, "On", true, "Retain"
			}), "NeverWipeRetained"},
		"nobody knows whether it runs, and no release is recorded": {
			free("Cleanup", func(f *Facts) { f.BMC.Power = "Unknown" }), "AbsenceIsNotEvidence"},
		"an agent was heard of, and no release is recorded": {
			free("Cleanup", func(f *Facts) { f.Wipe.Running = true }), "AbsenceIsNotEvidence"},
	} {
		t.Run(name, func(t *testing.T) {
			d := l.Decide(c.facts)
			if c.rule != "" {
				wantSafetyHalt(t, d, c.rule)
			} else if d.Halt != nil {
				t.Errorf("it is halted: %+v", *d.Halt)
			}
		})
	}
}

// allowed holds facts under which each effect that touches a machine or says what it boots is allowed.
func allowed(effect, state string) *Facts {
	switch effect {
	case EffectBootProbe, EffectApplyBootOrder, EffectPowerOn:
		return free(state, nil)
	case EffectBootWipe:
		return free(state, func(f *Facts) { f.Claim.Released = true })
	case EffectPowerOff:
		return ours(state, func(f *Facts) { f.Operation.Name = OperationPark })
	default:
		return ours(state, nil)
	}
}

func TestNoBundleCanTouchAServerThatIsToBeLeftAlone(t *testing.T) {
	touching := []string{EffectBootProbe, EffectBootWipe, EffectBootAsClaimed}
	for _, e := range Vocabulary().Effects {
		if e.Touches {
			touching = append(touching, e.Name)
		}
	}
	for _, effect := range touching {
		t.Run(effect, func(t *testing.T) {
			if d := hostile(t, "Somewhere", effect).Decide(allowed(effect, "Somewhere")); d.Halt != nil {
				t.Fatalf("it is halted where nothing speaks against it: %+v", *d.Halt)
			}
			for _, state := range []string{"Parked", "Decommissioned", "Observing", "Maintenance"} {
				wantSafetyHalt(t, hostile(t, state, effect).Decide(allowed(effect, state)), "HandsOff")
			}
			ignored := allowed(effect, "Somewhere")
			ignored.Server.Ignored = true
			wantSafetyHalt(t, hostile(t, "Somewhere", effect).Decide(ignored), "HandsOff")
		})
	}
	if d := hostile(t, "Maintenance", EffectMaintain).Decide(free("Maintenance", nil)); d.Halt != nil {
		t.Errorf("what the maintenance asks for is halted: %+v", *d.Halt)
	}
}

// names lists what a decision does.
func names(d engine.Decision) []string {
	var all []string
	for _, e := range d.Effects {
		all = append(all, e.Name)
	}
	return all
}

func TestTheDefaultLifecycleFollowsAClaim(t *testing.T) {
	for name, c := range map[string]struct {
		facts *Facts
		want  []string
	}{
		"off before it sees to the boot, so that a boot which fails holds nothing back": {
			ours("Reserved", func(f *Facts) { f.Claim.Power, f.Boot = "Off", BootFacts{Purpose: none, State: none} }),
			[]string{EffectPowerAsClaimed, EffectBootAsClaimed, EffectLocate}},
		"off although Dirty has still to be stored": {
			ours("Reserved", func(f *Facts) { f.Claim.Power, f.Lifecycle.Marks = "Off", []string{MarkManaged} }),
			[]string{EffectPowerAsClaimed, engine.MarkEffect}},
		"on after the boot": {
			ours("Reserved", nil), []string{EffectBootAsClaimed, EffectLocate, EffectPowerAsClaimed}},
		"with the boot order while off": {
			ours("Reserved", func(f *Facts) { f.BMC.Power = "Off" }),
			[]string{EffectBootAsClaimed, EffectApplyBootOrder, EffectLocate, EffectPowerAsClaimed}},
		"with a reset before anything that only shows": {
			ours("Reserved", func(f *Facts) { f.Operation.Name, f.Operation.Reset = "power-cycle-server", true }),
			[]string{EffectBootAsClaimed, EffectResetAsAsked, EffectLocate, EffectPowerAsClaimed}},
		"but not its power while an agent still erases": {
			ours("Reserved", func(f *Facts) { f.Claim.Power, f.Wipe.Running = "Off", true }),
			[]string{EffectBootAsClaimed, EffectLocate}},
	} {
		t.Run(name, func(t *testing.T) {
			d := defaultLifecycle(t).Decide(c.facts)
			if d.Halt != nil || d.Moves() || !slices.Equal(names(d), c.want) {
				t.Errorf("does %v, halted by %+v, want %v", names(d), d.Halt, c.want)
			}
		})
	}
}

func TestTheDefaultLifecycleLeavesTheBootOrderOfARunningMachine(t *testing.T) {
	d := defaultLifecycle(t).Decide(free("Available", func(f *Facts) { f.BMC.Power = "On" }))
	if want := []string{EffectPowerOff, EffectForgetHolder, EffectClearBoot, EffectLocate}; d.Halt != nil || !slices.Equal(names(d), want) {
		t.Errorf("does %v, halted by %+v, want %v", names(d), d.Halt, want)
	}
}

func TestAServerThatWasParkedIsHaltedByABundleWithoutThatState(t *testing.T) {
	parked := free("", func(f *Facts) { f.Server.Parked, f.Lifecycle.Entry = true, 0 })
	d := hostile(t, "Somewhere", EffectLocate).Start(parked)
	if d.Halt == nil || d.Halt.Cause != engine.HaltUnknownState || d.Moves() || len(d.Effects) > 0 {
		t.Errorf("it begins: %+v, halted by %+v", d, d.Halt)
	}
	if d := hostile(t, "Somewhere", EffectLocate).Start(free("", nil)); d.To != "Somewhere" {
		t.Errorf("one that was not parked does not begin: %+v, halted by %+v", d, d.Halt)
	}
}

func TestAServerThatWasParkedBeginsParkedWhateverItsBundleSays(t *testing.T) {
	parked := func(state string) *Facts {
		return free(state, func(f *Facts) { f.Server.Parked, f.Lifecycle.Entry = true, 0 })
	}
	const still = "    - {rule: StillParked,    to: Parked,    when: wasParked}\n"
	for name, c := range map[string]struct {
		l    *lifecycle.Lifecycle
		rule string
	}{
		"by a rule of its own":        {defaultLifecycle(t), "StillParked"},
		"where there is no such rule": {rewritten(t, Vocabulary(), still, "", "  wasParked:    server.parked\n", ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if d := c.l.Start(parked("")); d.Halt != nil || d.To != "Parked" || d.Rule != c.rule {
				t.Errorf("it begins in %s by %q, halted by %+v", d.To, d.Rule, d.Halt)
			}
			if !c.l.HasEdge("", "Parked") {
				t.Error("admission would not let it")
			}
			if d := c.l.Start(free("", nil)); d.To == "Parked" {
				t.Error("one that was not parked begins parked")
			}
		})
	}
}

func TestARuleParksAMachineOnlyOnceItIsSeenToBeOff(t *testing.T) {
	hasty := rewritten(t, Vocabulary(), "when: parkAsked && poweredOff && !released}", "when: parkAsked && !released}",
		"\ninvariants:", "\nmigrate: {Lent: Parked}\n\ninvariants:")
	asked := func(state, power string) *Facts {
		return ours(state, func(f *Facts) { f.Operation.Name, f.BMC.Power = OperationPark, power })
	}
	for name, c := range map[string]struct {
		decision     engine.Decision
		becomes, law string
	}{
		"one that is off":                                 {hasty.Decide(asked("Reserved", "Off")), "Parked", ""},
		"one that runs":                                   {hasty.Decide(asked("Reserved", "On")), "Reserved", "ParkedOnlyOff"},
		"one that goes down":                              {hasty.Decide(asked("Reserved", "PoweringOff")), "Reserved", "ParkedOnlyOff"},
		"one of which nothing is known":                   {hasty.Decide(asked("Reserved", "Unknown")), "Reserved", "ParkedOnlyOff"},
		"one that runs where somebody forces it there":    {hasty.Enter(asked("Reserved", "On"), "Parked"), "Parked", ""},
		"one that runs in a state that migrates there":    {hasty.Decide(asked("Lent", "On")), "Parked", ""},
		"one that runs and was parked before":             {hasty.Start(free("", func(f *Facts) { f.Server.Parked, f.BMC.Power = true, "On" })), "Parked", ""},
		"one that was parked, as long as its BMC is away": {hasty.Start(free("", func(f *Facts) { f.Server.Parked, f.BMC.Power = true, "Unknown" })), "Parked", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.law != "" {
				if h := c.decision.Halt; h == nil || h.Cause != engine.HaltSafety || !strings.Contains(h.Message, c.law) {
					t.Fatalf("it is halted by %+v, and goes to %s", h, c.decision.To)
				}
			}
			if string(c.decision.To) != c.becomes || (c.decision.Halt != nil) != (c.law != "") {
				t.Errorf("it becomes %s, halted by %+v", c.decision.To, c.decision.Halt)
			}
		})
	}
}
