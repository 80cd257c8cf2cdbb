// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// DefaultInterval is how often a server looks at its hardware and, unless Agent.Refresh says otherwise, reports.
const DefaultInterval = 30 * time.Second

// DefaultRefresh is how often the agent of a real machine reports hardware that did not change.
const DefaultRefresh = 10 * time.Minute

// The phases of an agent, as PhaseReport.Phase names them.
const (
	// NetworkPhase is over when the agent has its configuration.
	NetworkPhase = "network"
	// CollectPhase is while the agent reads the hardware.
	CollectPhase = "collect"
	// ReportPhase is while the agent sends what it read.
	ReportPhase = "report"
	// WipePhase is while the agent erases disks.
	WipePhase = "wipe"
)

// MaxWipeInterval is the longest time between two signs of life of an agent that erases, whatever Agent.Interval is:
// power may be cut of a machine whose wipe is silent.
const MaxWipeInterval = 30 * time.Second

// Registry is what the agent asks of the registry; *Client is one.
type Registry interface {
	Register(ctx context.Context, uuid string, data Data) error
	WipeStatus(ctx context.Context, uuid string) (WipeStatus, error)
	// MayErase asks the same of one disk.
	MayErase(ctx context.Context, uuid string, disk DiskIdentity) (WipeStatus, error)
	ReportWipe(ctx context.Context, uuid string, report WipeReport) error
}

// Collector reads the hardware. It returns what could be read together with what went wrong.
type Collector func(ctx context.Context) (Data, error)

// Agent describes the server that it runs on, and erases its disks when it was booted for that.
type Agent struct {
	Registry Registry
	// UUID is the system UUID of this server.
	UUID    string
	Purpose Purpose
	Collect Collector
	// Disks lists what is to be erased, and what is left alone because it is no fixed disk; only asked where Purpose is PurposeWipe.
	Disks func(ctx context.Context) ([]Disk, []policyv1alpha1.SkippedDisk, error)
	// Hidden lists storage that no disk shows; false says that it is not known. Nil knows nothing.
	Hidden func(ctx context.Context) ([]policyv1alpha1.HiddenStorage, bool)
	// Wipe is what the policy says of a wipe; nil says nothing.
	Wipe *WipePolicy
	// Parallel is how many disks are erased at the same time; zero means DefaultParallel.
	Parallel int
	// Floor is the shortest time that a step of an erase is given; zero means erasure.DefaultFloor.
	Floor time.Duration
	// Interval is the time between two looks at the hardware; zero means DefaultInterval.
	Interval time.Duration
	// Refresh is how long a report that was accepted stands for hardware that did not change; zero reports at each interval.
	Refresh time.Duration
	// OnPhase is told what the agent does, and how much of a wipe is done. It must not block. Nil is told nothing.
	OnPhase func(ctx context.Context, phase, detail string, percent int32)
	// Log receives one line for each decision; nil means slog.Default.
	Log *slog.Logger
}

// Run reports at once, and then at each interval at which there is something to report, until ctx ends, which is no error.
// For PurposeWipe it erases in between, once. It returns an error only where going on is of no use: the wipe was refused or is no
// longer current. An agent
// whose report was accepted once and is refused later has served, and returns without an error: a server that is left running
// after its inspection is not booted anew, and its token counts no more.
func (a *Agent) Run(ctx context.Context) error {
	if a.Log == nil {
		a.Log = slog.Default()
	}
	if a.Interval <= 0 {
		a.Interval = DefaultInterval
	}
	if a.Wipe == nil {
		a.Wipe = &WipePolicy{}
	}
	ticker := time.NewTicker(a.Interval)
	defer ticker.Stop()
	wiped := a.Purpose != PurposeWipe
	var sent said
	accepted := false
	for {
		err := a.register(ctx, &sent)
		accepted = accepted || err == nil
		if err == nil && !wiped {
			wiped = true
			err = a.wipe(ctx)
		}
		if ctx.Err() != nil {
			return nil
		}
		if over, err := a.over(err, accepted); over {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// over says whether the agent has nothing more to do after a round that ended so, and with what error it ends.
func (a *Agent) over(err error, accepted bool) (bool, error) {
	switch {
	case err == nil:
	case a.Purpose == PurposeWipe && (IsRefused(err) || errors.Is(err, ErrNotCurrent)):
		a.Log.Error("stopped", "server", a.UUID, "purpose", a.Purpose, "error", err)
		return true, err
	case accepted && a.Purpose != PurposeWipe && IsRefused(err):
		a.Log.Info("stopped: the report was accepted, and no more are wanted", "server", a.UUID, "answer", err)
		return true, nil
	default:
		a.Log.Warn("will try again", "server", a.UUID, "in", a.Interval, "error", err)
	}
	return false, nil
}

// said is the last report that the registry accepted.
type said struct {
	digest string
	at     time.Time
}

// phase tells what the agent does.
func (a *Agent) phase(ctx context.Context, phase, detail string, percent int32) {
	if a.OnPhase != nil {
		a.OnPhase(ctx, phase, detail, percent)
	}
}

// register reads the hardware and reports it, unless the last accepted report says the same and is not old.
func (a *Agent) register(ctx context.Context, sent *said) error {
	first := sent.at.IsZero()
	if first {
		a.phase(ctx, CollectPhase, "", 0)
	}
	data, err := a.Collect(ctx)
	if err != nil {
		a.Log.Warn("part of the hardware could not be read", "server", a.UUID, "error", err)
	}
	data.Trim()
	digest := data.Digest()
	if !first && digest == sent.digest && time.Since(sent.at) < a.Refresh {
		return nil
	}
	if first {
		a.phase(ctx, ReportPhase, "", 0)
	}
	if err := a.Registry.Register(ctx, a.UUID, data); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	*sent = said{digest: digest, at: time.Now()}
	a.Log.Info("reported", "server", a.UUID, "disks", len(data.Storage), "interfaces", len(data.NetworkInterfaces))
	return nil
}
