// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/metalaw/metalaw/redfish"
)

// Result is how a step ended.
type Result string

const (
	// Passed means that the BMC did what the step asks for.
	Passed Result = "passed"
	// Failed means that it did not.
	Failed Result = "failed"
	// Skipped means that the step was not tried.
	Skipped Result = "skipped"
)

// Step is one thing that was tried.
type Step struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	// Detail says what was seen; it names no machine.
	Detail string `json:"detail,omitempty"`
	// Seconds is how long the step took.
	Seconds int64 `json:"seconds"`
}

// Report is what one BMC can do; it names the model and no machine.
type Report struct {
	Manufacturer string    `json:"manufacturer,omitempty"`
	Model        string    `json:"model,omitempty"`
	BMCModel     string    `json:"bmcModel,omitempty"`
	BMCFirmware  string    `json:"bmcFirmware,omitempty"`
	BIOSVersion  string    `json:"biosVersion,omitempty"`
	At           time.Time `json:"at"`
	Version      string    `json:"metalawVersion,omitempty"`
	Steps        []Step    `json:"steps"`
}

// passed reports that no step failed.
func (r *Report) passed() bool {
	for _, s := range r.Steps {
		if s.Result == Failed {
			return false
		}
	}
	return true
}

// limits bound the waiting of an exercise.
type limits struct {
	// Power is how long a power change may take, POST how long until the firmware has used an override, and Restart how long the
	// BMC may be away.
	Power, POST, Restart time.Duration
	// Poll is the time between two reads.
	Poll time.Duration
}

// exercise tries what metalaw asks of a BMC, on one system.
type exercise struct {
	bmc redfish.BMC
	// open makes another client of the BMC, with a session of its own.
	open func() redfish.BMC
	at   redfish.SystemAt
	know redfish.ManagerIdentity
	limits
	report *Report
	now    func() time.Time
	// allowed is asked right before each write; an error ends the exercise.
	allowed func(ctx context.Context) error
	said    func(Step)
	// ended is why nothing more may be tried; nil while more may.
	ended error
}

// step tries one thing and notes how it went. A step after the end, and one that follows a failure it builds on, is skipped.
func (e *exercise) step(ctx context.Context, name string, try func(ctx context.Context) (detail string, err error)) bool {
	s := Step{Name: name}
	began := e.now()
	switch {
	case e.ended != nil:
		s.Result, s.Detail = Skipped, e.ended.Error()
	default:
		detail, err := try(ctx)
		s.Result, s.Detail = Passed, detail
		if err != nil {
			s.Result, s.Detail = Failed, err.Error()
		}
		if _, offered := errors.AsType[*redfish.UnsupportedError](err); offered {
			s.Result = Skipped
		}
	}
	s.Seconds = int64(e.now().Sub(began) / time.Second)
	e.report.Steps = append(e.report.Steps, s)
	e.said(s)
	return s.Result == Passed
}

// run makes every step. It leaves the system off.
func (e *exercise) run(ctx context.Context) {
	if e.step(ctx, "power on once from Pxe", e.powerOn) {
		e.step(ctx, "override used, or kept until cleared", e.overrideUsed)
		e.step(ctx, "override cleared", e.clear)
	}
	// The system goes off whatever came before, also where ctx has ended.
	e.step(context.WithoutCancel(ctx), "force off", e.powerOff)
	e.step(ctx, "BMC restart", e.restart)
	e.step(ctx, "ten sessions, one after the other", e.sessions)
}

func (e *exercise) powerOn(ctx context.Context) (string, error) {
	if err := e.allowed(ctx); err != nil {
		e.ended = err
		return "", err
	}
	if err := e.bmc.PowerOnOnce(ctx, e.at.URI, e.at.Identity, "Pxe"); err != nil {
		return "", err
	}
	_, err := e.until(ctx, e.Power, "On", func(s redfish.SystemSnapshot) bool { return s.Power == redfish.PowerOn })
	return "", err
}

