// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"slices"
	"sync"
	"testing"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/lifecycle/verify"
)

func TestTheDefaultLifecycleVerifies(t *testing.T) {
	for name, settings := range map[string]bundle.Settings{
		"as shipped":                     {Sanitization: bundle.SanitizationRequired, FirstSeen: bundle.FirstSeenObserve},
		"where the wipe is waived":       {Sanitization: bundle.SanitizationNone, FirstSeen: bundle.FirstSeenObserve},
		"where consent is given for all": {Sanitization: bundle.SanitizationRequired, FirstSeen: bundle.FirstSeenManage},
	} {
		t.Run(name, func(t *testing.T) { verifies(t, verify.Check(defaultLifecycle(t), AxiomsOf(settings)...)) })
	}
	verifies(t, verify.Check(defaultLifecycle(t)))
}

func verifies(t *testing.T, r verify.Report) {
	t.Helper()
	for _, f := range r.Findings {
		if f.Severity != diag.Info {
			t.Errorf("%s\n%s", f.Diagnostic, f.Counterexample)
		}
		if f.Counterexample == nil || !f.Counterexample.Confirmed {
			t.Errorf("%s: no facts show it", f.Diagnostic)
		}
	}
	if len(r.Undecided) > 0 {
		t.Errorf("the verifier cannot see into %q", r.Undecided)
	}
}

