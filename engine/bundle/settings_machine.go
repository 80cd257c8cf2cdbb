// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/internal/yamlpos"
)

// Health is what becomes of a server whose BMC reports a part of the machine as critical.
type Health struct {
	// CriticalStops is StopsInspection, StopsOffering or StopsNothing.
	CriticalStops string
}

// The words of health.criticalStops.
const (
	StopsInspection = "inspection"
	StopsOffering   = "offering"
	StopsNothing    = "nothing"
)

func parseHealth(f *yamlpos.File, n *yaml.Node, h Health) Health {
	for _, field := range f.Fields(n, "health", "criticalStops") {
		h.CriticalStops = oneOf(f, field.Value, field.Name, StopsInspection, StopsOffering, StopsNothing)
	}
	return h
}
