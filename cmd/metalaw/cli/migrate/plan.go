// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// planned is what a manager would make of one server at its first look.
type planned struct {
	Name  string `json:"name"`
	State string `json:"state,omitempty"`
	Power string `json:"power,omitempty"`
	// Becomes is the state in which the lifecycle begins, or goes on.
	Becomes string   `json:"becomes,omitempty"`
	Marks   []string `json:"marks"`
	// Next is the move that follows, "rule to state", or that it stays, and what the state asks of the machine.
	Next string `json:"next,omitempty"`
	Why  string `json:"why,omitempty"`
}

func (f *fleet) plan() []planned {
	all := make([]planned, 0, len(f.servers))
	for i := range f.servers {
		all = append(all, f.planOne(&f.servers[i]))
	}
	slices.SortFunc(all, func(a, b planned) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// maxNamed is how many BMCs a note names; the structured output has all.
const maxNamed = 20

// withoutScheme are the names of the BMCs that the manager would ask over https for want of a scheme. metal-operator
// asks them by its flag, which may be plain HTTP.
func (f *fleet) withoutScheme() []string {
	var names []string
	for i := range f.bmcs {
		if f.bmcs[i].Spec.Protocol.Scheme == "" {
			names = append(names, f.bmcs[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// notes say what concerns the whole fleet: metal-operator verifies no certificate, and the policy mostly does.
func (f *fleet) notes() []string {
	var notes []string
	if names := f.withoutScheme(); len(names) > 0 {
		more := ""
		if len(names) > maxNamed {
			more = fmt.Sprintf(" and %d more, which -o json lists", len(names)-maxNamed)
		}
		notes = append(notes, fmt.Sprintf("the manager asks a BMC without spec.protocol.scheme over https. Set http in step 3 "+
			"for each of these that speaks plain HTTP (%d of %d): %s%s", len(names), len(f.bmcs),
			strings.Join(names[:min(maxNamed, len(names))], ", "), more))
	}
	untold := 0
	for i := range f.bmcs {
		b := &f.bmcs[i]
		if b.Spec.Protocol.Scheme != v1alpha1.ProtocolSchemeHTTP && b.Spec.Trust == nil {
			untold++
		}
	}
	if untold == 0 || f.bundle.Settings.BMCTLS == bundle.TLSInsecure {
		return notes
	}
	return append(notes, fmt.Sprintf("the manager verifies the certificates of BMCs (bmc.tls: %s), and %d of %d BMCs name "+
		"none in spec.trust. It does not reach a BMC whose certificate neither --bmc-ca-file nor its BMCSecret trusts",
		f.bundle.Settings.BMCTLS, untold, len(f.bmcs)))
}

// planOne decides as the manager does, by the same functions. What only the manager can know is taken from the object: the power from
// its status, and that its BMC answers for the machine that the server names.
func (f *fleet) planOne(stored *v1alpha1.Server) planned {
	s := stored.DeepCopy()
	p := planned{Name: s.Name, State: string(s.Status.State), Power: string(s.Status.PowerState), Marks: []string{}}
	if v1alpha1.Ignored(s) {
		p.Becomes, p.Why = p.State, "annotation "+v1alpha1.OperationAnnotation+" has it left alone"
		return p
	}
	o := f.observe(s)
	facts := o.Facts()
	if l := s.Status.Lifecycle; l != nil {
		p.Becomes = p.State
		p.Why = "it has a lifecycle already"
	} else {
		inherited := policies.Inheritance(s, o.Inventory, o.Proof)
		d := policies.Begin(f.bundle.Lifecycle, facts, true)
		p.Why = whys(inherited, o.Proof)
		if d.Halt != nil {
			p.Marks, p.Next, p.Why = append(p.Marks, facts.Lifecycle.Marks...), "halted", haltText(d.Halt)
			return p
		}
		begin(s, d, policies.MarksOf(inherited), policies.LastEntry(o.Inventory)+1)
		p.Becomes = string(d.To)
		o.Server = s
		facts = o.Facts()
	}
	p.Marks = append(p.Marks, facts.Lifecycle.Marks...)
	if facts.Claim.Missing {
		p.Why = joinWhy(p.Why, "ClaimMissing: its claim does not exist or does not name it")
	}
	f.next(&p, f.bundle.Lifecycle.Decide(facts))
	return p
}

// begin stores the first entry of a lifecycle on a copy, as the manager does on the server.
func begin(s *v1alpha1.Server, d engine.Decision, marks []string, entry int64) {
	for _, mark := range d.Marks {
		if !slices.Contains(marks, mark) {
			marks = append(marks, mark)
		}
	}
	slices.Sort(marks)
	s.Status.State = v1alpha1.ServerState(d.To)
	s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: entry, Rule: d.Rule, Marks: marks}
}

// reaches are the effects that reach a machine, or what it boots.
var reaches = map[string]bool{policies.EffectPowerOff: true, policies.EffectPowerOn: true, policies.EffectPowerAsClaimed: true,
	policies.EffectBootProbe: true, policies.EffectBootWipe: true, policies.EffectBootAsClaimed: true, policies.EffectResetAsAsked: true}

func (f *fleet) next(p *planned, d engine.Decision) {
	switch {
	case d.Halt != nil:
		p.Next, p.Why = "halted", joinWhy(p.Why, haltText(d.Halt))
	case d.Moves():
		p.Next = fmt.Sprintf("%s to %s", d.Rule, d.To)
		p.Why = joinWhy(p.Why, cmp.Or(f.bundle.Lifecycle.Says(d.Rule), f.bundle.Lifecycle.Means(d.To)))
	default:
		p.Next = "stays"
		for _, e := range d.Effects {
			off := e.Name == policies.EffectPowerOff && p.Power == string(v1alpha1.PowerOff) // holds already
			if reaches[e.Name] && !off {
				p.Next += ", " + e.Name
			}
		}
		p.Why = joinWhy(p.Why, f.bundle.Lifecycle.Means(engine.State(p.Becomes)))
	}
}

// observe is what the manager would see of a server. A claim that it would adopt has its UID recorded, as the scheduler does first.
func (f *fleet) observe(s *v1alpha1.Server) policies.Observation {
	c, inv := f.claimOf(s), f.inventoryOf(s)
	if c != nil && c.DeletionTimestamp.IsZero() && policies.RelationOf(s, c) == policies.Adoptable {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ClaimUIDAnnotation, string(c.UID))
	}
	o := policies.Observation{Server: s, Now: f.now, Settings: f.bundle.Settings, Claim: c, Inventory: inv}
	if l := s.Status.Lifecycle; l != nil {
		o.Counted = f.now.Sub(l.EnteredAt.Time)
	}
	if s.Status.PowerState != "" {
		o.System = policies.SystemReading{Reachable: true, Power: string(s.Status.PowerState), Identity: policies.IdentitySame}
	}
	if policies.Pruned(s, inv) {
		o.Proof = policies.ProofOf(s, inv)
	}
	return o
}

func whys(inherited []policies.Inherited, proof policies.Proof) string {
	var words []string
	for _, i := range inherited {
		words = append(words, i.Mark+": "+i.Why)
	}
	if proof.Clean {
		words = append(words, "not Dirty: "+proof.Why)
	}
	return strings.Join(words, "; ")
}

func joinWhy(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

func haltText(h *engine.Halt) string {
	if h.Rule == "" {
		return h.Message
	}
	return h.Rule + ": " + h.Message
}
