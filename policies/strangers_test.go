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

// standing is where a server stands, as far as it is remembered from one decision to the next.
type standing struct {
	state          engine.State
	managed, dirty bool
}

func (s standing) String() string {
	if s.managed {
		return string(s.state) + " (Managed)"
	}
	return string(s.state)
}

// after is a standing with a decision's marks taken away and added.
func (s standing) after(to engine.State, clears, sets []string) standing {
	s.state = to
	s.managed = (s.managed && !slices.Contains(clears, MarkManaged)) || slices.Contains(sets, MarkManaged)
	s.dirty = (s.dirty && !slices.Contains(clears, MarkDirty)) || slices.Contains(sets, MarkDirty)
	return s
}

// step is one way from a standing to another.
type step struct {
	by string
	to standing
}

// ways is what a lifecycle may do with a machine that was found running: steps from one standing to another, and the
// effects by which it loses its power.
type ways struct {
	steps map[standing][]step
	stops map[standing]string
}

// strange is what is true of a stranger at every moment: no user consented, and no claim holds it that both directions
// agree on. Everything else may change from one decision to the next, its power too. Another machine's answer and one that
// is ignored only hold things back.
var strange = map[string]engine.Value{
	"operation.consented": engine.BoolValue(false),
	"claim.bound":         engine.BoolValue(false),
	"server.ignored":      engine.BoolValue(false),
	"bmc.identity":        engine.EnumValue(IdentitySame),
}

func waysOf(t *testing.T, l *lifecycle.Lifecycle) ways {
	w := ways{steps: map[standing][]step{}, stops: map[standing]string{}}
	for _, state := range l.States() {
		_ = each(t, l, state, strange, func(v *valuation, d engine.Decision) error { // which returns none
			at := standing{state, v.marked(MarkManaged), v.marked(MarkDirty)}
			if d.Moves() {
				w.add(v, at, step{d.Rule, at.after(d.To, d.Clears, d.Marks)})
				return nil
			}
			for _, e := range d.Effects {
				switch {
				case e.Name == engine.MarkEffect:
					mark := e.Param("mark").Text()
					w.add(v, at, step{"Mark " + mark, at.after(state, nil, []string{mark})})
				case len(e.Earns) > 0 && !v.has("bmc.power", "Off"):
					w.add(v, at, step{e.Name, at.after(state, nil, e.Earns)}) // else the machine runs what we told it to from here on
				case cutsPower(e.Name) && !v.has("bmc.power", "Off") && w.stops[at] != e.Name && v.possible():
					w.stops[at] = e.Name
				}
			}
			return nil
		})
	}
	return w
}

// add notes a step that facts show which are possible.
func (w ways) add(v *valuation, from standing, s step) {
	if !slices.Contains(w.steps[from], s) && v.possible() {
		w.steps[from] = append(w.steps[from], s)
	}
}

// toAStop is a shortest way from a standing to an effect that takes the machine's power; empty where there is none.
func (w ways) toAStop(from standing) string {
	type path struct {
		at   standing
		text string
	}
	seen := map[standing]bool{from: true}
	for queue := []path{{from, from.String()}}; len(queue) > 0; queue = queue[1:] {
		p := queue[0]
		if effect, ok := w.stops[p.at]; ok {
			return p.text + ": " + effect
		}
		for _, s := range w.steps[p.at] {
			if !seen[s.to] {
				seen[s.to] = true
				queue = append(queue, path{s.to, fmt.Sprintf("%s, %s, %s", p.text, s.by, s.to)})
			}
		}
	}
	return ""
}

// strangers stand in every state: nothing is remembered of them, or only that there may be data on the machine.
func strangers(l *lifecycle.Lifecycle) []standing {
	var all []standing
	for _, state := range l.States() {
		all = append(all, standing{state: state}, standing{state: state, dirty: true})
	}
	return all
}

func TestNoWayThroughTheDefaultLifecycleStopsAStranger(t *testing.T) {
	l := defaultLifecycle(t)
	w := waysOf(t, l)
	for _, from := range strangers(l) {
		if found := w.toAStop(from); found != "" {
			t.Errorf("without consent or a claim: %s", found)
		}
	}
	// What is walked is what there is: a machine of ours does lose its power, and the ways lead through every state.
	if found := w.toAStop(standing{state: "Available", managed: true}); found != "Available (Managed): PowerOff" {
		t.Errorf("a machine of ours in Available is not stopped, but %q", found)
	}
	reached := map[engine.State]bool{}
	for _, steps := range w.steps {
		for _, s := range steps {
			reached[s.to.state] = true
		}
	}
	for _, state := range l.States() {
		if !reached[state] {
			t.Errorf("no step leads to %s", state)
		}
	}
}

