// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

const (
	thisEntry      = 7
	wipeBudgetHere = time.Hour
)

// domains says which values an exhaustive check gives each fact. For every fact the values cover each comparison that
// the shipped lifecycles and the safety rules make. The state has one value, and the ages come from the deadlines; see agesOf.
var domains = map[string][]engine.Value{
	"server.claimRefSet":    bools(),
	"server.reclaimPolicy":  enums("Recycle", "Retain"),
	"server.parked":         bools(),
	"server.parkedFrom":     enums("None", "Error", "Released"),
	"server.ignored":        bools(),
	"server.decommission":   bools(),
	"lifecycle.entry":       {engine.IntValue(thisEntry)},
	"lifecycle.retries":     {engine.IntValue(0), engine.IntValue(3)},
	"request.refused":       {engine.IntValue(0), engine.IntValue(4)},
	"lifecycle.marks":       {set(), set(MarkManaged), set(MarkDirty), set(MarkManaged, MarkDirty), set(MarkStranger), set(MarkDirty, MarkStranger)},
	"bmc.power":             enums("On", "Off", "PoweringOn", "Unknown"),
	"bmc.health":            enums("OK", "Critical", "Unknown"),
	"bmc.identity":          enums("Same", "Other", "Unknown"),
	"boot.purpose":          enums("None", "Probe", "Wipe", "Claim", "Maintenance"),
	"boot.ready":            bools(),
	"boot.unheard":          bools(),
	"claim.bound":           bools(),
	"claim.binding":         bools(),
	"claim.missing":         bools(),
	"claim.released":        bools(),
	"claim.ended":           bools(),
	"claim.power":           enums("On", "Off", "None"),
	"probe.entry":           {engine.IntValue(thisEntry), engine.IntValue(thisEntry - 1), engine.IntValue(-1)},
	"probe.complete":        bools(),
	"probe.dataFound":       bools(),
	"wipe.entry":            {engine.IntValue(thisEntry), engine.IntValue(thisEntry - 1)},
	"wipe.running":          bools(),
	"wipe.verified":         bools(),
	"wipe.failed":           bools(),
	"wipe.excusedOnly":      bools(),
	"wipe.attested":         bools(),
	"wipe.budget":           {engine.DurationValue(wipeBudgetHere)},
	"maintenance.granted":   bools(),
	"maintenance.ours":      bools(),
	"maintenance.consented": bools(),
	"operation.name":        enums("None", "park", "unpark", "retry", "force-off-server", "sanitize", "undo-release", "recommission"),
	"operation.entry":       {engine.IntValue(thisEntry), engine.IntValue(thisEntry - 1)},
	"operation.reset":       bools(),
	"operation.consented":   bools(),
	"policy.sanitization":   enums("required", "none"),
	"hardware.manufacturer": {engine.StringValue("")},
}

func bools() []engine.Value { return []engine.Value{engine.BoolValue(false), engine.BoolValue(true)} }

func enums(words ...string) []engine.Value {
	var all []engine.Value
	for _, w := range words {
		all = append(all, engine.EnumValue(w))
	}
	return all
}

func set(words ...string) engine.Value { return engine.SetValue(words) }

// valuation is one combination of facts after another. A fact gets a value when a decision, or a question about it, asks for one.
// A combination of the facts that were asked for stands for all that hold them. Combinations that cannot occur are left out.
type valuation struct {
	domains [][]engine.Value
	// at says which value of its domain each fact has; -1 where nothing asked for it. asked are the others, in order.
	at, asked  []int
	exclusions []func(*valuation) bool
	// judging: the facts are asked for by a question about a decision, and not by the decision.
	judging bool
	// purposes are the boots of ours that the state has.
	purposes []string
}

