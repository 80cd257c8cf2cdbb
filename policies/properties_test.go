// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"slices"
	"time"

	"github.com/metalaw/metalaw/engine"
)

// property is what no decision may do on facts that can occur. The properties are the safety rules, written a second time and without CEL.
type property struct {
	// of are the effects that it is about; a property without them is about each decision as a whole.
	of     []string
	says   string
	broken func(v *valuation, d engine.Decision, e engine.Effect) bool
}

// propertiesOf holds those of each effect, and under the empty name those of a decision. everyDecisionIn adds those of a state.
var propertiesOf = func() map[string][]property {
	all := map[string][]property{}
	for _, p := range slices.Concat(ofEffects, ofMaintenances, ofMoves, ofSettingOut) {
		if len(p.of) == 0 {
			all[""] = append(all[""], p)
		}
		for _, name := range p.of {
			all[name] = append(all[name], p)
		}
	}
	return all
}()

// ofDecision is a property of each decision.
func ofDecision(says string, broken func(v *valuation, d engine.Decision) bool) property {
	return property{says: says, broken: func(v *valuation, d engine.Decision, _ engine.Effect) bool { return broken(v, d) }}
}

// ofNamed is a property of one effect.
func ofNamed(effect, says string, broken func(v *valuation, d engine.Decision) bool) property {
	p := ofDecision(says, broken)
	p.of = []string{effect}
	return p
}

// effectsThat are the names of those for which holds is true, and of the one that sets a mark where it holds for that.
func effectsThat(holds func(engine.EffectType) bool) []string {
	var names []string
	for _, kind := range append(slices.Clone(Vocabulary().Effects), engine.EffectType{Name: engine.MarkEffect}) {
		if holds(kind) {
			names = append(names, kind.Name)
		}
	}
	return names
}

var (
	every = effectsThat(func(engine.EffectType) bool { return true })
	// touching are the effects that write to the machine, and cutting those that may take power from one that runs.
	touching = effectsThat(func(kind engine.EffectType) bool { return kind.Touches })
	cutting  = effectsThat(func(kind engine.EffectType) bool { return cutsPower(kind.Name) })
)

// untouched are the states in which no effect writes to the machine.
var untouched = []engine.State{"Parked", "Decommissioned", "Observing", "Maintenance"}

var ofEffects = []property{
	{touching, "writes to a machine that is not known to be the Server's", func(v *valuation, _ engine.Decision, _ engine.Effect) bool {
		return !v.has("bmc.identity", IdentitySame)
	}},
	{touching, "touches a machine that is handed to a maintenance", func(v *valuation, _ engine.Decision, _ engine.Effect) bool {
		return v.is("maintenance.granted") && !v.has("boot.purpose", "Wipe") && !v.is("wipe.running")
	}},
	{touching, "touches a machine in a state that touches none", func(_ *valuation, d engine.Decision, _ engine.Effect) bool {
		return slices.Contains(untouched, d.From)
	}},
	{touching, "touches a machine that was found running", func(v *valuation, _ engine.Decision, e engine.Effect) bool {
		return e.Name != EffectLocate && v.marked(MarkStranger)
	}},
	{touching, "touches a machine that is to be ignored", func(v *valuation, _ engine.Decision, _ engine.Effect) bool {
		return v.is("server.ignored")
	}},
	{cutting, "cuts power in the middle of an erase", func(v *valuation, _ engine.Decision, _ engine.Effect) bool {
		return v.is("wipe.running")
	}},
	ofNamed(EffectBootWipe, "wipes without a release record, or while claimed or retained", func(v *valuation, _ engine.Decision) bool {
		return !v.released() || v.bound() || v.retained()
	}),
	ofNamed(EffectPowerOff, "powers off a stranger", func(v *valuation, _ engine.Decision) bool {
		return !v.mayStop() && !v.has("bmc.power", "Off")
	}),
	ofNamed(EffectResetAsAsked, "resets a stranger", func(v *valuation, _ engine.Decision) bool {
		return !v.mayStop() && !v.has("bmc.power", "Off")
	}),
	ofNamed(EffectApplyBootOrder, "changes what a running machine boots next", func(v *valuation, _ engine.Decision) bool {
		return !v.has("bmc.power", "Off")
	}),
	ofNamed(EffectPowerOff, "powers off a machine that may be in a claim's hands", func(v *valuation, d engine.Decision) bool {
		return !v.released() && !v.is("claim.ended") && !v.has("operation.name", "park") && (v.marked(MarkDirty) ||
			((v.bound() || v.is("claim.missing")) && d.From != "Available" && d.From != "Initial"))
	}),
	ofNamed(EffectBootProbe, "probes a machine that a claim holds or that holds data", func(v *valuation, _ engine.Decision) bool {
		return v.held() || v.marked(MarkDirty)
	}),
	ofNamed(EffectBootProbe, "prepares a probe for a machine that is not off and not ours", func(v *valuation, _ engine.Decision) bool {
		return !v.has("bmc.power", "Off") && !v.has("boot.purpose", "Probe") && (!v.mayStop() || !v.has("bmc.power", "On"))
	}),
	ofNamed(EffectBootWipe, "prepares a wipe for a machine that is not off", func(v *valuation, _ engine.Decision) bool {
		return !v.has("bmc.power", "Off") && !v.has("boot.purpose", "Wipe")
	}),
	ofNamed(EffectBootAsClaimed, "boots for a claim that is not bound, or before Dirty is stored", func(v *valuation, _ engine.Decision) bool {
		return !v.bound() || !v.marked(MarkDirty)
	}),
	{[]string{EffectBootAsClaimed, EffectPowerOn}, "boots a machine without Managed",
		func(v *valuation, _ engine.Decision, e engine.Effect) bool {
			return !v.marked(MarkManaged) && !slices.Contains(e.Earns, MarkManaged)
		}},
	{every, "takes a machine for its own that it neither boots nor has for a claim or by consent",
		func(v *valuation, _ engine.Decision, e engine.Effect) bool {
			return (slices.Contains(e.Earns, MarkManaged) || e.Param("mark").Text() == MarkManaged) && !earnsManaged(v)
		}},
}

