// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/internal/yamlpos"
)

// Claims is how claims are served.
type Claims struct{ Priority Priority }

// Priority is what becomes of the priority that a claim asks for.
type Priority struct {
	// Max is the most that a claim can have; what asks for more has that.
	Max int64
	// Namespaces are the most by namespace, instead of Max.
	Namespaces map[string]int64
	// Ageing is how long a claim waits for one point more; 0 where waiting counts only among equals.
	Ageing time.Duration
}

// MaxPriority bounds the priority of a claim in both directions, whatever a bundle says.
const MaxPriority = 1000

// defaultAgeing lets the least claim pass the highest after two weeks.
const defaultAgeing = 10 * time.Minute

// Grant returns the priority that a claim of a namespace has which asks for one.
func (p Priority) Grant(namespace string, asked int64) int64 {
	most, ok := p.Namespaces[namespace]
	if !ok {
		most = p.Max
	}
	return min(asked, most)
}

// Aged is the priority of a claim that has waited for so long. It is not bounded, so that every claim is first at some time.
func (p Priority) Aged(priority int64, waited time.Duration) int64 {
	if p.Ageing <= 0 || waited <= 0 {
		return priority
	}
	return priority + int64(waited/p.Ageing)
}

func parseClaims(f *yamlpos.File, n *yaml.Node, c Claims) Claims {
	for _, field := range f.Fields(n, "claims", "priority") {
		c.Priority = parsePriority(f, field.Value, c.Priority)
	}
	return c
}

func parsePriority(f *yamlpos.File, n *yaml.Node, p Priority) Priority {
	for _, field := range f.Fields(n, "priority", "max", "namespaces", "ageing") {
		switch field.Name {
		case "max":
			p.Max = int64(number(f, field.Value, field.Name, -MaxPriority, MaxPriority))
		case "namespaces":
			p.Namespaces = map[string]int64{}
			for _, ns := range f.Fields(field.Value, "namespaces") {
				p.Namespaces[ns.Name] = int64(number(f, ns.Value, ns.Name, -MaxPriority, MaxPriority))
			}
		case "ageing":
			p.Ageing = duration(f, field.Value, field.Name, "10m")
		}
	}
	return p
}
