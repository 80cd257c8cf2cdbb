// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"errors"
	"fmt"
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

// valuation is one combination of facts after another. A fact has no value before the decision, or the check of it, asks for
// one. What nothing asked for cannot matter, so that a combination of those that were asked for stands for all that hold them.
type valuation struct {
	domains [][]engine.Value
	// at says which value of its domain each fact has; -1 where nothing asked for it. asked are the others, in order.
	at, asked []int
	// purposes are the boots of ours that the state has.
	purposes []string
}

// newValuation is the first combination. Each of the fixed facts has one value.
func newValuation(t *testing.T, l *lifecycle.Lifecycle, state engine.State, fixed map[string]engine.Value) *valuation {
	t.Helper()
	words := Vocabulary()
	v := &valuation{domains: make([][]engine.Value, len(words.Facts)), at: make([]int, len(words.Facts)), purposes: []string{none, "Claim"}}
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
	}
	return v.domains[i][v.at[i]]
}

// next goes on to the next combination. It says no after the last.
func (v *valuation) next() bool {
	for last := len(v.asked) - 1; last >= 0; last-- {
		i := v.asked[last]
		if v.at[i]++; v.at[i] < len(v.domains[i]) {
			return true
		}
		v.at[i], v.asked = -1, v.asked[:last]
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

// possible leaves out combinations that the facts' own definitions exclude. It asks for many facts, so that it is asked only where
// something seems wrong or new.
func (v *valuation) possible() bool {
	bound, released, held := v.is("claim.bound"), v.is("claim.released"), v.is("server.claimRefSet")
	return (v.has("bmc.identity", IdentitySame) || (v.has("bmc.power", unknown) && v.has("bmc.health", unknown))) &&
		(!bound || (held && !released)) &&
		(!v.is("claim.binding") || (held && !released && !bound)) &&
		(!v.is("claim.missing") || (held && !released && !bound && !v.is("claim.binding"))) &&
		(!v.is("claim.ended") || (!released && !bound && !v.is("claim.binding") && !v.is("claim.missing"))) &&
		(bound != v.has("claim.power", none)) &&
		(!v.marked(MarkStranger) || (!bound && !v.is("operation.consented"))) &&
		slices.Contains(v.purposes, v.named("boot.purpose").Text()) && // an image of ours boots only in a state that has it booted
		(!v.is("boot.unheard") || ((v.has("boot.purpose", "Probe") || v.has("boot.purpose", "Wipe")) && !v.thisEntrys("wipe.entry"))) &&
		(!v.is("probe.dataFound") || (v.thisEntrys("probe.entry") && v.is("probe.complete"))) &&
		(!v.is("wipe.verified") || !v.is("wipe.failed")) &&
		(!v.is("wipe.excusedOnly") || v.is("wipe.verified")) &&
		(!v.is("wipe.running") || (!v.is("wipe.verified") && !v.is("wipe.failed"))) &&
		(v.has("server.parkedFrom", none) || v.named("lifecycle.state").Text() == "Parked") &&
		(!v.is("maintenance.ours") || v.is("maintenance.granted")) &&
		v.is("operation.reset") == v.has("operation.name", "force-off-server")
}

func defaultLifecycle(t testing.TB) *lifecycle.Lifecycle {
	t.Helper()
	return rewritten(t, Vocabulary())
}

// rewritten is the default lifecycle after somebody has rewritten it: pairs of what it says and what is put there.
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
	for more := true; more; more = v.next() {
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

// lastDeadline is when the state is left whatever else is true; 0 where there is no such deadline.
func lastDeadline(t *testing.T, l *lifecycle.Lifecycle, state engine.State) time.Duration {
	t.Helper()
	for _, e := range l.Edges() {
		if e.From == state && e.After != "" && e.When == "" {
			return deadline(t, e)
		}
	}
	return 0
}

// propertiesOf checks one decision against the safety rules, written here a second time and without CEL.
func propertiesOf(v *valuation, d engine.Decision) error {
	for _, e := range d.Effects {
		kind, _ := Vocabulary().Effect(e.Name)
		switch {
		case kind.Touches && !v.has("bmc.identity", IdentitySame):
			return fmt.Errorf("%s writes to a machine that is not known to be the Server's", e.Name)
		case kind.Touches && v.is("maintenance.granted") && !v.has("boot.purpose", "Wipe") && !v.is("wipe.running"):
			return fmt.Errorf("%s touches a machine that is handed to a maintenance", e.Name)
		case kind.Touches && (d.From == "Parked" || d.From == "Decommissioned" || d.From == "Observing" || d.From == "Maintenance"):
			return fmt.Errorf("%s touches a machine in %s", e.Name, d.From)
		case kind.Touches && e.Name != EffectLocate && v.marked(MarkStranger):
			return fmt.Errorf("%s touches a machine that was found running", e.Name)
		case e.Name == EffectBootWipe && (!v.released() || v.bound() || v.retained()):
			return fmt.Errorf("wipes without a release record, or while claimed or retained")
		case e.Name == EffectPowerOff && !v.mayStop() && !v.has("bmc.power", "Off"):
			return fmt.Errorf("powers off a stranger")
		case kind.Touches && v.is("server.ignored"):
			return fmt.Errorf("%s touches a machine that is to be ignored", e.Name)
		case cutsPower(e.Name) && v.is("wipe.running"):
			return fmt.Errorf("%s cuts power in the middle of an erase", e.Name)
		case e.Name == EffectResetAsAsked && !v.mayStop() && !v.has("bmc.power", "Off"):
			return fmt.Errorf("resets a stranger")
		case e.Name == EffectApplyBootOrder && !v.has("bmc.power", "Off"):
			return fmt.Errorf("changes what a running machine boots next")
		case e.Name == EffectPowerOff && !v.released() && !v.is("claim.ended") && !v.has("operation.name", "park") && (v.marked(MarkDirty) ||
			((v.bound() || v.is("claim.missing")) && d.From != "Available" && d.From != "Initial")):
			return fmt.Errorf("powers off a machine that may be in a claim's hands")
		case e.Name == EffectBootProbe && (v.held() || v.marked(MarkDirty)):
			return fmt.Errorf("probes a machine that somebody holds or that holds data")
		case e.Name == EffectBootProbe && !v.has("bmc.power", "Off") && !v.has("boot.purpose", "Probe") && (!v.mayStop() || !v.has("bmc.power", "On")):
			return fmt.Errorf("prepares a probe for a machine that is not off and not ours")
		case e.Name == EffectBootWipe && !v.has("bmc.power", "Off") && !v.has("boot.purpose", "Wipe"):
			return fmt.Errorf("prepares a wipe for a machine that is not off")
		case e.Name == EffectBootAsClaimed && (!v.bound() || !v.marked(MarkDirty)):
			return fmt.Errorf("boots for a claim that is not bound, or before Dirty is stored")
		case (e.Name == EffectBootAsClaimed || e.Name == EffectPowerOn) && !v.marked(MarkManaged) && !slices.Contains(e.Earns, MarkManaged):
			return fmt.Errorf("%s boots a machine without Managed", e.Name)
		case (slices.Contains(e.Earns, MarkManaged) || e.Param("mark").Text() == MarkManaged) && !earnsManaged(v):
			return fmt.Errorf("takes a machine for its own that it neither boots nor has for a claim or by consent")
		}
	}
	if err := maintainsOf(v, d); err != nil {
		return err
	}
	if !d.Moves() {
		return offWaitsForNoBoot(v, d)
	}
	return moveOf(v, d)
}

// maintainsOf checks that a maintenance acts only as the manager granted it. One that another program granted earns and halts nothing.
func maintainsOf(v *valuation, d engine.Decision) error {
	at := slices.IndexFunc(d.Effects, func(e engine.Effect) bool { return e.Name == EffectMaintain })
	switch {
	case at < 0:
		return nil
	case !v.is("maintenance.ours"):
		if len(d.Effects[at].Earns) > 0 || d.Awaits != nil {
			return fmt.Errorf("a maintenance of another program earns a mark, or is waited for")
		}
		return nil
	case d.From != "Maintenance" || !v.is("maintenance.granted"):
		return fmt.Errorf("serves a maintenance in %s that does not have the server", d.From)
	case !v.has("bmc.identity", IdentitySame):
		return fmt.Errorf("serves a maintenance on a machine that is not known to be the Server's")
	case !v.is("maintenance.consented"):
		return fmt.Errorf("serves a maintenance to which the holder did not consent")
	case v.is("wipe.running") || v.has("boot.purpose", "Wipe"):
		return fmt.Errorf("serves a maintenance in the middle of an erase")
	case v.marked(MarkStranger) || (!v.has("bmc.power", "Off") && !v.marked(MarkManaged) && !v.is("operation.consented")):
		return fmt.Errorf("serves a maintenance on a machine that was found running")
	}
	return nil
}

// earnsManaged says what makes a machine ours: a boot of ours that begins from off, its claim, or consent.
func earnsManaged(v *valuation) bool {
	return v.has("bmc.power", "Off") || v.is("claim.bound") || v.is("operation.consented")
}

// cutsPower says whether an effect may take power from a machine that runs.
func cutsPower(effect string) bool {
	return effect == EffectPowerOff || effect == EffectPowerAsClaimed || effect == EffectResetAsAsked
}

// offWaitsForNoBoot checks that a claim which wants its machine off gets that before its boot is seen to.
func offWaitsForNoBoot(v *valuation, d engine.Decision) error {
	asked := d.From == "Reserved" && v.is("claim.bound") && v.has("claim.power", "Off") && !v.has("operation.name", "park")
	first := ""
	if len(d.Effects) > 0 {
		first = d.Effects[0].Name
	} else if d.Awaits != nil {
		first = d.Awaits.Effect
	}
	if asked && d.Halt == nil && !v.is("wipe.running") && first != EffectPowerAsClaimed {
		return fmt.Errorf("lets something come before the power Off that the claim asks for")
	}
	return nil
}

// moveOf checks where a decision leads.
func moveOf(v *valuation, d engine.Decision) error {
	if d.To == "Available" && v.marked(MarkStranger) {
		return fmt.Errorf("offers a machine that was found running")
	}
	if d.To == "Available" && v.marked(MarkDirty) && (!slices.Contains(d.Clears, MarkDirty) || !v.proven()) {
		return fmt.Errorf("offers a server that may hold data")
	}
	if d.To == "Decommissioned" {
		return outOfService(v, d)
	}
	if d.From == "Decommissioned" && !v.has("operation.name", "recommission") {
		return fmt.Errorf("takes a server back into service that nobody asked for")
	}
	if d.From == "Maintenance" && v.is("maintenance.granted") {
		return fmt.Errorf("leaves a maintenance that the server still names")
	}
	if d.From == "Observing" && !v.bound() && !v.marked(MarkManaged) && !v.is("operation.consented") {
		return fmt.Errorf("ends the observation of a machine that nobody has given to us")
	}
	if len(d.Marks) > 0 {
		return fmt.Errorf("a move alone sets %v", d.Marks)
	}
	if d.To == "Cleanup" && (!v.released() || v.bound() || v.retained() || !v.has("bmc.power", "Off")) {
		return fmt.Errorf("begins a wipe without a record, while claimed or retained, or while not off")
	}
	if d.To == "Discovery" && (v.held() || v.marked(MarkDirty) || !v.has("bmc.power", "Off")) {
		return fmt.Errorf("begins a probe while held, dirty, or not off")
	}
	return nil
}

// outOfService checks a move that takes a server out of service.
func outOfService(v *valuation, d engine.Decision) error {
	switch {
	case !v.is("server.decommission"):
		return fmt.Errorf("takes a server out of service that nobody asked for")
	case !v.has("bmc.power", "Off"):
		return fmt.Errorf("takes a server out of service that is not off")
	case v.is("server.claimRefSet"):
		return fmt.Errorf("takes a server out of service that a claim is written on")
	case v.marked(MarkDirty) && !v.is("wipe.attested"):
		return fmt.Errorf("takes a server out of service that may hold data")
	case len(d.Clears) > 0:
		return fmt.Errorf("takes a server out of service and calls it clean")
	}
	return nil
}

func TestEveryDecisionOfTheShippedLifecyclesKeepsTheSafetyRules(t *testing.T) {
	for _, name := range ShippedNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
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

// everyDecision enumerates the decisions of a lifecycle: each keeps the safety rules, is halted by nothing that can occur,
// and leaves what is not stable in time; and every rule fires somewhere.
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

// everyDecisionIn enumerates the decisions of one state, until one is wrong. It notes the rules that fire.
func everyDecisionIn(t *testing.T, l *lifecycle.Lifecycle, state engine.State, fixed map[string]engine.Value, fired map[string]bool) (n int, err error) {
	t.Helper()
	stable, leftBy := l.Stable(state), lastDeadline(t, l, state)
	err = each(t, l, state, fixed, func(v *valuation, d engine.Decision) error {
		n++
		if err := wrongWith(v, d, stable, leftBy); err != nil && v.possible() {
			return fmt.Errorf("%s: %w\nfacts: %v\ndecision: %+v\nhalt: %+v", state, err, v, d, d.Halt)
		}
		fired[d.Rule] = fired[d.Rule] || v.possible()
		return nil
	})
	return n, err
}

// wrongWith says what is wrong with one decision, if its facts can occur.
func wrongWith(v *valuation, d engine.Decision, stable bool, leftBy time.Duration) error {
	if err := propertiesOf(v, d); err != nil {
		return err
	}
	switch {
	case d.Halt != nil && !v.has("bmc.identity", "Other") && !v.is("server.ignored"):
		return errors.New("halted on facts that can occur")
	case !stable && d.Halt == nil && !d.Moves() && v.named("lifecycle.age").Duration() >= leftBy:
		return errors.New("stays after its deadline")
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
	for more := true; more; more = v.next() {
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