// ofMaintenances say that a maintenance acts only as the manager granted it. One that another program granted earns and halts nothing.
var ofMaintenances = []property{
	{[]string{EffectMaintain}, "earns a mark, or is waited for, though another program granted it",
		func(v *valuation, d engine.Decision, e engine.Effect) bool {
			return !v.is("maintenance.ours") && (len(e.Earns) > 0 || d.Awaits != nil)
		}},
	ofOurs("serves a maintenance in a state that does not have the server", func(v *valuation, d engine.Decision) bool {
		return d.From != "Maintenance" || !v.is("maintenance.granted")
	}),
	ofOurs("serves a maintenance on a machine that is not known to be the Server's", func(v *valuation, _ engine.Decision) bool {
		return !v.has("bmc.identity", IdentitySame)
	}),
	ofOurs("serves a maintenance to which the holder did not consent", func(v *valuation, _ engine.Decision) bool {
		return !v.is("maintenance.consented")
	}),
	ofOurs("serves a maintenance in the middle of an erase", func(v *valuation, _ engine.Decision) bool {
		return v.is("wipe.running") || v.has("boot.purpose", "Wipe")
	}),
	ofOurs("serves a maintenance on a machine that was found running", func(v *valuation, _ engine.Decision) bool {
		return v.marked(MarkStranger) || (!v.has("bmc.power", "Off") && !v.marked(MarkManaged) && !v.is("operation.consented"))
	}),
}

// ofOurs is a property of a maintenance that the manager granted.
func ofOurs(says string, broken func(v *valuation, d engine.Decision) bool) property {
	return ofNamed(EffectMaintain, says, func(v *valuation, d engine.Decision) bool { return v.is("maintenance.ours") && broken(v, d) })
}

