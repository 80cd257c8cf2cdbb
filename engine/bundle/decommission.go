// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/internal/yamlpos"
)

// The words of decommission.propose: faults for which a server is proposed to go out of service.
const (
	// ProposeHealth is a health that the BMC reports as critical.
	ProposeHealth = "Health"
	// ProposeDisk is a disk that failed.
	ProposeDisk = "Disk"
	// ProposeMemory is a memory module that is missing against the last inventory.
	ProposeMemory = "Memory"
)

var proposeWords = []string{ProposeHealth, ProposeDisk, ProposeMemory}

// Decommission is which servers are proposed to go out of service. A person decides.
type Decommission struct {
	// Propose are the faults for which one is proposed; none proposes nothing.
	Propose []string
	// CordonMostPercent is how many of a model are cordoned in a day for such a fault, in percent; 0 cordons none.
	CordonMostPercent int
}

func defaultDecommission() Decommission {
	return Decommission{Propose: slices.Clone(proposeWords), CordonMostPercent: 2}
}

func (d *Decommission) keys() []key {
	return []key{
		{"propose", func(f *yamlpos.File, k yamlpos.Field) {
			d.Propose = texts(f, k.Value, k.Name, func(n *yaml.Node, name string) bool {
				if !slices.Contains(proposeWords, name) {
					f.Errorf(n, "setting-word", "", "write "+strings.Join(proposeWords, ", "), "%s cannot be %q", k.Name, name)
					return false
				}
				return true
			})
		}},
		{"cordonMostPercent", whole(&d.CordonMostPercent, 0, 100)},
	}
}