// newValuation is the first combination. Each of the fixed facts has one value.
func newValuation(t *testing.T, l *lifecycle.Lifecycle, state engine.State, fixed map[string]engine.Value) *valuation {
	t.Helper()
	words := Vocabulary()
	v := &valuation{domains: make([][]engine.Value, len(words.Facts)), at: make([]int, len(words.Facts)),
		purposes: []string{none, "Claim"}, exclusions: exclusions}
	for i, f := range words.Facts {
		v.at[i] = -1
		switch value, ok := fixed[f.Name]; {
		case ok:
			v.domains[i] = []engine.Value{value}
		case f.Name == engine.FactState:
			v.domains[i] = []engine.Value{engine.StringValue(string(state))}
		case f.Name == engine.FactAge:
			v.domains[i] = agesOf(t, l, state)
		default:
			v.domains[i] = domains[f.Name]
		}
	}
	for purpose, effect := range map[string]string{"Probe": EffectBootProbe, "Wipe": EffectBootWipe, "Maintenance": EffectMaintain} {
		if l.Ensures(state, effect) {
			v.purposes = append(v.purposes, purpose)
		}
	}
	return v
}

// Fact implements engine.Facts.
func (v *valuation) Fact(i int) engine.Value {
	if v.at[i] < 0 {
		if len(v.domains[i]) == 0 {
			panic("no domain for the fact " + Vocabulary().Facts[i].Name)
		}
		v.at[i], v.asked = 0, append(v.asked, i)
		for !v.judging && v.excluded() && v.at[i]+1 < len(v.domains[i]) {
			v.at[i]++
		}
	}
	return v.domains[i][v.at[i]]
}

// next goes on to the next combination of the facts but for the first so many that were asked for. It says no after the last.
func (v *valuation) next(kept int) bool {
	for last := len(v.asked) - 1; last >= kept; last-- {
		i := v.asked[last]
		for v.at[i]++; v.at[i] < len(v.domains[i]); v.at[i]++ {
			if v.judging || !v.excluded() {
				return true
			}
		}
		v.forget(last)
	}
	return false
}

// forget takes the value from each fact but the first so many that were asked for.
func (v *valuation) forget(kept int) {
	for _, i := range v.asked[kept:] {
		v.at[i] = -1
	}
	v.asked = v.asked[:kept]
}

// ever says whether holds is true for some values of the facts that it asks for and that were not asked for yet. These have no value
// afterwards, so that each question varies its own facts alone.
func (v *valuation) ever(holds func() bool) bool {
	kept, before := len(v.asked), v.judging
	v.judging = true
	defer func() { v.forget(kept); v.judging = before }()
	for more := true; more; more = v.next(kept) {
		if holds() {
			return true
		}
	}
	return false
}

// String lists the facts that were asked for.
func (v *valuation) String() string {
	var all []string
	for _, i := range v.asked {
		all = append(all, fmt.Sprintf("%s %v", Vocabulary().Facts[i].Name, v.Fact(i)))
	}
	return strings.Join(all, ", ")
}

func (v *valuation) named(name string) engine.Value {
	i, ok := Vocabulary().Index(name)
	if !ok {
		panic("no fact " + name)
	}
	return v.Fact(i)
}

func (v *valuation) is(name string) bool              { return v.named(name).Bool() }
func (v *valuation) has(name, word string) bool       { return v.named(name).Text() == word }
func (v *valuation) marked(mark string) bool          { return v.named("lifecycle.marks").Has(mark) }
func (v *valuation) thisEntrys(entryFact string) bool { return v.named(entryFact).Int() == thisEntry }
func (v *valuation) held() bool                       { return v.is("server.claimRefSet") }
func (v *valuation) bound() bool                      { return v.is("claim.bound") }
func (v *valuation) released() bool                   { return v.is("claim.released") }
func (v *valuation) retained() bool                   { return v.held() && v.has("server.reclaimPolicy", "Retain") }
func (v *valuation) mayStop() bool                    { return v.marked(MarkManaged) || v.is("operation.consented") }

// proven says that a wipe of this entry, or the recorded waiver, makes a released server clean.
func (v *valuation) proven() bool {
	return ((v.thisEntrys("wipe.entry") && v.is("wipe.verified")) || v.has("policy.sanitization", "none")) && v.released()
}

