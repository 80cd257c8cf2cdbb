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

// verifies says that refuses asks the static verifier. Compiling alone checks words and types, and accepts most mutants.
const verifies = true

// refuses says why a bundle is not accepted: the codes of its errors; none where it is accepted.
var refuses = func(files bundle.Files) ([]string, error) {
	b, found, err := bundle.Compile(files, policies.Vocabulary())
	if err != nil {
		return nil, err
	}
	if b != nil {
		found = append(found, verify.Check(b.Lifecycle, policies.AxiomsOf(b.Settings)...).Diagnostics()...)
	}
	var codes []string
	for _, d := range found {
		if d.Severity == diag.Error && !slices.Contains(codes, d.Code) {
			codes = append(codes, d.Code)
		}
	}
	slices.Sort(codes)
	return codes, nil
}

// mustBeRefused says whether a bundle that breaks these rules must not be accepted. That retries go on for ever, and that
// effects undo each other, is for the author to see; nothing is lost by it.
func mustBeRefused(broken []explorer.Rule) bool {
	return slices.ContainsFunc(broken, func(r explorer.Rule) bool {
		return r.Safety() || r == explorer.NoDeadline || r == explorer.Spin
	})
}

// neverRests are the changes by which a server goes round for ever that was to come to rest, though every rule is still there:
// what ends the round is asked too late, or asks for what is never counted.
var neverRests = []string{"a deadline shortened", "a retry not counted"}

// mustRefuse says whether a mutant must not be accepted.
func (v verdict) mustRefuse() bool {
	return mustBeRefused(v.broken) ||
		slices.Contains(neverRests, v.Kind) && slices.Contains(v.broken, explorer.NeverRests)
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
	broken  []explorer.Rule
	shown   string // the history of the first violation
	codes   []string
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
	v.codes, v.err = refuses(files)
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
				case verifies && v.mustRefuse() && len(v.codes) == 0:
					t.Errorf("accepted, though it breaks a rule: %s\n%s", v, v.shown)
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
				if t.Log(v); v.err != nil || (v.mustRefuse() && len(v.codes) == 0) {
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
	if !verifies {
		t.Skip("compiling alone checks words and types")
	}
	for name, b := range badBundles(t) {
		codes, err := refuses(b.files(t))
		if err != nil || (len(codes) == 0 && b.Breaks != explorer.Quarrel) {
			t.Errorf("%s is accepted, though it breaks %s: %s (%v)", name, b.Breaks, b.Mistake, err)
		}
	}
}
