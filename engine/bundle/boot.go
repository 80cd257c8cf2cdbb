// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/internal/yamlpos"
)

// The words of boot.mode.
const (
	BootModeUEFI   = "UEFI"
	BootModeLegacy = "Legacy"
)

// The words of boot.ways.
const (
	// BootWayVirtualMedia boots from an ISO that the BMC reads from the boot service.
	BootWayVirtualMedia = "VirtualMedia"
	// BootWayNetwork boots from the manager's boot target: PXE or UEFI HTTP.
	BootWayNetwork = "Network"
)

// The words of boot.ignition: how long the boot service serves the ignition of a claim.
const (
	// IgnitionAlways serves it at each boot, as images need that run from memory.
	IgnitionAlways = "Always"
	// IgnitionUntilFirstSign serves it until the machine reported that its operating system is up.
	IgnitionUntilFirstSign = "UntilFirstSign"
)

// Boot is how machines are booted, and what differs for some models.
type Boot struct {
	BootOf
	// WithoutOverride lets a machine whose BMC shows no boot override be switched on by its boot order, but never for a wipe.
	WithoutOverride bool
	// Ways are those in which machines boot, the preferred one first: BootWayVirtualMedia, BootWayNetwork. None is the network
	// alone, and the annotation of a BMC goes before them.
	Ways []string
	// Ignition is IgnitionAlways or IgnitionUntilFirstSign.
	Ignition string
	// Models differ; the first that fits a machine counts.
	Models []BootModel
}

// BootOf is how one machine is booted.
type BootOf struct {
	// FirstWord is how long after its power-on a machine may take until it is heard of.
	FirstWord time.Duration
	// Mode is BootModeUEFI or BootModeLegacy.
	Mode string
}

// BootModel is what differs for a model. A name that ends in "*" stands for all that begin so.
type BootModel struct {
	Manufacturer, Model string
	BootOf
}

// For is how a machine of a manufacturer and model is booted.
func (b Boot) For(manufacturer, model string) BootOf {
	for _, m := range b.Models {
		if fitsName(m.Manufacturer, manufacturer) && fitsName(m.Model, model) {
			return m.BootOf
		}
	}
	return b.BootOf
}

// fitsName compares a name with a pattern; an empty pattern fits every name.
func fitsName(pattern, name string) bool {
	pattern, name = strings.ToLower(pattern), strings.ToLower(strings.TrimSpace(name))
	if begin, open := strings.CutSuffix(pattern, "*"); open {
		return strings.HasPrefix(name, begin)
	}
	return pattern == "" || pattern == name
}

const (
	defaultFirstWord = 20 * time.Minute
	// leastFirstWord is longer than a small machine's self test.
	leastFirstWord = time.Minute
	mostFirstWord  = 24 * time.Hour
	maxBootModels  = 200
)

func defaultBoot() Boot {
	return Boot{BootOf: BootOf{FirstWord: defaultFirstWord, Mode: BootModeUEFI}, Ignition: IgnitionAlways}
}

// keys are what may be said of all machines and of one model.
func (b *BootOf) keys() []key {
	return []key{{"firstWord", b.readFirstWord}, {"mode", word(&b.Mode, BootModeUEFI, BootModeLegacy)}}
}

func (b *BootOf) readFirstWord(f *yamlpos.File, k yamlpos.Field) {
	span(&b.FirstWord, "20m")(f, k)
	if !f.Told(k.Value) && (b.FirstWord < leastFirstWord || b.FirstWord > mostFirstWord) {
		f.Errorf(k.Value, "setting-duration", "", fmt.Sprintf("write a duration from %s to %s", leastFirstWord, mostFirstWord),
			"firstWord cannot be %s", b.FirstWord)
	}
}

func (b *Boot) read(f *yamlpos.File, k yamlpos.Field) {
	var models *yaml.Node
	readKeys(f, k.Value, k.Name, append(b.keys(),
		key{"withoutOverride", truth(&b.WithoutOverride)},
		key{"ways", b.readWays},
		key{"ignition", b.readIgnition},
		key{"models", func(_ *yamlpos.File, k yamlpos.Field) { models = k.Value }})...)
	items := f.Items(models, "models")
	if len(items) > maxBootModels {
		f.Errorf(models, "setting-number", "", fmt.Sprintf("name %d models at most; a name may end in *", maxBootModels),
			"models has %d rows", len(items))
		return
	}
	for _, item := range items { // what a row leaves out is as for all, in any order of the fields
		row := BootModel{BootOf: b.BootOf}
		given := readKeys(f, item, "models",
			append([]key{{"manufacturer", pattern(&row.Manufacturer)}, {"model", pattern(&row.Model)}}, row.keys()...)...)
		if !slices.Contains(given, "firstWord") && !slices.Contains(given, "mode") {
			f.Errorf(item, "setting-word", "", "add firstWord or mode, or remove the row", "a row of models does not say how its machines are booted")
		}
		if row.Manufacturer == "" && row.Model == "" {
			f.Errorf(item, "setting-word", "", "name a manufacturer, a model or both, as status of a Server shows them",
				"a row of models names no model")
		}
		b.Models = append(b.Models, row)
	}
}

// readIgnition reads how long an ignition is served, and warns of what the shorter time breaks.
func (b *Boot) readIgnition(f *yamlpos.File, k yamlpos.Field) {
	word(&b.Ignition, IgnitionAlways, IgnitionUntilFirstSign)(f, k)
	if b.Ignition == IgnitionUntilFirstSign && !f.Told(k.Value) {
		f.Warnf(k.Value, "setting-word", "", "write Always, unless each image of your tenants keeps its ignition on its own disk",
			"ignition %s: an image that fetches its ignition at each boot does not come up again after a reboot", b.Ignition)
	}
}

// readWays reads a list of ways, each of them once.
func (b *Boot) readWays(f *yamlpos.File, k yamlpos.Field) {
	b.Ways = nil
	for _, item := range f.Items(k.Value, k.Name) {
		var way string
		word(&way, BootWayVirtualMedia, BootWayNetwork)(f, yamlpos.Field{Name: k.Name, Value: item})
		if slices.Contains(b.Ways, way) && !f.Told(item) {
			f.Errorf(item, "setting-word", "", "name each way once", "%s names %s twice", k.Name, way)
			continue
		}
		b.Ways = append(b.Ways, way)
	}
	if len(b.Ways) == 0 && !f.Told(k.Value) {
		f.Errorf(k.Value, "setting-word", "", "write [Network], or [VirtualMedia, Network]", "%s names no way to boot", k.Name)
	}
}

// pattern reads a name that may end in "*".
func pattern(to *string) func(*yamlpos.File, yamlpos.Field) {
	return func(f *yamlpos.File, k yamlpos.Field) {
		if *to = f.Text(k.Value, k.Name); strings.Contains(strings.TrimSuffix(*to, "*"), "*") {
			f.Errorf(k.Value, "setting-word", "", "write one * at the end, such as X9*",
				"%s cannot be %q: a * stands for any text at the end only", k.Name, *to)
		}
	}
}
