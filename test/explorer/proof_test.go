// SPDX-License-Identifier: Apache-2.0

package explorer_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/lifecycle/verify"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/test/explorer"
	"github.com/metalaw/metalaw/test/explorer/mutation"
)

// refusal is why a bundle is not accepted.
type refusal struct {
	// codes are those of its errors; none where it is accepted.
	codes []string
	// compiles says that there is a lifecycle, which the static verifier was asked about.
	compiles bool
}

func refuses(files bundle.Files) (refusal, error) {
	b, found, err := bundle.Compile(files, policies.Vocabulary())
	if err != nil {
		return refusal{}, err
	}
	r := refusal{compiles: b != nil}
	if r.compiles {
		found = append(found, verify.Check(b.Lifecycle, policies.AxiomsOf(b.Settings)...).Diagnostics()...)
	}
	for _, d := range found {
		if d.Severity == diag.Error && !slices.Contains(r.codes, d.Code) {
			r.codes = append(r.codes, d.Code)
		}
	}
	slices.Sort(r.codes)
	return r, nil
}

// ofSafety are the codes of errors that tell of a safety rule. That a rule never fires, or leads round and round, says nothing
// of what a machine suffers.
var ofSafety = []string{verify.CodeSafetyMove, verify.CodeSafetyEffect, verify.CodeSafetyStay, verify.CodeDestination, verify.CodeInitialGuarded, "mark-earned", "mark-kept"}

// holds says that a bundle which breaks these rules is refused as it must be: where machines or data are concerned for that,
// as far as there is a lifecycle to be asked. That retries go on for ever is for the author to see; nothing is lost by it.
func (r refusal) holds(broken []explorer.Rule) bool {
	unsafe := slices.ContainsFunc(broken, explorer.Rule.Safety)
	switch {
	case unsafe && r.compiles:
		return slices.ContainsFunc(r.codes, func(code string) bool { return slices.Contains(ofSafety, code) })
	case unsafe, slices.ContainsFunc(broken, func(b explorer.Rule) bool { return b != explorer.NeverRests }):
		return len(r.codes) > 0
	}
	return true
}

// neverRests are the changes by which a server goes round for ever that was to come to rest, though every rule is still there:
// what ends the round is asked too late, or asks for what is never counted.
var neverRests = []string{"a deadline shortened", "a retry not counted"}

// slips says that a mutant breaks a rule and is not refused as it must be.
func (v verdict) slips() bool {
	return !v.holds(v.broken) ||
		slices.Contains(neverRests, v.Kind) && slices.Contains(v.broken, explorer.NeverRests) && len(v.codes) == 0
}

// sample is how many mutants are left out for each that is tried, where not all are: they differ from day to day only when
// the lifecycle does.
const sample = 12

// depth is how far mutants are explored.
func depth() explorer.Options {
	o := explorer.Quick
	if !whole() {
		o.Disturbances, o.Walks = 2, 100
	}
	return o
}

// verdict is what the explorer and the engine say of one mutant.
type verdict struct {
	mutation.Mutant
	refusal
	broken  []explorer.Rule
	shown   string // the history of the first violation
	differs string // from the original; empty where no history tells them apart
	err     error
}

func (v verdict) String() string {
	switch {
	case v.err != nil:
		return fmt.Sprintf("%s: %v", v.Mutant, v.err)
	case len(v.broken) > 0:
		return fmt.Sprintf("%s: breaks %s; refused: %v", v.Mutant, joined(v.broken), v.codes)
	case v.differs == "":
		return fmt.Sprintf("%s: no history tells it from the original; refused: %v", v.Mutant, v.codes)
	default:
		return fmt.Sprintf("%s: breaks nothing; %s; refused: %v", v.Mutant, v.differs, v.codes)
	}
}

func joined(rules []explorer.Rule) string {
	words := make([]string, 0, len(rules))
	for _, r := range rules {
		words = append(words, string(r))
	}
	return strings.Join(words, ", ")
}

// prover judges the mutants of one bundle.
type prover struct {
	files    bundle.Files
	original *explorer.Machine
	result   explorer.Result
}

func newProver(t *testing.T, name string) prover {
	t.Helper()
	p := prover{files: shipped(t, name)}
	var err error
	if p.original, err = explorer.Load(p.files); err != nil {
		t.Fatal(err)
	}
	p.result = p.original.Explore(depth())
	return p
}

func (p prover) judge(original *explorer.Machine, m mutation.Mutant) verdict {
	v := verdict{Mutant: m}
	files := maps.Clone(p.files)
	files[bundle.LifecycleFile] = m.Lifecycle
	mutant, err := explorer.Load(files)
	if err != nil {
		v.err = err
		return v
	}
	r := mutant.Explore(depth())
	for _, b := range r.Violations {
		v.broken = append(v.broken, b.Rule)
	}
	if len(r.Violations) > 0 {
		v.shown = r.Violations[0].String()
	} else {
		v.differs = p.result.Difference(original, mutant)
	}
	v.refusal, v.err = refuses(files)
	return v
}

