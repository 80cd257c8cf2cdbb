// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"net/http"
	"slices"
	"strings"
)

// stays is what a system shows, and how its power is, when its override stays though its settings resource shows none.
type stays struct {
	enabled, target string
	power           PowerState
}

// ClearBoot implements Boot.
func (c *client) ClearBoot(ctx context.Context, uri string, want Identity) error {
	op, cancel, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	var seen *stays
	ch := c.clearing(uri, want, &seen)
	var not *UnsupportedError // what to say where the BMC refuses, because it does not offer Disabled
	refuse := ch.refuse
	ch.refuse = func(current, pending *systemDoc, s SystemSnapshot) error {
		not = notOffered(uri, current, pending)
		return refuse(current, pending, s)
	}
	set, err := op.apply(uri, ch)
	if not != nil && Refused(err) && statusIs(err, http.StatusBadRequest) {
		err = not
	}
	if seen != nil && (err == nil && set.wrote || Refused(err)) {
		c.learn(func(m *memory) {
			if m.uncleared == nil {
				m.uncleared = map[string]stays{}
			}
			m.uncleared[uri] = *seen
		})
	}
	return err
}

// notOffered is the error for an override that the BMC takes no Disabled for; nil where it offers that, or says nothing
// of it. Disabled is tried all the same, because such lists are not always right.
func notOffered(uri string, current, pending *systemDoc) *UnsupportedError {
	boot := current.Boot.Value
	offered := words(boot.AllowedEnabled)
	if taking := overrideOf(pending); taking != nil && taking.Boot.Value.AllowedEnabled.Present {
		offered = words(taking.Boot.Value.AllowedEnabled)
	}
	disables := func(word string) bool { return strings.EqualFold(word, overrideDisabled) }
	if len(offered) == 0 || slices.ContainsFunc(offered, disables) {
		return nil
	}
	wanted := strings.TrimSpace("clearing its boot override " + string(boot.Enabled) + " " + string(boot.Target))
	return &UnsupportedError{URI: uri, Wanted: wanted, Offered: offered,
		Hint: "Disabled is not offered and was refused; clear the override at the BMC"}
}

// clearing takes an override away. Where the settings resource shows none already, only a write to the system can help; one
// that did not is repeated only once the system shows something else. seen is what the system shows then.
func (c *client) clearing(uri string, want Identity, seen **stays) change {
	only := bootVariant{properties: map[string]any{propertyEnabled: overrideDisabled}}
	full := bootVariant{properties: map[string]any{propertyEnabled: overrideDisabled, propertyTarget: targetNone}}
	return change{
		want:            want,
		throughSettings: true,
		refuse: func(current, pending *systemDoc, s SystemSnapshot) error {
			*seen = nil
			if !staysBeside(current, pending) {
				c.learn(func(m *memory) { delete(m.uncleared, uri) })
				return nil
			}
			now := stays{enabled: string(current.Boot.Value.Enabled), target: string(current.Boot.Value.Target), power: s.Power}
			vain := false
			c.learn(func(m *memory) { before, known := m.uncleared[uri]; vain = known && before == now })
			if vain {
				return &UnsupportedError{URI: uri, Wanted: "clearing its boot override " + now.enabled + " " + now.target,
					Hint: "its settings resource shows none, and writing it to the system changed nothing; clear it at the BMC"}
			}
			*seen = &now
			return nil
		},
		holds: func(current, pending *systemDoc) bool {
			return !current.Boot.Value.overridden() && (pending == nil || !pending.Boot.Value.overridden())
		},
		attempts: func(current, pending *systemDoc) []attempt {
			if staysBeside(current, pending) {
				return bootAttempts(nil, only, full)
			}
			return bootAttempts(pending, only, full)
		},
	}
}

// staysBeside reports that a system shows an override beside a settings resource that takes overrides and shows none.
func staysBeside(current, pending *systemDoc) bool {
	return current.Boot.Value.overridden() && overrideOf(pending) != nil && !pending.Boot.Value.overridden()
}