// ofMoves say where a decision leads. A move out of service has rules of its own.
var ofMoves = []property{
	ofDecision("lets something come before the power Off that the claim asks for", func(v *valuation, d engine.Decision) bool {
		return !d.Moves() && d.From == "Reserved" && d.Halt == nil && firstOf(d) != EffectPowerAsClaimed &&
			v.is("claim.bound") && v.has("claim.power", "Off") && !v.has("operation.name", "park") && !v.is("wipe.running")
	}),
	ofDecision("offers a machine that was found running", func(v *valuation, d engine.Decision) bool {
		return d.To == "Available" && d.Moves() && v.marked(MarkStranger)
	}),
	ofDecision("offers a server that may hold data", func(v *valuation, d engine.Decision) bool {
		return d.To == "Available" && d.Moves() && v.marked(MarkDirty) && (!slices.Contains(d.Clears, MarkDirty) || !v.proven())
	}),
	ofDecision("takes a server back into service that no user asked for", func(v *valuation, d engine.Decision) bool {
		return inService(d) && d.From == "Decommissioned" && !v.has("operation.name", "recommission")
	}),
	ofDecision("leaves a maintenance that the server still names", func(v *valuation, d engine.Decision) bool {
		return inService(d) && d.From == "Maintenance" && v.is("maintenance.granted")
	}),
	ofDecision("ends the observation of a machine that no user has given to us", func(v *valuation, d engine.Decision) bool {
		return inService(d) && d.From == "Observing" && !v.bound() && !v.marked(MarkManaged) && !v.is("operation.consented")
	}),
	ofDecision("sets a mark by a move alone", func(_ *valuation, d engine.Decision) bool { return inService(d) && len(d.Marks) > 0 }),
	ofDecision("begins a wipe without a record, while claimed or retained, or while not off", func(v *valuation, d engine.Decision) bool {
		return d.To == "Cleanup" && d.Moves() && (!v.released() || v.bound() || v.retained() || !v.has("bmc.power", "Off"))
	}),
	ofDecision("begins a probe while held, dirty, or not off", func(v *valuation, d engine.Decision) bool {
		return d.To == "Discovery" && d.Moves() && (v.held() || v.marked(MarkDirty) || !v.has("bmc.power", "Off"))
	}),
}

// ofSettingOut say when a server may be taken out of service.
var ofSettingOut = []property{
	ofLeaving("takes a server out of service that no user asked for", func(v *valuation, _ engine.Decision) bool {
		return !v.is("server.decommission")
	}),
	ofLeaving("takes a server out of service that is not off", func(v *valuation, _ engine.Decision) bool {
		return !v.has("bmc.power", "Off")
	}),
	ofLeaving("takes a server out of service that a claim is written on", func(v *valuation, _ engine.Decision) bool {
		return v.is("server.claimRefSet")
	}),
	ofLeaving("takes a server out of service that may hold data", func(v *valuation, _ engine.Decision) bool {
		return v.marked(MarkDirty) && !v.is("wipe.attested")
	}),
	ofLeaving("takes a server out of service and calls it clean", func(_ *valuation, d engine.Decision) bool {
		return len(d.Clears) > 0
	}),
}

func ofLeaving(says string, broken func(v *valuation, d engine.Decision) bool) property {
	return ofDecision(says, func(v *valuation, d engine.Decision) bool {
		return d.Moves() && d.To == "Decommissioned" && broken(v, d)
	})
}

// inService says that a decision moves a server, and not out of service.
func inService(d engine.Decision) bool { return d.Moves() && d.To != "Decommissioned" }

// firstOf names the first effect of a decision, or the one that it waits for.
func firstOf(d engine.Decision) string {
	switch {
	case len(d.Effects) > 0:
		return d.Effects[0].Name
	case d.Awaits != nil:
		return d.Awaits.Effect
	}
	return ""
}

// earnsManaged says what makes a machine ours: a boot of ours that begins from off, its claim, or consent.
func earnsManaged(v *valuation) bool {
	return v.has("bmc.power", "Off") || v.is("claim.bound") || v.is("operation.consented")
}

// cutsPower says whether an effect may take power from a machine that runs.
func cutsPower(effect string) bool {
	return effect == EffectPowerOff || effect == EffectPowerAsClaimed || effect == EffectResetAsAsked
}

// ofState holds the properties of a state: nothing that can occur halts it, and it is left in time.
func ofState(stable bool, leftBy time.Duration) []property {
	return []property{
		ofDecision("halted on facts that can occur", func(v *valuation, d engine.Decision) bool {
			return d.Halt != nil && !v.has("bmc.identity", "Other") && !v.is("server.ignored")
		}),
		ofDecision("stays after its deadline", func(v *valuation, d engine.Decision) bool {
			return !stable && d.Halt == nil && !d.Moves() && v.named("lifecycle.age").Duration() >= leftBy
		}),
	}
}
