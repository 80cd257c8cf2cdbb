// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// The properties of Boot that are written.
const (
	propertyEnabled = "BootSourceOverrideEnabled"
	propertyTarget  = "BootSourceOverrideTarget"
	propertyMode    = "BootSourceOverrideMode"
	propertyOrder   = "BootOrder"
)

type bootDoc struct {
	Enabled text       `json:"BootSourceOverrideEnabled"`
	Target  text       `json:"BootSourceOverrideTarget"`
	Mode    text       `json:"BootSourceOverrideMode"`
	Allowed list[text] `json:"BootSourceOverrideTarget@Redfish.AllowableValues"`
	// AllowedEnabled are the values of Enabled that are offered.
	AllowedEnabled list[text] `json:"BootSourceOverrideEnabled@Redfish.AllowableValues"`
	Order          list[text] `json:"BootOrder"`
	Options        link       `json:"BootOptions"`
	// shown are the names of the properties that are there, null ones included.
	shown map[string]bool
}

// UnmarshalJSON notes which properties a resource shows, because that decides where each is written.
func (b *bootDoc) UnmarshalJSON(raw []byte) error {
	type plain bootDoc
	if err := json.Unmarshal(raw, (*plain)(b)); err != nil {
		return err
	}
	var names map[string]json.RawMessage
	if err := json.Unmarshal(raw, &names); err != nil {
		return err
	}
	b.shown = make(map[string]bool, len(names))
	for name := range names {
		b.shown[name] = true
	}
	return nil
}

// showsBoot reports whether a resource shows a property of Boot; nil shows none.
func (d *systemDoc) showsBoot(property string) bool {
	return d != nil && d.Boot.Value.shown[property]
}

// overrideOf is the settings resource where that takes the override; nil where the system does.
func overrideOf(pending *systemDoc) *systemDoc {
	if pending.showsBoot(propertyEnabled) || pending.showsBoot(propertyTarget) {
		return pending
	}
	return nil
}

// bootAttempts lists how properties of Boot may be written: each to the settings resource where that shows it, else to
// the system; then, after a refusal, all of them to the other resource once.
// Evidence: Lenovo XCC shows only BootOrder in /Pending; a DGX H100 shows the override in /SD.
func bootAttempts(pending *systemDoc, variants ...bootVariant) []attempt {
	var shown, otherwise []attempt
	for _, v := range variants {
		atSettings, atSystem := map[string]any{}, map[string]any{}
		for name, value := range v.properties {
			if pending.showsBoot(name) {
				atSettings[name] = value
			} else {
				atSystem[name] = value
			}
		}
		if v.settled && len(atSystem) > 0 {
			delete(atSettings, propertyMode)
		}
		one := attempt{after: v.after, learn: v.learn}
		other := attempt{after: v.after, learn: v.learn, writes: []write{{settings: len(atSettings) == 0, body: boot(v.properties)}}}
		if len(atSettings) > 0 {
			one.writes = append(one.writes, write{settings: true, body: boot(atSettings)})
		}
		if len(atSystem) > 0 {
			one.writes = append(one.writes, write{body: boot(atSystem)})
		}
		shown, otherwise = append(shown, one), append(otherwise, other)
	}
	if pending == nil {
		return shown
	}
	var all []attempt
	for _, a := range append(shown, otherwise...) {
		if !slices.ContainsFunc(all, func(b attempt) bool { return reflect.DeepEqual(a.writes, b.writes) }) {
			all = append(all, a)
		}
	}
	return all
}

// bootVariant is one way to say what is to be booted.
type bootVariant struct {
	properties map[string]any
	// settled says that the settings resource shows the mode as wanted, so that it is not written there for itself.
	settled bool
	after   func(refused error) bool
	learn   func(refused error)
}

// bootOf is the Boot of a resource that may be absent.
func bootOf(d *systemDoc) bootDoc {
	if d == nil {
		return bootDoc{}
	}
	return d.Boot.Value
}

func boot(properties map[string]any) map[string]any { return map[string]any{"Boot": properties} }

// overrideVariants are the ways to set an override: with its mode where any resource shows one, else without. A refusal that
// names the mode, or names nothing, is followed by the other way; only one that names it is remembered.
func (c *client) overrideVariants(current, pending *systemDoc, target string, mode BootMode) []bootVariant {
	plain := bootVariant{properties: map[string]any{propertyEnabled: overrideOnce, propertyTarget: target}}
	full := bootVariant{
		properties: map[string]any{propertyEnabled: overrideOnce, propertyTarget: target, propertyMode: string(mode)},
		settled:    pending.showsBoot(propertyMode) && strings.EqualFold(string(pending.Boot.Value.Mode), string(mode)),
	}
	aboutMode := func(refused error) bool {
		named := namedIn(refused, propertyEnabled, propertyTarget, propertyMode)
		return len(named) == 0 || len(named) == 1 && named[0] == propertyMode
	}
	switch {
	case mode == BootLegacy: // the machine would boot in another mode without it
		return []bootVariant{full}
	case c.recall().habits.noBootMode, !current.showsBoot(propertyMode) && !pending.showsBoot(propertyMode):
		full.after = func(refused error) bool { return len(namedIn(refused, propertyMode)) == 1 }
		full.learn = func(error) { c.learn(func(m *memory) { m.habits.noBootMode = false }) }
		return []bootVariant{plain, full}
	}
	plain.after = aboutMode
	plain.learn = func(refused error) {
		if len(namedIn(refused, propertyMode)) == 1 {
			c.learn(func(m *memory) { m.habits.noBootMode = true })
		}
	}
	return []bootVariant{full, plain}
}

// overridden reports whether an override stands; a target without a word on Enabled counts as one.
func (b bootDoc) overridden() bool {
	if strings.EqualFold(string(b.Enabled), overrideDisabled) || strings.EqualFold(string(b.Target), targetNone) {
		return false
	}
	return b.Enabled != "" || b.Target != ""
}

// shows reports that the next boot is from target. Some makes show Continuous for what was set once.
func (b bootDoc) shows(target string) bool {
	return b.overridden() && strings.EqualFold(string(b.Target), target)
}

// inMode reports that a resource does not show another mode.
func (b bootDoc) inMode(mode BootMode) bool {
	return b.Mode == "" || strings.EqualFold(string(b.Mode), string(mode))
}
