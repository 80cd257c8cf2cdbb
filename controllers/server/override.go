// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"time"

	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/controllers/server/seen"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/redfish"
)

// clearOverride takes away an override that outlived the boot it was for. Its failure holds nothing back.
func (v bootShell) clearOverride(ctx context.Context) loop.Progress {
	if !v.facts.BMC.OverrideSet {
		return loop.Holds()
	}
	id := jobID(v.server, "clear-override")
	in := boots.OverrideInput{Set: true, Reported: v.facts.Probe.Entry == v.facts.Lifecycle.Entry, Since: v.bootedSince(), Boot: v.boot,
		FirstWord: v.firstWord(), Job: v.job(id), Now: v.now}
	in.Started, in.Testing = v.bootShown()
	out := boots.Override(in)
	v.wakeIn(out.Again)
	if out.Tell {
		settingShell(v).refused("BootOverrideStays", "the boot override could not be cleared: ", in.Job)
	}
	if !out.Clear {
		return loop.Holds()
	}
	v.Cache.Repeat(v.server.Name, id)
	if p, ok := v.permitted(ctx, fleet.Setting); !ok {
		return p
	}
	settingShell(v).ask(id, func(ctx context.Context, bmc redfish.BMC, uri string, want redfish.Identity) error {
		return bmc.ClearBoot(ctx, uri, want)
	})
	return loop.Holds()
}

// bootedSince is when the machine was last switched on, restarted, or came into its entry.
func (v bootShell) bootedSince() time.Time {
	l := v.server.Status.Lifecycle
	since := v.remembered().seen.RecordedAt(seen.Entry, entryText(l.Entry), l.EnteredAt, l.EnteredCounted, v.instant())
	if isOn(l.Request) {
		since = later(since, v.requested().RecordedAt)
	}
	if op := v.server.Status.Operation; operations.EndedReset(op) {
		since = later(since, v.remembered().seen.NotAhead(seen.Operation, op.ID, op.FinishedAt.Time, v.instant()))
	}
	return since
}

// bootSettings is how the policy has this machine booted.
func (v bootShell) bootSettings() bundle.BootOf {
	return v.settings().Boot.For(v.server.Status.Manufacturer, v.server.Status.Model)
}

// firstWord is how long after its power-on a machine may take to use its override, where nothing proves that it did.
func (v bootShell) firstWord() time.Duration {
	if v.BootGrace > 0 {
		return v.BootGrace
	}
	return v.bootSettings().FirstWord
}

// bootShown says whether the BMC shows this boot to have used its override, or to be in the self test before that.
func (v bootShell) bootShown() (started, testing bool) {
	if !v.shows(redfish.PowerOn) {
		return false, false
	}
	return v.watchBoot()
}

// watchBoot follows the last boot that was asked for.
func (v bootShell) watchBoot() (started, testing bool) {
	r := v.remembered()
	r.boot, started, testing = r.boot.Look(v.bootID(), v.reading.Value.BootProgress)
	return started, testing
}

// bootID names the last boot that was asked for.
func (v bootShell) bootID() string {
	id := entryText(v.server.Status.Lifecycle.Entry)
	if request := v.server.Status.Lifecycle.Request; isOn(request) {
		id = power.RequestID(request)
	}
	if op := v.server.Status.Operation; operations.EndedReset(op) {
		id += "/" + op.ID
	}
	return id
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
