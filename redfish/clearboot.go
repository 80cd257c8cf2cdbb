// SPDX-License-Identifier: Apache-2.0

package redfish

import "context"

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
	set, err := op.apply(uri, c.clearing(uri, want, &seen))
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