// The rules that make the difference, as the bundle writes them, and as an author might.
const (
	claimSeen     = "- {rule: HeldByClaimSeen, to: Reserved, when: claimed}"
	heldSeen      = "- {rule: HeldByClaimSeen, to: Reserved, when: held}"
	reservedMeans = "    means: Bound to a claim, which owns power and boot; powered off once released.\n"
	probeMeans    = "    means: Booting the probe image and waiting for its report.\n"
	takes         = "    marks: [Managed]\n"
)

func TestTheWalkFindsHowAStrangerIsStopped(t *testing.T) {
	lax := *Vocabulary() // lets a state say that entering it makes a machine ours, and any rule end the observation
	lax.Set, lax.Leave = nil, nil
	for name, c := range map[string]struct {
		rewrite []string
		from    standing
		want    string
	}{
		"a reference that no claim agrees with, in a state that takes what enters it": {
			[]string{claimSeen, heldSeen, reservedMeans, reservedMeans + takes}, standing{state: "Observing"},
			"Observing, HeldByClaimSeen, Reserved (Managed): PowerOff"},
		"a machine that was off for a moment, in a state that takes what enters it": {
			[]string{probeMeans, probeMeans + takes}, standing{state: "Initial"},
			"Initial, ProbeDue, Discovery (Managed): PowerOff"},
		"a claim that is written on a server, in a state that takes what enters it": {
			[]string{reservedMeans, reservedMeans + takes}, standing{state: "Available"},
			"Available, Claimed, Reserved (Managed): PowerOff"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := waysOf(t, rewritten(t, &lax, c.rewrite...)).toAStop(c.from); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			refused := compileErrors(t, c.rewrite...)
			if !strings.Contains(refused, `a state cannot set the mark "Managed"`) {
				t.Errorf("the bundle is not refused, but: %s", refused)
			}
		})
	}
}