// exclusions are what the facts' own definitions say, each about few facts.
var exclusions = []func(v *valuation) bool{
	func(v *valuation) bool {
		return v.has("bmc.identity", IdentitySame) || (v.has("bmc.power", unknown) && v.has("bmc.health", unknown))
	},
	func(v *valuation) bool { return !v.bound() || (v.held() && !v.released()) },
	func(v *valuation) bool { return !v.is("claim.binding") || (v.held() && !v.released() && !v.bound()) },
	func(v *valuation) bool {
		return !v.is("claim.missing") || (v.held() && !v.released() && !v.bound() && !v.is("claim.binding"))
	},
	func(v *valuation) bool {
		return !v.is("claim.ended") || (!v.released() && !v.bound() && !v.is("claim.binding") && !v.is("claim.missing"))
	},
	func(v *valuation) bool { return v.bound() != v.has("claim.power", none) },
	func(v *valuation) bool {
		return !v.marked(MarkStranger) || (!v.bound() && !v.is("operation.consented"))
	},
	// An image of ours boots only in a state that has it booted.
	func(v *valuation) bool { return slices.Contains(v.purposes, v.named("boot.purpose").Text()) },
	func(v *valuation) bool {
		return !v.is("boot.unheard") || ((v.has("boot.purpose", "Probe") || v.has("boot.purpose", "Wipe")) && !v.thisEntrys("wipe.entry"))
	},
	func(v *valuation) bool {
		return !v.is("probe.dataFound") || (v.thisEntrys("probe.entry") && v.is("probe.complete"))
	},
	func(v *valuation) bool { return !v.is("wipe.verified") || !v.is("wipe.failed") },
	func(v *valuation) bool { return !v.is("wipe.excusedOnly") || v.is("wipe.verified") },
	func(v *valuation) bool {
		return !v.is("wipe.running") || (!v.is("wipe.verified") && !v.is("wipe.failed"))
	},
	func(v *valuation) bool {
		return v.has("server.parkedFrom", none) || v.named("lifecycle.state").Text() == "Parked"
	},
	func(v *valuation) bool { return !v.is("maintenance.ours") || v.is("maintenance.granted") },
	func(v *valuation) bool { return v.is("operation.reset") == v.has("operation.name", "force-off-server") },
}

// possible says that the facts can occur together. It asks for many facts, so that it is asked only where something seems wrong or new.
func (v *valuation) possible() bool {
	return !slices.ContainsFunc(v.exclusions, func(allows func(*valuation) bool) bool { return !allows(v) })
}

// excluded says that one exclusion alone leaves no room for the facts that have a value.
func (v *valuation) excluded() bool {
	return slices.ContainsFunc(v.exclusions, func(allows func(*valuation) bool) bool {
		return !v.ever(func() bool { return allows(v) })
	})
}

func defaultLifecycle(t testing.TB) *lifecycle.Lifecycle {
	t.Helper()
	return rewritten(t, Vocabulary())
}