func (e *exercise) overrideUsed(ctx context.Context) (string, error) {
	began := e.now()
	s, err := e.until(ctx, e.POST, "without a boot override, or past its POST", func(s redfish.SystemSnapshot) bool {
		return s.Boot.Enabled != "Once" || s.BootProgress.StartedOS()
	})
	if err != nil {
		return "", err
	}
	if s.Boot.Enabled == "Once" {
		return "the override still shows after the firmware has handed over", nil
	}
	return fmt.Sprintf("gone after %s", e.now().Sub(began).Round(time.Second)), nil
}

func (e *exercise) clear(ctx context.Context) (string, error) {
	if err := e.bmc.ClearBoot(ctx, e.at.URI, e.at.Identity); err != nil {
		return "", err
	}
	s, err := e.bmc.System(ctx, e.at.URI)
	if err == nil && s.Boot.Enabled != "Disabled" && s.Boot.Enabled != "" {
		err = fmt.Errorf("the BMC still shows the override %s %s", s.Boot.Enabled, s.Boot.Target)
	}
	return "", err
}

func (e *exercise) powerOff(ctx context.Context) (string, error) {
	if err := e.bmc.Reset(ctx, e.at.URI, e.at.Identity, redfish.ActionForceOff); err != nil {
		return "", err
	}
	_, err := e.until(ctx, e.Power, "Off", func(s redfish.SystemSnapshot) bool { return s.Power == redfish.PowerOff })
	return "", err
}

func (e *exercise) restart(ctx context.Context) (string, error) {
	if err := e.allowed(ctx); err != nil {
		e.ended = err
		return "", err
	}
	err := e.bmc.ResetManager(ctx, e.know, true)
	how := "GracefulRestart"
	if _, refused := errors.AsType[*redfish.UnsupportedError](err); refused {
		how = "ForceRestart"
		err = e.bmc.ResetManager(ctx, e.know, false)
	}
	if err != nil {
		return "", err
	}
	began := e.now()
	away := false
	for {
		s, err := e.bmc.System(ctx, e.at.URI)
		switch elapsed := e.now().Sub(began); {
		case err == nil && (away || elapsed >= e.Power):
			if s.Identity.UUID != e.at.Identity.UUID {
				return "", errors.New("another machine answers after the restart")
			}
			if !away {
				return how + "; it was not seen to be away", nil
			}
			return fmt.Sprintf("%s; it answered again after %s", how, elapsed.Round(time.Second)), nil
		case err != nil && elapsed >= e.Restart:
			return "", fmt.Errorf("it does not answer %s after its restart: %w", elapsed.Round(time.Second), err)
		default:
			away = away || err != nil
		}
		if err := wait(ctx, e.Poll); err != nil {
			return "", err
		}
	}
}

// sessions opens and gives back a session ten times: a BMC that keeps them runs out of them.
func (e *exercise) sessions(ctx context.Context) (string, error) {
	for i := range 10 {
		b := e.open()
		_, err := b.System(ctx, e.at.URI)
		if err := errors.Join(err, b.Close(ctx)); err != nil {
			return "", fmt.Errorf("session %d: %w", i+1, err)
		}
	}
	return "", nil
}

// until reads the system until it is as wanted.
func (e *exercise) until(
	ctx context.Context, limit time.Duration, wanted string, is func(redfish.SystemSnapshot) bool,
) (redfish.SystemSnapshot, error) {
	for began := e.now(); ; {
		s, err := e.bmc.System(ctx, e.at.URI)
		if err == nil && is(s) {
			return s, nil
		}
		if e.now().Sub(began) >= limit {
			return s, errors.Join(fmt.Errorf("it is not %s after %s: power %s, override %s %s", wanted, limit, s.Power, s.Boot.Enabled, s.Boot.Target), err)
		}
		if err := wait(ctx, e.Poll); err != nil {
			return s, err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
