// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
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

// Boot is how machines are booted, and what differs for some models.
type Boot struct {
	BootOf
	// WithoutOverride lets a machine whose BMC shows no boot override be switched on by its boot order, but never for a wipe.
	WithoutOverride bool
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

func defaultBoot() Boot { return Boot{BootOf: BootOf{FirstWord: defaultFirstWord, Mode: BootModeUEFI}} }

func parseBoot(f *yamlpos.File, n *yaml.Node, b Boot) Boot {
	var models *yaml.Node
	for _, field := range f.Fields(n, "boot", "firstWord", "mode", "withoutOverride", "models") {
		switch field.Name {
		case "models":
			models = field.Value
		case "withoutOverride":
			b.WithoutOverride = f.Bool(field.Value, field.Name)
		default:
			b.BootOf = parseBootOf(f, field, b.BootOf)
		}
	}
	if models == nil {
		return b
	}
	items := f.Items(models, "models")
	if len(items) > maxBootModels {
		f.Errorf(models, "setting-number", "", fmt.Sprintf("name %d models at most; a name may end in *", maxBootModels),
			"models has %d rows", len(items))
		return b
	}
	for _, item := range items { // what a row leaves out is as for all, in whatever order the fields stand
		row, sets := BootModel{BootOf: b.BootOf}, false
		for _, field := range f.Fields(item, "models", "manufacturer", "model", "firstWord", "mode") {
			switch field.Name {
			case "manufacturer":
				row.Manufacturer = pattern(f, field)
			case "model":
				row.Model = pattern(f, field)
			default:
				row.BootOf, sets = parseBootOf(f, field, row.BootOf), true
			}
		}
		if !sets {
			f.Errorf(item, "setting-word", "", "add firstWord or mode, or remove the row", "a row of models does not say how its machines are booted")
		}
		if row.Manufacturer == "" && row.Model == "" {
			f.Errorf(item, "setting-word", "", "name a manufacturer, a model or both, as status of a Server shows them",
				"a row of models names no model")
		}
		b.Models = append(b.Models, row)
	}
	return b
}

// pattern reads a name that may end in "*".
func pattern(f *yamlpos.File, field yamlpos.Field) string {
	text := f.Text(field.Value, field.Name)
	if strings.Contains(strings.TrimSuffix(text, "*"), "*") {
		f.Errorf(field.Value, "setting-word", "", "write one * at the end, such as X9*",
			"%s cannot be %q: a * stands for any text at the end only", field.Name, text)
	}
	return text
}

func parseBootOf(f *yamlpos.File, field yamlpos.Field, b BootOf) BootOf {
	switch field.Name {
	case "firstWord":
		b.FirstWord = duration(f, field.Value, field.Name, "20m")
		if !f.Told(field.Value) && (b.FirstWord < leastFirstWord || b.FirstWord > mostFirstWord) {
			f.Errorf(field.Value, "setting-duration", "", fmt.Sprintf("write a duration from %s to %s", leastFirstWord, mostFirstWord),
				"firstWord cannot be %s", b.FirstWord)
		}
	case "mode":
		b.Mode = oneOf(f, field.Value, field.Name, BootModeUEFI, BootModeLegacy)
	}
	return b
}
