// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/schemas"
)

const (
	overrideOnce     = string(schemas.OnceBootSourceOverrideEnabled)
	overrideDisabled = string(schemas.DisabledBootSourceOverrideEnabled)
	targetNone       = string(schemas.NoneBootSource)
	modeUEFI         = string(schemas.UEFIBootSourceOverrideMode)
)

// PowerOnOnce implements Boot. The action goes with any ETag, because setting the override may have changed the system's.
func (c *client) PowerOnOnce(ctx context.Context, uri string, want Identity, target string) error {
	op, cancel, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if target == TargetBootOrder {
		return op.powerOnByOrder(uri, want)
	}
	set, err := op.apply(uri, c.bootOnce(uri, want, target))
	if MayHaveHappened(err) {
		return &NotAskedError{What: "the power-on", Err: fmt.Errorf("boot override: %w", err)}
	}
	if err != nil {
		return err
	}
	if err := op.overrideShown(uri, want, target, set); err != nil {
		return err
	}
	return op.reset(uri, want, set.doc, ActionOn, "")
}

// overrideShown reads an override back that was just written, where it was written: a BMC may accept what it then ignores,
// and the machine would boot from its disk. Where a settings resource took it, the system may show it as well, or instead.
func (o *operation) overrideShown(uri string, want Identity, target string, set applied) error {
	if set.at == "" {
		return nil // it was read right before
	}
	missing := &OverrideError{Address: o.c.base.Host, URI: uri, Asked: target, Later: set.later}
	if set.at != uri {
		pending := &systemDoc{}
		if _, err := o.get(set.at, pending); err == nil && pending.Boot.Value.shows(target) {
			return nil
		}
	}
	now, snapshot, err := o.checked(uri, want)
	if err != nil {
		return &NotAskedError{What: "the power-on", Err: fmt.Errorf("the boot override could not be read back: %w", err)}
	}
	if err := notOff(snapshot); err != nil {
		return err
	}
	if !now.Boot.Value.shows(target) {
		missing.Enabled, missing.Target = string(now.Boot.Value.Enabled), string(now.Boot.Value.Target)
		return missing
	}
	return nil
}

// shows reports that the next boot is from target. Some makes show Continuous for what was set once.
func (b bootDoc) shows(target string) bool {
	return b.overridden() && strings.EqualFold(string(b.Target), target)
}

// notOff is the error for a system that does not read Off; nil for one that does.
func notOff(s SystemSnapshot) error {
	if s.Power == PowerOff {
		return nil
	}
	return fmt.Errorf("redfish: %s reads %s: %w", s.URI, s.Power, ErrNotOff)
}

func (c *client) bootOnce(uri string, want Identity, target string) change {
	return change{
		want:            want,
		throughSettings: true,
		refuse: func(_ *systemDoc, s SystemSnapshot) error {
			if err := notOff(s); err != nil {
				return err
			}
			if s.Boot.Missing {
				return &UnsupportedError{URI: uri, Wanted: "booting from " + target, Hint: "it shows no boot override"}
			}
			if len(s.Boot.Allowed) > 0 && !slices.Contains(s.Boot.Allowed, target) {
				return &UnsupportedError{URI: uri, Wanted: "booting from " + target, Offered: s.Boot.Allowed}
			}
			return nil
		},
		// A settings resource may go on showing an override that was used up, so with one the override is always set.
		holds: func(current, pending *systemDoc) bool {
			boot := current.Boot.Value
			uefi := boot.Mode == "" || string(boot.Mode) == modeUEFI
			return pending == nil && uefi && strings.EqualFold(string(boot.Enabled), overrideOnce) && string(boot.Target) == target
		},
		bodies: func(*systemDoc) []map[string]any {
			plain := map[string]any{"BootSourceOverrideEnabled": overrideOnce, "BootSourceOverrideTarget": target}
			full := map[string]any{"BootSourceOverrideEnabled": overrideOnce, "BootSourceOverrideTarget": target, "BootSourceOverrideMode": modeUEFI}
			if c.recall().habits.noBootMode {
				return bootBodies(plain)
			}
			return bootBodies(full, plain)
		},
		onlyLater: func() { c.learn(func(m *memory) { m.habits.noBootMode = true }) },
	}
}

// ClearBoot implements Boot.
func (c *client) ClearBoot(ctx context.Context, uri string, want Identity) error {
	return c.change(ctx, uri, change{
		want:            want,
		throughSettings: true,
		holds: func(current, pending *systemDoc) bool {
			return !current.Boot.Value.overridden() && (pending == nil || !pending.Boot.Value.overridden())
		},
		bodies: func(*systemDoc) []map[string]any {
			return bootBodies(
				map[string]any{"BootSourceOverrideEnabled": overrideDisabled},
				map[string]any{"BootSourceOverrideEnabled": overrideDisabled, "BootSourceOverrideTarget": targetNone})
		},
	})
}

// overridden reports whether an override stands; a target without a word on Enabled counts as one.
func (b bootDoc) overridden() bool {
	if strings.EqualFold(string(b.Enabled), overrideDisabled) || strings.EqualFold(string(b.Target), targetNone) {
		return false
	}
	return b.Enabled != "" || b.Target != ""
}

// SetBootOrder implements Boot.
func (c *client) SetBootOrder(ctx context.Context, uri string, want Identity, order []string) error {
	return c.change(ctx, uri, change{
		want:            want,
		throughSettings: true,
		refuse: func(doc *systemDoc, s SystemSnapshot) error {
			if !doc.Boot.Value.Order.Present {
				return &UnsupportedError{URI: uri, Wanted: "a boot order", Hint: "it shows no BootOrder"}
			}
			return notOff(s)
		},
		holds: func(current, pending *systemDoc) bool {
			effective := current.Boot.Value.Order
			if pending != nil && pending.Boot.Value.Order.Present {
				effective = pending.Boot.Value.Order
			}
			return slices.Equal(words(effective), order)
		},
		bodies: func(*systemDoc) []map[string]any {
			return bootBodies(map[string]any{"BootOrder": order})
		},
	})
}

func bootBodies(boots ...map[string]any) []map[string]any {
	out := make([]map[string]any, len(boots))
	for i, boot := range boots {
		out[i] = map[string]any{"Boot": boot}
	}
	return out
}

func (c *client) change(ctx context.Context, uri string, ch change) error {
	op, cancel, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	_, err = op.apply(uri, ch)
	return err
}