// TestMistakesInTheDefaultLifecycleAreFound rewrites one line each, as an author might.
func TestMistakesInTheDefaultLifecycleAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		rewrite []string
		want    []string // code and rule of the errors
	}{
		"a wipe that begins without a release does nothing, because its own state revokes it": {
			[]string{"when: released && poweredOff && !claimed}", "when: poweredOff && !claimed}"}, nil},
		"a wipe goes on though it was revoked": {
			[]string{"when: claimed || retained || !released}", "when: claimed || retained}"},
			[]string{"safety-effect Cleanup", "safety-move Wiped", "safety-stay Cleanup"}},
		"a wipe that stands outlives its reason, though every effect asks for it": {
			[]string{"    - ReleaseClaim\n", "    - {do: ReleaseClaim, when: released && !retained}\n",
				"{do: BootWipe, when: \"!unheard && (wipeBoot || poweredOff || !wiping)\"}", "{do: BootWipe, when: released && !retained && !unheard && (wipeBoot || poweredOff || !wiping)}",
				"    - {do: PowerOn, when: \"!unheard\"}\n    - Locate\n    exits:\n    - {rule: WipeRevoked,    to: Error,     when: claimed || retained || !released}",
				"    - {do: PowerOn, when: released && !retained && !unheard}\n    - Locate\n    exits:\n    - {rule: WipeRevoked,    to: Error,     when: claimed || !released}"},
			[]string{"safety-stay Cleanup"}},
		"the power of a claim is followed where the probe is what boots": {
			[]string{"    - {do: BootProbe, when: \"!unheard\"}\n    - {do: PowerOn, when: \"!unheard && (poweredOff || mayStop)\"}", "    - {do: BootProbe, when: \"!held && !unheard\"}\n" +
				"    - {do: PowerAsClaimed, when: claimed && !wantsOff && !wiping && !unheard}\n    - {do: PowerOn, when: \"!held && !unheard && (poweredOff || mayStop)\"}",
				"when: held || dirty}", "when: dirty}"},
			[]string{"safety-effect Discovery"}},
		"Available is entered without proof": {
			[]string{"when: erased && reported, clears", "when: reported, clears"}, []string{"safety-move Wiped"}},
		"the mark is not cleared": {
			[]string{", clears: [Dirty]}", "}"}, []string{"safety-move Wiped"}},
		"a tenant's machine is stopped": {
			[]string{"when: (released || parkAsked) && mayStop && !wiping}", "when: mayStop && !wiping}"}, []string{"safety-effect Reserved"}},
		"a stranger is stopped": {
			[]string{"{do: PowerOff, when: mayStop && !dirty && !wiping}", "{do: PowerOff, when: \"!dirty && !wiping\"}"}, []string{"safety-effect Initial"}},
		"a probe of a machine that is held": {
			[]string{"when: held || dirty}", "when: dirty}"}, []string{"safety-effect Discovery"}},
		"a machine that runs is probed": {
			[]string{"{do: PowerOn, when: \"!unheard && (poweredOff || mayStop)\"}", "{do: PowerOn, when: \"!unheard\"}", "- {rule: StrangerAppeared, to: Observing, when: running && !mayStop}", ""},
			[]string{"safety-effect Discovery", "safety-move ProbeReported"}},
		"an observed machine is touched": {
			[]string{"    - {do: ClearBoot, when: \"!held\"}   # what we prepared never hijacks a reboot of its own", "    - Locate"},
			[]string{"safety-effect Observing"}},
		"two states that send a server to and fro": {
			[]string{`{rule: Returned, to: Initial, when: "!inService"}`, "{rule: Returned, to: Initial, when: inService}"},
			[]string{"livelock HandedOver", "livelock HardwareFault"}},
		"a machine that goes off by itself is taken for ours": {
			[]string{"when: claimed}   # a reference that no claim agrees with says nothing", "when: claimed}\n    - {rule: Back, to: Initial, when: poweredOff}"},
			[]string{"safety-move Back"}},
		"a wipe's boot that is lost is prepared under a running machine": {
			[]string{"    - {rule: WipeBootLost,   to: Initial,   when: running && !wipeBoot && !wiping}   # an erase that runs is let finish\n", ""},
			[]string{"safety-effect Cleanup"}},
		"a machine that was seen running is probed once it went off by itself": {
			[]string{"{rule: StrangerAppeared, to: Observing, when: running && !mayStop}", "{rule: StrangerAppeared, to: Observing, when: running && !poweredOff && !mayStop}"},
			[]string{"safety-effect Discovery", "safety-move ProbeReported"}},
		"a maintenance takes nothing out of service": {
			[]string{"when: inService && !wiping && !wipeBooted, except", "when: inService && !wiping && !wipeBooted && critical, except"},
			[]string{"safety-effect Available", "safety-effect Cleanup", "safety-effect Discovery", "safety-effect Error", "safety-effect Released", "safety-effect Reserved"}},
		"what a maintenance asks for is done to a machine that is parked": {
			[]string{"means: Off and handed to somebody outside; nothing is touched.\n    stable: true\n",
				"means: Off and handed to somebody outside; nothing is touched.\n    stable: true\n    ensure: [AsMaintenanceAsks]\n"},
			[]string{"safety-effect Parked"}},
		"a wipe's boot is prepared beside an erase": {
			[]string{"{do: BootWipe, when: \"!unheard && (wipeBoot || poweredOff || !wiping)\"}", "{do: BootWipe, when: \"!unheard\"}"}, []string{"safety-effect Cleanup"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := verify.Check(rewritten(t, Vocabulary(), c.rewrite...))
			var got []string
			for _, f := range r.Findings {
				if f.Severity != diag.Error {
					continue
				}
				if words := f.Code + " " + f.Rule; !slices.Contains(got, words) {
					got = append(got, words)
				}
				if f.Counterexample == nil || !f.Counterexample.Confirmed {
					t.Errorf("%s: no facts show it", f.Diagnostic)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
				for _, f := range r.Findings {
					if f.Severity != diag.Info {
						t.Logf("%s\n%s", f.Diagnostic, f.Counterexample)
					}
				}
			}
		})
	}
}

// TestBundlesAreCompiledAndVerifiedByManyAtOnce: they share what was made of the vocabulary.
func TestBundlesAreCompiledAndVerifiedByManyAtOnce(t *testing.T) {
	files, words := shippedFiles(t, "no-discovery"), buildVocabulary()
	told := make([]string, 4)
	var all sync.WaitGroup
	for i := range told {
		all.Go(func() {
			compiled, found, err := bundle.Compile(files, words)
			if err != nil || compiled == nil {
				t.Error(err, found)
				return
			}
			told[i] = verify.Check(compiled.Lifecycle, AxiomsOf(compiled.Settings)...).Scenarios()
		})
	}
	all.Wait()
	if told = slices.Compact(told); len(told) > 1 || told[0] == "" {
		t.Errorf("got %q", told)
	}
}

func BenchmarkVerify(b *testing.B) {
	for _, name := range ShippedNames() {
		compiled, found, err := bundle.Compile(shippedFiles(b, name), Vocabulary())
		if err != nil || found.Err() != nil {
			b.Fatal(err, found)
		}
		b.Run("bundle="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if r := verify.Check(compiled.Lifecycle, AxiomsOf(compiled.Settings)...); r.Diagnostics().HasErrors() {
					b.Fatal(r.Diagnostics().Err())
				}
			}
		})
	}
}
