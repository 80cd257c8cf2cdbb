// SPDX-License-Identifier: Apache-2.0

package policies

import (
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
// the default lifecycle and the safety rules make. The age's come from the deadlines themselves; see agesOf.
var domains = map[string][]engine.Value{
	"server.claimRefSet":    bools(),
	"server.reclaimPolicy":  enums("Recycle", "Retain"),
	"server.parked":         bools(),
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
	"claim.power":           enums("On", "Off", "None"),
	"probe.entry":           {engine.IntValue(thisEntry), engine.IntValue(thisEntry - 1)},
	"probe.complete":        bools(),
	"probe.dataFound":       bools(),
	"wipe.entry":            {engine.IntValue(thisEntry), engine.IntValue(thisEntry - 1)},
	"wipe.running":          bools(),
	"wipe.verified":         bools(),
	"wipe.failed":           bools(),
	"wipe.attested":         bools(),
	"wipe.budget":           {engine.DurationValue(wipeBudgetHere)},
	"maintenance.granted":   bools(),
	"maintenance.ours":      bools(),
	"maintenance.consented": bools(),
	"operation.name":        enums("None", "park", "unpark", "retry", "force-off-server"),
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

// valuation is one combination of facts, by vocabulary position.
type valuation []engine.Value

func (v valuation) Fact(i int) engine.Value { return v[i] }

func (v valuation) named(name string) engine.Value {
	i, ok := Vocabulary().Index(name)
	if !ok {
		panic("no fact " + name)
	}
	return v[i]
}

func (v valuation) is(name string) bool              { return v.named(name).Bool() }
func (v valuation) has(name, word string) bool       { return v.named(name).Text() == word }
func (v valuation) marked(mark string) bool          { return v.named("lifecycle.marks").Has(mark) }
func (v valuation) thisEntrys(entryFact string) bool { return v.named(entryFact).Int() == thisEntry }

// possible leaves out combinations that the facts' own definitions exclude.
func (v valuation) possible() bool {
	bound, released, held := v.is("claim.bound"), v.is("claim.released"), v.is("server.claimRefSet")
	return (v.has("bmc.identity", IdentitySame) || (v.has("bmc.power", unknown) && v.has("bmc.health", unknown))) &&
		(!bound || (held && !released)) &&
		(!v.is("claim.binding") || (held && !released && !bound)) &&
		(!v.is("claim.missing") || (held && !released && !bound && !v.is("claim.binding"))) &&
		(bound || v.has("claim.power", "None")) && // where a state does not read it, it is None for a bound claim too
		(!v.marked(MarkStranger) || (!bound && !v.is("operation.consented"))) &&
		(!v.is("boot.unheard") || ((v.has("boot.purpose", "Probe") || v.has("boot.purpose", "Wipe")) && !v.thisEntrys("wipe.entry"))) &&
		(!v.is("probe.dataFound") || (v.thisEntrys("probe.entry") && v.is("probe.complete"))) &&
		(!v.is("wipe.verified") || !v.is("wipe.failed")) &&
		(!v.is("wipe.running") || (!v.is("wipe.verified") && !v.is("wipe.failed"))) &&
		v.is("operation.reset") == v.has("operation.name", "force-off-server")
}

// further are operations that only some states ask about.
var further = map[engine.State][]engine.Value{"Error": enums("sanitize"), "Released": enums("undo-release"), "Decommissioned": enums("recommission")}

// inspection is the domain of probe.entry in states that only ask whether there was a report; without a wish to decommission they do not.
var inspection = map[engine.State][]engine.Value{"Initial": {engine.IntValue(thisEntry - 1), engine.IntValue(-1)},
	"Error": {engine.IntValue(thisEntry - 1), engine.IntValue(-1)}}

// sense leaves out early what possible and boots would leave out, by facts that are listed before the one that was set last.
func (v valuation) sense(last string, l *lifecycle.Lifecycle, state engine.State) bool {
	switch last {
	case "boot.purpose":
		return v.boots(l, state) && (!v.has("boot.purpose", "Maintenance") || l.Ensures(state, EffectMaintain))
	case "maintenance.ours":
		return !v.is("maintenance.ours") || v.is("maintenance.granted")
	case "boot.unheard":
		return !v.is("boot.unheard") || v.has("boot.purpose", "Probe") || v.has("boot.purpose", "Wipe")
	case "claim.missing", "claim.power":
		return !v.is("claim.missing") || v.is("server.claimRefSet")
	case "probe.dataFound":
		return !v.is("probe.dataFound") || v.thisEntrys("probe.entry") && v.is("probe.complete")
	case "probe.entry":
		return v.named("probe.entry").Int() >= 0 || v.is("server.decommission")
	case "wipe.attested":
		return !v.is("wipe.attested") || v.is("server.decommission")
	case "wipe.entry":
		return !v.is("boot.unheard") || !v.thisEntrys("wipe.entry")
	case "wipe.verified", "wipe.failed":
		return !v.is("wipe.running") || !v.is("wipe.verified") && !v.is("wipe.failed")
	case "operation.reset":
		return v.is("operation.reset") == v.has("operation.name", "force-off-server")
	}
	return true
}

// boots says that an image of ours boots only in a state that has it booted.
func (v valuation) boots(l *lifecycle.Lifecycle, state engine.State) bool {
	return (!v.has("boot.purpose", "Probe") || l.Ensures(state, EffectBootProbe)) && (!v.has("boot.purpose", "Wipe") || l.Ensures(state, EffectBootWipe))
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

// each calls check for every possible combination of the facts that the state's decision reads. Those that are fixed have
// one value.
func each(t *testing.T, l *lifecycle.Lifecycle, state engine.State, fixed map[string]engine.Value, check func(valuation, engine.Decision)) {
	t.Helper()
	words := Vocabulary()
	base := make(valuation, len(words.Facts))
	for i, f := range words.Facts {
		base[i] = zeroOf(f)
	}
	at, _ := words.Index(engine.FactState)
	base[at] = engine.StringValue(string(state))
	entry, _ := words.Index("lifecycle.entry")
	base[entry] = engine.IntValue(thisEntry)
	for name, word := range map[string]string{"claim.power": none, "bmc.power": unknown, "bmc.health": unknown} {
		i, _ := words.Index(name)
		base[i] = engine.EnumValue(word)
	}
	ages := agesOf(t, l, state)
	vary := slices.DeleteFunc(reads(l, state), func(i int) bool { return i == at })
	var walk func(k int)
	walk = func(k int) {
		if k == len(vary) {
			if base.possible() && base.boots(l, state) {
				check(base, l.Decide(base))
			}
			return
		}
		domain, ok := domains[words.Facts[vary[k]].Name]
		if words.Facts[vary[k]].Name == engine.FactAge {
			domain = ages
		} else if !ok {
			t.Fatalf("no domain for the fact %s, which %s reads", words.Facts[vary[k]].Name, state)
		}
		if words.Facts[vary[k]].Name == engine.FactOperation {
			domain = append(slices.Clone(domain), further[state]...)
			if state == "Discovery" || state == "Cleanup" {
				domain = enums("None", "park") // no rule there asks for another, and one safety rule for that
			}
		}
		if some, ok := inspection[state]; ok && words.Facts[vary[k]].Name == "probe.entry" {
			domain = some
		}
		if value, ok := fixed[words.Facts[vary[k]].Name]; ok {
			domain = []engine.Value{value}
		}
		saved := base[vary[k]]
		for _, value := range domain {
			if base[vary[k]] = value; base.sense(words.Facts[vary[k]].Name, l, state) {
				walk(k + 1)
			}
		}
		base[vary[k]] = saved
	}
	walk(0)
}

// reads lists the facts on which a decision in the state can depend, those of safety rules included.
func reads(l *lifecycle.Lifecycle, state engine.State) []int {
	ast, words := l.AST(), Vocabulary()
	marks, _ := words.Index(engine.FactMarks)
	age, _ := words.Index(engine.FactAge)
	facts := []int{marks, age}
	guard := func(g *lifecycle.Condition) {
		for _, atom := range g.Atoms() {
			facts = append(facts, ast.Definitions[atom].Facts...)
		}
	}
	safety := func(all []*lifecycle.Requirement) {
		for _, r := range all {
			facts = append(facts, r.Must.Facts...)
			if r.Awaits != nil {
				facts = append(facts, r.Awaits.Facts...)
			}
		}
	}
	st := ast.States[slices.IndexFunc(ast.States, func(st *lifecycle.State) bool { return st.Name == state })]
	for _, x := range st.Exits {
		guard(x.When)
		if x.After != nil && x.After.Fact >= 0 {
			facts = append(facts, x.After.Fact)
		}
		safety(ast.Safety.Leave[state])
		safety(ast.Safety.Enter[x.To])
		safety(ast.Safety.Arrive[x.To])
		for _, mark := range x.Clears {
			safety(ast.Safety.Clear[mark])
		}
	}
	for _, e := range st.Ensure {
		guard(e.When)
		safety(ast.Safety.Effect[e.Effect.Name])
		safety(ast.Safety.Stays[e.Effect.Name])
		for _, mark := range ast.Safety.Marks[e.Effect.Name] {
			safety(ast.Safety.Set[mark])
		}
	}
	for _, i := range ast.Invariants {
		guard(i.Must)
	}
	slices.Sort(facts)
	return slices.Compact(facts)
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

func zeroOf(f engine.FactType) engine.Value {
	switch f.Kind {
	case engine.Bool:
		return engine.BoolValue(false)
	case engine.Int:
		return engine.IntValue(0)
	case engine.Enum:
		return engine.EnumValue(f.Values[0])
	case engine.Duration:
		return engine.DurationValue(0)
	case engine.Age:
		return engine.AgeValue(0)
	case engine.Set:
		return engine.SetValue(nil)
	default:
		return engine.StringValue("")
	}
}

// propertiesOf checks one decision against the safety rules, written here a second time and without CEL.
func propertiesOf(v valuation, d engine.Decision) error {
	held := v.is("server.claimRefSet")
	bound, released := v.is("claim.bound"), v.is("claim.released")
	retained := held && v.has("server.reclaimPolicy", "Retain")
	mayStop := v.marked(MarkManaged) || v.is("operation.consented")
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
		case e.Name == EffectBootWipe && (!released || bound || retained):
			return fmt.Errorf("wipes without a release record, or while claimed or retained")
		case e.Name == EffectPowerOff && !mayStop && !v.has("bmc.power", "Off"):
			return fmt.Errorf("powers off a stranger")
		case kind.Touches && v.is("server.ignored"):
			return fmt.Errorf("%s touches a machine that is to be ignored", e.Name)
		case cutsPower(e.Name) && v.is("wipe.running"):
			return fmt.Errorf("%s cuts power in the middle of an erase", e.Name)
		case e.Name == EffectResetAsAsked && !mayStop && !v.has("bmc.power", "Off"):
			return fmt.Errorf("resets a stranger")
		case e.Name == EffectApplyBootOrder && !v.has("bmc.power", "Off"):
			return fmt.Errorf("changes what a running machine boots next")
		case e.Name == EffectPowerOff && !released && !v.has("operation.name", "park") && (v.marked(MarkDirty) ||
			((bound || v.is("claim.missing")) && d.From != "Available" && d.From != "Initial")):
			return fmt.Errorf("powers off a machine that may be in a claim's hands")
		case e.Name == EffectBootProbe && (held || v.marked(MarkDirty)):
			return fmt.Errorf("probes a machine that somebody holds or that holds data")
		case e.Name == EffectBootProbe && !v.has("bmc.power", "Off") && !v.has("boot.purpose", "Probe") && (!mayStop || !v.has("bmc.power", "On")):
			return fmt.Errorf("prepares a probe for a machine that is not off and not ours")
		case e.Name == EffectBootWipe && !v.has("bmc.power", "Off") && !v.has("boot.purpose", "Wipe"):
			return fmt.Errorf("prepares a wipe for a machine that is not off")
		case e.Name == EffectBootAsClaimed && (!bound || !v.marked(MarkDirty)):
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
func maintainsOf(v valuation, d engine.Decision) error {
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
func earnsManaged(v valuation) bool {
	return v.has("bmc.power", "Off") || v.is("claim.bound") || v.is("operation.consented")
}

// cutsPower says whether an effect may take power from a machine that runs.
func cutsPower(effect string) bool {
	return effect == EffectPowerOff || effect == EffectPowerAsClaimed || effect == EffectResetAsAsked
}

// offWaitsForNoBoot checks that a claim which wants its machine off gets that before its boot is seen to.
func offWaitsForNoBoot(v valuation, d engine.Decision) error {
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
func moveOf(v valuation, d engine.Decision) error {
	held := v.is("server.claimRefSet")
	bound, released := v.is("claim.bound"), v.is("claim.released")
	retained := held && v.has("server.reclaimPolicy", "Retain")
	proven := ((v.thisEntrys("wipe.entry") && v.is("wipe.verified")) || v.has("policy.sanitization", "none")) && released
	if d.To == "Available" && v.marked(MarkStranger) {
		return fmt.Errorf("offers a machine that was found running")
	}
	if d.To == "Available" && v.marked(MarkDirty) && (!slices.Contains(d.Clears, MarkDirty) || !proven) {
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
	if d.From == "Observing" && !bound && !v.marked(MarkManaged) && !v.is("operation.consented") {
		return fmt.Errorf("ends the observation of a machine that nobody has given to us")
	}
	if len(d.Marks) > 0 {
		return fmt.Errorf("a move alone sets %v", d.Marks)
	}
	if d.To == "Cleanup" && (!released || bound || retained || !v.has("bmc.power", "Off")) {
		return fmt.Errorf("begins a wipe without a record, while claimed or retained, or while not off")
	}
	if d.To == "Discovery" && (held || v.marked(MarkDirty) || !v.has("bmc.power", "Off")) {
		return fmt.Errorf("begins a probe while held, dirty, or not off")
	}
	return nil
}

// outOfService checks a move that takes a server out of service.
func outOfService(v valuation, d engine.Decision) error {
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
		leftBy := lastDeadline(t, l, state)
		each(t, l, state, fixed, func(v valuation, d engine.Decision) {
			total++
			if err := propertiesOf(v, d); err != nil {
				t.Fatalf("%s: %v\nfacts: %v\ndecision: %+v", state, err, v, d)
			}
			if d.Halt != nil && !v.has("bmc.identity", "Other") && !v.is("server.ignored") {
				t.Fatalf("%s: halted on facts that can occur: %+v\nfacts: %v", state, *d.Halt, v)
			}
			if !l.Stable(state) && d.Halt == nil && !d.Moves() && v.named("lifecycle.age").Duration() >= leftBy {
				t.Fatalf("%s: stays after its deadline\nfacts: %v", state, v)
			}
			fired[d.Rule] = true
		})
	}
	for _, e := range l.Edges() {
		if !fired[e.Rule] {
			t.Errorf("the rule %s never fires", e.Rule)
		}
	}
	t.Logf("%d decisions checked", total)
}
