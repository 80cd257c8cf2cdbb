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
	targetCD         = string(schemas.CdBootSource)
)

// PowerOnOnce implements Boot. The action goes with any ETag, because setting the override may have changed the system's.
func (c *client) PowerOnOnce(ctx context.Context, uri string, want Identity, target string, mode ...BootMode) error {
	op, cancel, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if target == TargetBootOrder {
		return op.powerOnByOrder(uri, want)
	}
	wanted := BootUEFI
	if len(mode) > 0 && mode[0] != "" {
		wanted = mode[0]
	}
	c.learn(func(m *memory) { delete(m.uncleared, uri) })
	set, err := op.apply(uri, c.bootOnce(uri, want, &target, wanted))
	if MayHaveHappened(err) {
		return &NotAskedError{What: "the power-on", Err: fmt.Errorf("boot override: %w", err)}
	}
	if err != nil {
		return err
	}
	if err := op.overrideShown(uri, want, target, wanted, set); err != nil {
		return err
	}
	return op.reset(uri, want, set.doc, ActionOn, "")
}

// showRepeats is how often an override is looked for once more that does not show at once.
const showRepeats = 4

// overrideShown reads an override back that was just written, where it was written: a BMC may accept what it then ignores,
// and the machine would boot from its disk. Some show it only after seconds, so that one look is not enough.
func (o *operation) overrideShown(uri string, want Identity, target string, mode BootMode, set applied) error {
	if !set.wrote {
		return nil // it was read right before
	}
	for repeats := 0; ; repeats++ {
		missing, err := o.lookForOverride(uri, want, target, mode, set)
		if err != nil {
			return err
		}
		if missing == nil {
			return nil
		}
		if repeats >= showRepeats || !o.pause(o.c.options.ShowPause<<repeats) {
			return missing
		}
	}
}

// lookForOverride reads once. Where a settings resource took the override, the system may show it as well, or instead.
func (o *operation) lookForOverride(uri string, want Identity, target string, mode BootMode, set applied) (*OverrideError, error) {
	pending := &systemDoc{}
	if set.settings != "" {
		if _, err := o.get(set.settings, pending); err != nil {
			pending = &systemDoc{}
		}
	}
	now, snapshot, err := o.checked(uri, want)
	if err != nil {
		return nil, &NotAskedError{What: "the power-on", Err: fmt.Errorf("the boot override could not be read back: %w", err)}
	}
	if err := notOff(snapshot); err != nil {
		return nil, err
	}
	missing := overrideMissing(now.Boot.Value, pending.Boot.Value, target, mode)
	if missing != nil {
		missing.Address, missing.URI, missing.Later = o.c.base.Host, uri, set.later
	}
	return missing, nil
}

// overrideMissing says what the system and its settings resource show instead of an override; nil where they show it. The
// settings resource may show the mode for both.
func overrideMissing(current, pending bootDoc, target string, mode BootMode) *OverrideError {
	if pending.shows(target) && pending.inMode(mode) {
		return nil
	}
	pendsInMode := strings.EqualFold(string(pending.Mode), string(mode))
	if current.shows(target) && (current.inMode(mode) || pendsInMode) {
		return nil
	}
	read := current
	if pending.shows(target) {
		read = pending
	}
	return &OverrideError{Asked: target, AskedMode: mode, Enabled: string(read.Enabled), Target: string(read.Target), Mode: BootMode(read.Mode)}
}

// notOff is the error for a system that does not read Off; nil for one that does.
func notOff(s SystemSnapshot) error {
	if s.Power == PowerOff {
		return nil
	}
	return fmt.Errorf("redfish: %s reads %s: %w", s.URI, s.Power, ErrNotOff)
}

// bootOnce sets an override for target, which becomes the BMC's own word for it once the system was read.
func (c *client) bootOnce(uri string, want Identity, target *string, mode BootMode) change {
	asked := *target
	return change{
		want:            want,
		throughSettings: true,
		refuse: func(_, pending *systemDoc, s SystemSnapshot) error {
			if err := notOff(s); err != nil {
				return err
			}
			if s.Boot.Missing {
				return &UnsupportedError{URI: uri, Wanted: "booting from " + asked, Hint: "it shows no boot override"}
			}
			allowed := s.Boot.Allowed
			if taking := overrideOf(pending); taking != nil && len(allowed) == 0 {
				allowed = words(taking.Boot.Value.Allowed)
			}
			if *target = bootWord(asked, mode, allowed, s.Identity); len(allowed) > 0 && !slices.Contains(allowed, *target) {
				return &UnsupportedError{URI: uri, Wanted: "booting from " + asked, Offered: allowed}
			}
			return nil
		},
		// A settings resource may go on showing an override that was used up, so with one the override is always set.
		holds: func(current, pending *systemDoc) bool {
			boot := current.Boot.Value
			return overrideOf(pending) == nil && strings.EqualFold(string(boot.Enabled), overrideOnce) &&
				overrideMissing(boot, bootOf(pending), *target, mode) == nil
		},
		attempts: func(current, pending *systemDoc) []attempt {
			return bootAttempts(pending, c.overrideVariants(current, pending, *target, mode)...)
		},
	}
}

// SetBootOrder implements Boot.
func (c *client) SetBootOrder(ctx context.Context, uri string, want Identity, order []string) error {
	return c.change(ctx, uri, change{
		want:            want,
		throughSettings: true,
		refuse: func(doc, _ *systemDoc, s SystemSnapshot) error {
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
		attempts: func(_, pending *systemDoc) []attempt {
			return bootAttempts(pending, bootVariant{properties: map[string]any{propertyOrder: order}})
		},
	})
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