// compileErrors is what is wrong with the default lifecycle rewritten.
func compileErrors(t *testing.T, pairs ...string) string {
	t.Helper()
	files, err := Shipped(DefaultBundle)
	if err != nil {
		t.Fatal(err)
	}
	_, found, err := lifecycle.Compile("lifecycle.yaml", []byte(strings.NewReplacer(pairs...).Replace(string(files["lifecycle.yaml"]))), Vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(found)
}

// stranger is a machine found running, of which no user has said anything.
func stranger(state string, change func(*Facts)) *Facts {
	return free(state, func(f *Facts) {
		f.BMC.Power, f.Lifecycle.Marks = "On", nil
		if change != nil {
			change(f)
		}
	})
}

// doesAndEarns is what a decision does, with the marks that this sets.
func doesAndEarns(d engine.Decision) string {
	var all []string
	for _, e := range d.Effects {
		words := strings.TrimSpace(e.Name + " " + e.Param("mark").Text())
		if len(e.Earns) > 0 {
			words += " earns " + strings.Join(e.Earns, " ")
		}
		all = append(all, words)
	}
	return strings.Join(all, ", ")
}

func TestAMachineBecomesOursOnlyByItsBoot(t *testing.T) {
	for name, c := range map[string]struct {
		effect string
		facts  *Facts
		does   string
		awaits string
		halts  string
	}{
		"not by a power-on while it runs already": {
			EffectPowerOn, stranger("Somewhere", nil), "", "", "EarnedByBoot"},
		"not while it is being switched on": {
			EffectPowerOn, stranger("Somewhere", func(f *Facts) { f.BMC.Power = "PoweringOn" }), "", "EarnedByBoot", ""},
		"not while nobody knows whether it is the right one": {
			EffectPowerOn, stranger("Somewhere", func(f *Facts) { f.BMC.Power, f.BMC.Identity = unknown, IdentityUnknown }), "", "IdentityFirst", ""},
		"with the request for a power-on of ours from off": {
			EffectPowerOn, stranger("Somewhere", func(f *Facts) { f.BMC.Power = "Off" }), "PowerOn earns Managed", "", ""},
		"by consent": {
			EffectPowerOn, stranger("Somewhere", func(f *Facts) { f.Operation.Consented = true }), "PowerOn earns Managed", "", ""},
		"by the claim that holds it, which may have data on it as well": {
			EffectBootAsClaimed, ours("Somewhere", func(f *Facts) { f.Lifecycle.Marks = nil }), "Mark Dirty, Mark Managed", "", ""},
		"not by a reference that no claim agrees with": {
			EffectBootAsClaimed, stranger("Somewhere", func(f *Facts) { f.Server.ClaimRefSet, f.Claim.Missing = true, true }), "", "", "OnlyForTheHolder"},
	} {
		t.Run(name, func(t *testing.T) {
			d := hostile(t, "Somewhere", c.effect).Decide(c.facts)
			if c.halts != "" {
				wantSafetyHalt(t, d, c.halts)
				return
			}
			awaits := ""
			if d.Awaits != nil {
				awaits = d.Awaits.Rule
			}
			if d.Halt != nil || awaits != c.awaits {
				t.Fatalf("awaits %q, halted by %+v, want %q", awaits, d.Halt, c.awaits)
			}
			if got := doesAndEarns(d); got != c.does {
				t.Errorf("does %q, want %q", got, c.does)
			}
		})
	}
}

func TestTheDefaultLifecycleLeavesStrangersAlone(t *testing.T) {
	atAge := func(age time.Duration, change func(*Facts)) func(*Facts) {
		return func(f *Facts) {
			f.Lifecycle.Age = age
			change(f)
		}
	}
	off := func(f *Facts) { f.BMC.Power = "Off" }
	unreachable := func(f *Facts) { f.BMC = BMCFacts{Power: unknown, Health: unknown, Identity: IdentityUnknown} }
	for name, c := range map[string]struct {
		facts *Facts
		rule  string
		does  string
	}{
		"one that its owner switches on before our boot of it is observed": {
			stranger("Discovery", nil), "StrangerAppeared", ""},
		"one that is still off is booted, which earns the right to stop it": {
			stranger("Discovery", off), "", "BootProbe, PowerOn earns Managed, Locate"},
		"one of ours that runs in Discovery goes on": {
			free("Discovery", func(f *Facts) {
				f.BMC.Power, f.Boot = "On", BootFacts{Purpose: "Probe", State: "Ready", Ready: true}
			}), "", "BootProbe, PowerOn, Locate"},
		"also where its boot is lost meanwhile": {
			free("Discovery", func(f *Facts) { f.BMC.Power = "On" }), "", "BootProbe, PowerOn, Locate"},
		"one whose wipe was prepared, and that somebody switched on, is observed": {
			stranger("Cleanup", func(f *Facts) { f.Claim.Released, f.Lifecycle.Marks = true, []string{MarkDirty} }), "StrangerBooted", ""},
		"one that was released before it was booted for its claim is observed": {
			stranger("Reserved", func(f *Facts) { f.Server.ClaimRefSet, f.Claim.Released = true, true }), "StrangerReleased", ""},
		"one in Observing stays there, though a reference is written on it that no claim agrees with": {
			stranger("Observing", func(f *Facts) { f.Server.ClaimRefSet, f.Claim.Missing = true, true }), "", ""},
		"and while its claim is still being bound": {
			stranger("Observing", func(f *Facts) { f.Server.ClaimRefSet, f.Claim.Binding = true, true }), "", ""},
		"it goes to the claim that both directions agree on": {
			stranger("Observing", func(f *Facts) { f.Server.ClaimRefSet, f.Claim.Bound = true, true }), "HeldByClaimSeen", ""},
		"which makes it ours before anything else": {
			stranger("Reserved", func(f *Facts) { f.Server.ClaimRefSet, f.Claim.Bound, f.Claim.Power = true, true, "On" }), "", "Mark Dirty, Mark Managed"},
		"also where somebody asks to park it": {
			stranger("Reserved", func(f *Facts) {
				f.Server.ClaimRefSet, f.Claim.Bound, f.Claim.Power, f.Operation.Name = true, true, "On", OperationPark
			}), "", "Mark Dirty, Mark Managed"},
		"or to restart it": {
			stranger("Reserved", func(f *Facts) {
				f.Server.ClaimRefSet, f.Claim.Bound, f.Claim.Power = true, true, "On"
				f.Operation.Name, f.Operation.Reset = "power-cycle-server", true
			}), "", "Mark Dirty, Mark Managed"},
		"nobody waits for the boot of one that is off for ever": {
			stranger("Discovery", atAge(15*time.Minute, off)), "NeverArmed", ""},
		"but one whose power nobody knows is not said to be off": {
			stranger("Discovery", atAge(15*time.Minute, unreachable)), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := defaultLifecycle(t).Decide(c.facts)
			if d.Halt != nil || d.Rule != c.rule || doesAndEarns(d) != c.does {
				t.Errorf("moves by %q and does %q, halted by %+v, want %q and %q", d.Rule, doesAndEarns(d), d.Halt, c.rule, c.does)
			}
		})
	}
}
