// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/celrule"
)

// Facts are what the expressions of a policy read of one server, of the claim that holds it and of one maintenance.
type Facts struct {
	State, Power, Health string
	Labels               map[string]string
	// Conditions are the status of each condition, by type.
	Conditions       map[string]string
	ClaimLabels      map[string]string
	ClaimAnnotations map[string]string
	Maintenance      MaintenanceFacts
}

// MaintenanceFacts are what the expressions of a policy read of a maintenance.
type MaintenanceFacts struct {
	Labels      map[string]string
	Annotations map[string]string
	Priority    int32
	// Policy is OwnerApproval or Enforced.
	Policy string
}

// Fact is a variable of expressions.
type Fact struct {
	// Name is such as server.health.
	Name string
	// Type is the name of its type in CEL.
	Type string
	// Doc is one sentence.
	Doc string

	text   func(*Facts) string
	labels func(*Facts) map[string]string
	number func(*Facts) int64
}

const (
	typeText   = "string"
	typeLabels = "map of string to string"
	typeNumber = "int"
)

func text(name, doc string, of func(*Facts) string) Fact {
	return Fact{Name: name, Type: typeText, Doc: doc, text: of}
}

func labels(name, doc string, of func(*Facts) map[string]string) Fact {
	return Fact{Name: name, Type: typeLabels, Doc: doc, labels: of}
}

var variables = []Fact{
	text("server.state", "The state of the server.", func(f *Facts) string { return f.State }),
	text("server.power", "The power that its BMC reported last: On, Off, or empty where it is not known.", func(f *Facts) string { return f.Power }),
	text("server.health", "The health that its BMC reported last: OK, Warning, Critical, or Unknown.",
		func(f *Facts) string { return f.Health }),
	labels("server.labels", "Its labels.", func(f *Facts) map[string]string { return f.Labels }),
	labels("server.conditions", "The status of each of its conditions, by type: True, False or Unknown.",
		func(f *Facts) map[string]string { return f.Conditions }),
	labels("claim.labels", "The labels of the claim that holds it; empty without one.", func(f *Facts) map[string]string { return f.ClaimLabels }),
	labels("claim.annotations", "The annotations of the claim that holds it; empty without one.",
		func(f *Facts) map[string]string { return f.ClaimAnnotations }),
	labels("maintenance.labels", "The labels of the maintenance.", func(f *Facts) map[string]string { return f.Maintenance.Labels }),
	labels("maintenance.annotations", "The annotations of the maintenance.", func(f *Facts) map[string]string { return f.Maintenance.Annotations }),
	{Name: "maintenance.priority", Type: typeNumber, Doc: "The priority of the maintenance.",
		number: func(f *Facts) int64 { return int64(f.Maintenance.Priority) }},
	text("maintenance.policy", "The policy of the maintenance: OwnerApproval or Enforced.", func(f *Facts) string { return f.Maintenance.Policy }),
}

var byName = func() map[string]*Fact {
	table := map[string]*Fact{}
	for i := range variables {
		table[variables[i].Name] = &variables[i]
	}
	return table
}()

var celTypes = map[string]*cel.Type{typeText: cel.StringType, typeNumber: cel.IntType, typeLabels: cel.MapType(cel.StringType, cel.StringType)}

// source says how names are read without CEL.
var source = celrule.Source[*Facts]{
	Fact: func(name string) celrule.Operand[*Facts] {
		switch f := byName[name]; {
		case f == nil:
		case f.text != nil:
			return celrule.Operand[*Facts]{Kind: engine.String, Text: func(of *Facts) (string, bool) { return f.text(of), true }}
		case f.number != nil:
			return celrule.Operand[*Facts]{Kind: engine.Int, Number: func(of *Facts) (int64, bool) { return f.number(of), true }}
		}
		return celrule.Operand[*Facts]{}
	},
	Labels: func(name string) func(*Facts) map[string]string {
		if f := byName[name]; f != nil {
			return f.labels
		}
		return nil
	},
}

// activation gives CEL the facts.
type activation struct{ facts *Facts }

// ResolveName implements cel.Activation.
func (a activation) ResolveName(name string) (any, bool) {
	switch f := byName[name]; {
	case f == nil:
		return nil, false
	case f.text != nil:
		return types.String(f.text(a.facts)), true
	case f.number != nil:
		return types.Int(f.number(a.facts)), true
	default:
		return types.NewStringStringMap(types.DefaultTypeAdapter, f.labels(a.facts)), true
	}
}

// Parent implements cel.Activation.
func (activation) Parent() cel.Activation { return nil }