// rewritten is the default lifecycle, rewritten: pairs of what it says and what is put there.
func rewritten(t testing.TB, words *engine.Vocabulary, pairs ...string) *lifecycle.Lifecycle {
	t.Helper()
	files, err := Shipped(DefaultBundle)
	if err != nil {
		t.Fatal(err)
	}
	text := string(files["lifecycle.yaml"])
	for i := 0; i < len(pairs); i += 2 {
		if strings.Count(text, pairs[i]) != 1 {
			t.Fatalf("the default lifecycle does not say %q once", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	l, found, err := lifecycle.Compile("lifecycle.yaml", []byte(text), words)
	if err != nil {
		t.Fatal(err)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return l
}

// each calls check for combinations of facts that stand for all that there are: for each that the decision or check can tell apart.
// Some are not possible. It ends at the first error.
func each(t *testing.T, l *lifecycle.Lifecycle, state engine.State, fixed map[string]engine.Value, check func(*valuation, engine.Decision) error) error {
	t.Helper()
	v := newValuation(t, l, state, fixed)
	for more := true; more; more = v.next(0) {
		if err := check(v, l.Decide(v)); err != nil {
			return err
		}
	}
	return nil
}

// deadline is the length of an edge's after.
func deadline(t *testing.T, e lifecycle.Edge) time.Duration {
	t.Helper()
	if e.After == "wipe.budget" {
		return wipeBudgetHere
	}
	d, err := time.ParseDuration(e.After)
	if err != nil {
		t.Fatalf("the deadline of %s: %v", e.Rule, err)
	}
	return d
}

// agesOf is the moments between which the state's deadlines make a difference: the entry, and for each deadline the last
// moment before it and the first at which it has passed.
func agesOf(t *testing.T, l *lifecycle.Lifecycle, state engine.State) []engine.Value {
	t.Helper()
	moments := []time.Duration{0}
	for _, e := range l.Edges() {
		if e.From == state && e.After != "" {
			d := deadline(t, e)
			moments = append(moments, d-1, d)
		}
	}
	slices.Sort(moments)
	var ages []engine.Value
	for _, m := range slices.Compact(moments) {
		ages = append(ages, engine.AgeValue(m))
	}
	return ages
}

// lastDeadline is when the state is left for all other facts; 0 where there is no such deadline.
func lastDeadline(t *testing.T, l *lifecycle.Lifecycle, state engine.State) time.Duration {
	t.Helper()
	for _, e := range l.Edges() {
		if e.From == state && e.After != "" && e.When == "" {
			return deadline(t, e)
		}
	}
	return 0
}

func TestEveryDecisionOfTheShippedLifecyclesKeepsTheSafetyRules(t *testing.T) {
	for _, name := range ShippedNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != DefaultBundle && os.Getenv("PROPERTIES") != "all" {
				t.Skip("make test-properties enumerates it; the proof of the lifecycle stands for it here")
			}
			b, found, err := bundle.Compile(shippedFiles(t, name), Vocabulary())
			if err != nil || found.Err() != nil {
				t.Fatal(err, found)
			}
			fixed := map[string]engine.Value{}
			if name != DefaultBundle { // the default is enumerated under either setting
				fixed["policy.sanitization"] = engine.EnumValue(b.Settings.Sanitization)
			}
			everyDecision(t, b.Lifecycle, fixed)
		})
	}
}

// everyDecision enumerates the decisions of a lifecycle: each has all properties, and every rule fires somewhere.
func everyDecision(t *testing.T, l *lifecycle.Lifecycle, fixed map[string]engine.Value) {
	t.Helper()
	fired := map[string]bool{}
	total := 0
	for _, state := range l.States() {
		n, err := everyDecisionIn(t, l, state, fixed, fired)
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	for _, e := range l.Edges() {
		if !fired[e.Rule] {
			t.Errorf("the rule %s never fires", e.Rule)
		}
	}
	t.Logf("%d decisions checked", total)
}

// everyDecisionIn enumerates the decisions of one state, until one is wrong. It notes the rules that fire. For each decision it varies
// what one property asks for after the other, so that the combinations add up and do not multiply.
func everyDecisionIn(
	t *testing.T, l *lifecycle.Lifecycle, state engine.State, fixed map[string]engine.Value, fired map[string]bool,
) (n int, err error) {
	t.Helper()
	ofThis := ofState(l.Stable(state), lastDeadline(t, l, state))
	err = each(t, l, state, fixed, func(v *valuation, d engine.Decision) error {
		n++
		if err := v.breaks(ofThis, d, engine.Effect{}); err != nil {
			return err
		}
		if err := v.breaks(propertiesOf[""], d, engine.Effect{}); err != nil {
			return err
		}
		for _, e := range d.Effects {
			if err := v.breaks(propertiesOf[e.Name], d, e); err != nil {
				return err
			}
		}
		fired[d.Rule] = fired[d.Rule] || v.ever(v.possible)
		return nil
	})
	return n, err
}

// breaks says which property a decision breaks on facts that can occur.
func (v *valuation) breaks(all []property, d engine.Decision, e engine.Effect) (err error) {
	for _, p := range all {
		if v.ever(func() bool {
			if p.broken(v, d, e) && v.possible() {
				err = fmt.Errorf("%s: %s %s\nfacts: %v\ndecision: %+v\nhalt: %+v", d.From, cmp.Or(e.Name, "it"), p.says, v, d, d.Halt)
			}
			return err != nil
		}) {
			return err
		}
	}
	return nil
}

func TestTheCheckOfEveryDecisionFindsAMistake(t *testing.T) {
	lax := *Vocabulary() // without the safety rules of moves
	lax.Enter, lax.Clear, lax.Leave, lax.Arrive = nil, nil, nil, nil
	const halted = "halted on facts that can occur"
	for name, c := range map[string]struct {
		state   engine.State
		words   *engine.Vocabulary
		rewrite []string
		want    string
	}{
		"a wipe goes on though its release is gone": {"Cleanup", Vocabulary(),
			[]string{"when: claimed || retained || !released", "when: claimed || retained"}, halted},
		"a tenant's machine is powered off": {"Reserved", Vocabulary(),
			[]string{"when: (released || parkAsked) && mayStop && !wiping}", "when: mayStop && !wiping}"}, halted},
		"a stranger is powered off": {"Initial", Vocabulary(),
			[]string{"{do: PowerOff, when: mayStop && !dirty && !wiping}", "{do: PowerOff, when: \"!dirty && !wiping\"}"}, halted},
		"a rule never fires": {"Observing", Vocabulary(),
			[]string{"{rule: Consented,       to: Initial,  when: mayStop}", "{rule: Consented,       to: Initial,  when: mayStop && !mayStop}"}, "a rule never fires"},
		"a wipe of another entry makes a server clean": {"Cleanup", &lax,
			[]string{"wipe.entry == lifecycle.entry && wipe.verified && !marked", "wipe.verified && !marked"}, "offers a server that may hold data"},
		"a parked machine goes into a wipe by itself": {"Parked", &lax,
			[]string{"{rule: Unparked,      to: Initial,   when: unparkAsked}", "{rule: Unparked,      to: Cleanup,   when: dirty}"}, "begins a wipe without a record"},
		"a disk with data goes out of service": {"Error", &lax,
			[]string{"when: leaving && attested && poweredOff && !held}", "when: leaving && poweredOff && !held}"}, "takes a server out of service that may hold data"},
	} {
		t.Run(name, func(t *testing.T) {
			l, fired := rewritten(t, c.words, c.rewrite...), map[string]bool{}
			_, err := everyDecisionIn(t, l, c.state, nil, fired)
			got := fmt.Sprint(err)
			if err == nil && slices.ContainsFunc(l.Edges(), func(e lifecycle.Edge) bool { return e.From == c.state && !fired[e.Rule] }) {
				got = "a rule never fires"
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAFactThatNothingAsksForIsNotVaried(t *testing.T) {
	v := &valuation{domains: [][]engine.Value{bools(), bools(), enums("On", "Off", "Unknown")}, at: []int{-1, -1, -1}}
	var told []string
	for more := true; more; more = v.next(0) {
		switch {
		case !v.Fact(0).Bool():
			told = append(told, "free")
		case v.Fact(1).Bool():
			told = append(told, "released")
		default:
			told = append(told, v.Fact(2).Text())
		}
	}
	if want := []string{"free", "On", "Off", "Unknown", "released"}; !slices.Equal(told, want) {
		t.Errorf("got %q, want %q", told, want)
	}
}

func TestEachQuestionVariesItsOwnFactsAlone(t *testing.T) {
	v := &valuation{domains: [][]engine.Value{bools(), bools(), bools()}, at: []int{-1, -1, -1}}
	v.Fact(0)
	asked := 0
	for _, i := range []int{1, 2} {
		if !v.ever(func() bool { asked++; return v.Fact(i).Bool() }) {
			t.Errorf("the fact %d is never true", i)
		}
	}
	if asked != 4 || !slices.Equal(v.asked, []int{0}) {
		t.Errorf("asked %d times, and %v have values afterwards", asked, v.asked)
	}
}

func TestFactsThatExcludeEachOtherAreLeftOut(t *testing.T) {
	v := &valuation{domains: [][]engine.Value{bools(), bools()}, at: []int{-1, -1},
		exclusions: []func(*valuation) bool{func(v *valuation) bool { return v.Fact(0).Bool() != v.Fact(1).Bool() }}}
	var told []string
	for more := true; more; more = v.next(0) {
		told = append(told, fmt.Sprint(v.Fact(0).Bool(), v.Fact(1).Bool()))
	}
	if want := []string{"false true", "true false"}; !slices.Equal(told, want) {
		t.Errorf("got %q, want %q", told, want)
	}
}