// all judges mutants at once, with as many machines as there are processors.
func (p prover) all(t *testing.T, mutants []mutation.Mutant) []verdict {
	t.Helper()
	verdicts := make([]verdict, len(mutants))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		original, err := explorer.Load(p.files) // each its own: playing keeps what it evaluated
		if err != nil {
			t.Fatal(err)
		}
		workers.Go(func() {
			for i := range next {
				verdicts[i] = p.judge(original, mutants[i])
			}
		})
	}
	for i := range mutants {
		next <- i
	}
	close(next)
	workers.Wait()
	return verdicts
}

func TestWhatBreaksARuleIsRefused(t *testing.T) {
	for _, name := range bundles {
		t.Run(name, func(t *testing.T) {
			mutants, err := mutation.All(shipped(t, name)[bundle.LifecycleFile])
			if err != nil {
				t.Fatal(err)
			}
			if len(mutants) < 100 {
				t.Errorf("there are only %d mutants", len(mutants))
			}
			if !whole() {
				mutants = every(sample, mutants)
			}
			began := time.Now()
			verdicts := newProver(t, name).all(t, mutants)
			for _, v := range verdicts {
				switch {
				case v.err != nil:
					t.Errorf("%s", v)
				case v.slips():
					t.Errorf("not refused for the rule that it breaks: %s\n%s", v, v.shown)
				default:
					t.Log(v)
				}
			}
			s := summed(verdicts)
			t.Logf("%d mutants in %s\n%s", len(mutants), time.Since(began).Round(time.Second), s)
			if whole() {
				wantEverySafetyRule(t, name, s)
				writeProof(t, name, s)
			}
		})
	}
}

func TestWhatGoesRoundForEverIsRefused(t *testing.T) {
	for _, name := range bundles {
		t.Run(name, func(t *testing.T) {
			mutants, err := mutation.All(shipped(t, name)[bundle.LifecycleFile])
			if err != nil {
				t.Fatal(err)
			}
			mutants = slices.DeleteFunc(mutants, func(m mutation.Mutant) bool { return !slices.Contains(neverRests, m.Kind) })
			for _, v := range newProver(t, name).all(t, mutants) {
				if t.Log(v); v.err != nil || v.slips() {
					t.Errorf("%s\n%s", v, v.shown)
				}
			}
		})
	}
}

func every(nth int, mutants []mutation.Mutant) []mutation.Mutant {
	var some []mutation.Mutant
	for i := 0; i < len(mutants); i += nth {
		some = append(some, mutants[i])
	}
	return some
}

// moot says which safety rules no lifecycle of a bundle can break, and why.
func moot(b *bundle.Bundle) map[explorer.Rule]string {
	all := map[explorer.Rule]string{}
	if b.Settings.Sanitization == bundle.SanitizationNone {
		all[explorer.ClearOnlyOnProof] = "the wipe is waived"
	}
	if !slices.ContainsFunc(b.Lifecycle.States(), func(s engine.State) bool { return b.Lifecycle.Ensures(s, policies.EffectBootWipe) }) {
		all[explorer.NeverCutAnErase] = "nothing is ever erased"
	}
	if b.Settings.FirstSeen == bundle.FirstSeenManage {
		for _, rule := range []explorer.Rule{explorer.NotAStranger, explorer.EarnedByBoot, explorer.NotInUse} {
			all[rule] = "the settings consent for every machine"
		}
	}
	return all
}

// A proof about a rule that nothing breaks would prove nothing about it.
func wantEverySafetyRule(t *testing.T, name string, s summary) {
	t.Helper()
	b, _, err := bundle.Compile(shipped(t, name), policies.Vocabulary())
	if err != nil || b == nil {
		t.Fatalf("bundle %s does not compile: %v", name, err)
	}
	for _, rule := range explorer.Rules {
		why, isMoot := moot(b)[rule]
		switch {
		case !rule.Safety():
		case isMoot:
			t.Logf("%s cannot be broken: %s", rule, why)
		case s.rules[rule] == 0:
			t.Errorf("no mutant breaks %s", rule)
		}
	}
}

func TestBadBundlesAreRefused(t *testing.T) {
	for name, b := range badBundles(t) {
		r, err := refuses(b.files(t))
		r.compiles = true // its author has seen to that: whatever it is refused for is the mistake itself
		if err != nil || !r.holds([]explorer.Rule{b.Breaks}) {
			t.Errorf("%s breaks %s, and is not refused for that, but for %v: %s (%v)", name, b.Breaks, r.codes, b.Mistake, err)
		}
	}
}
