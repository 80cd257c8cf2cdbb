// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/internal/yamlpos"
)

// Boot is how machines are booted.
type Boot struct {
	// WithoutOverride lets a machine whose BMC shows no boot override be switched on by its boot order, but never for a wipe.
	WithoutOverride bool
}

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

func parseBoot(f *yamlpos.File, n *yaml.Node, b Boot) Boot {
	for _, field := range f.Fields(n, "boot", "withoutOverride") {
		b.WithoutOverride = f.Bool(field.Value, field.Name)
	}
	return b
}

func parseHealth(f *yamlpos.File, n *yaml.Node, h Health) Health {
	for _, field := range f.Fields(n, "health", "criticalStops") {
		h.CriticalStops = oneOf(f, field.Value, field.Name, StopsInspection, StopsOffering, StopsNothing)
	}
	return h
}
