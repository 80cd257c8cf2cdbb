// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/metalaw/metalaw/redfish/emulator"
)

var errNothing = errors.New("there is nothing to do")

const (
	pathReset  = "/redfish/v1/Systems/*/Actions/ComputerSystem.Reset"
	pathSystem = "/redfish/v1/Systems/*"
	everyPath  = "/redfish/v1/**"
)

// troubles are what a BMC may suffer from until it is healed. Those that lie about power come first.
var troubles = []emulator.Fault{
	{Name: "PowerReadsOn", Method: "GET", Path: pathSystem, Action: emulator.Action{Set: map[string]any{"PowerState": "On"}}},
	{Name: "PowerReadsOff", Method: "GET", Path: pathSystem, Action: emulator.Action{Set: map[string]any{"PowerState": "Off"}}},
	{Name: "StalePower", Method: "GET", Path: "/redfish/v1/Systems**", Action: emulator.Action{StalePower: staleness}},
	{Name: "Slow", Path: everyPath, Action: emulator.Action{Delay: 300 * time.Millisecond}},
	{Name: "HalfUnavailable", Path: everyPath, Probability: 0.5, Action: emulator.Action{Status: http.StatusServiceUnavailable}},
	{Name: "Unavailable", Path: everyPath, Count: 6, Action: emulator.Action{Status: http.StatusServiceUnavailable}},
	{Name: "ResetsRefused", Method: "POST", Path: pathReset, Count: 2, Action: emulator.Action{Status: http.StatusConflict}},
	{Name: "ResetsIgnored", Method: "POST", Path: pathReset, Count: 2, Action: emulator.Action{Ignore: true}},
	{Name: "ResetsBreakButHappen", Method: "POST", Path: pathReset, Count: 2, Action: emulator.Action{Execute: true, Reset: true}},
	{Name: "ChangesIgnored", Method: "PATCH", Path: "/redfish/v1/Systems/**", Count: 2, Action: emulator.Action{Ignore: true}},
	{Name: "NoSystems", Method: "GET", Path: "/redfish/v1/Systems", Action: emulator.Action{
		Set: map[string]any{"Members": []any{}, "Members@odata.count": 0}}},
	{Name: "SystemMissing", Method: "GET", Path: pathSystem, Action: emulator.Action{Status: http.StatusNotFound}},
	{Name: "LoginsRefused", Method: "POST", Path: "/redfish/v1/SessionService/Sessions", Action: emulator.Action{
		Status: http.StatusServiceUnavailable}},
	{Name: "NoUUID", Method: "GET", Path: pathSystem, Action: emulator.Action{Remove: []string{"UUID"}}},
}

// staleness is how old a power state is that a BMC lies about.
const staleness = 8 * time.Second

// lies says whether a trouble hides the true power.
func lies(f emulator.Fault) bool {
	return strings.HasPrefix(f.Name, "PowerReads") || f.Name == "StalePower"
}

// machineActions is what hands, hardware and firmware do.
func machineActions() map[string]action {
	hand := func(weight int, text string, do func(*run, *emulator.Machine, step) error) action {
		return action{weight: weight, words: onMachine(text), do: func(_ context.Context, r *run, s step) error {
			return do(r, r.machines[s.machine], s)
		}}
	}
	simple := func(weight int, text string, do func(*emulator.Machine)) action {
		return hand(weight, text, func(_ *run, m *emulator.Machine, _ step) error { do(m); return nil })
	}
	return map[string]action{
		"button on":          simple(4, "switched on by hand", func(m *emulator.Machine) { m.PowerBehindBack(true) }),
		"button off":         simple(4, "switched off by hand", func(m *emulator.Machine) { m.PowerBehindBack(false) }),
		"reboot":             simple(3, "its operating system reboots", (*emulator.Machine).OSReboot),
		"shut down":          simple(2, "its operating system shuts down", (*emulator.Machine).OSPowerOff),
		"bmc restart":        simple(2, "its BMC restarts", (*emulator.Machine).ResetBMC),
		"sessions forgotten": simple(1, "its BMC forgets all sessions", (*emulator.Machine).EndSessions),
		"override lost":      simple(1, "its BMC forgets the boot override", func(m *emulator.Machine) { m.SetOverride("Disabled", "None") }),
		"bmc down": hand(2, "its BMC is unreachable", func(r *run, m *emulator.Machine, s step) error {
			r.suffers(s.machine)
			return m.SetReachability(pick(s, 0, emulator.Refusing, emulator.Refusing, emulator.Silent))
		}),
		"bmc up": hand(8, "its BMC is reachable", func(_ *run, m *emulator.Machine, _ step) error { return m.SetReachability(emulator.Reachable) }),
		"fault": {weight: 7, words: func(s step) string {
			return fmt.Sprintf("machine %s: its BMC suffers from %s", s.machineName(), pick(s, 0, troubles...).Name)
		}, do: func(_ context.Context, r *run, s step) error {
			r.trouble(s.machine, pick(s, 0, troubles...))
			return nil
		}},
		"heal": hand(16, "its BMC is healed", func(r *run, _ *emulator.Machine, s step) error {
			r.heal(s.machine)
			return nil
		}),
		"swap": hand(3, "another machine answers in its place", func(r *run, m *emulator.Machine, s step) error {
			// The disks stay, and boot services go by the UUID that is shown: no machine changes it between power-on and boot.
			if _, booted := m.Running(); !booted && m.Power() != emulator.PowerOff {
				return errNothing
			}
			r.swap(s.machine, true)
			return nil
		}),
		"swap back": {weight: 8, words: onMachine("it answers itself"), do: func(ctx context.Context, r *run, s step) error {
			return r.restore(ctx, s.machine)
		}},
		"hang": hand(2, "what it boots next hangs", func(r *run, m *emulator.Machine, _ step) error {
			r.world.guests.mute(m.Name())
			return nil
		}),
		"unhang": hand(6, "what hangs goes on", func(r *run, m *emulator.Machine, _ step) error {
			r.world.guests.unmute(m.Name())
			return nil
		}),
		"disk bad":  simple(2, "its disk cannot be erased", func(m *emulator.Machine) { m.Drives()[0].FailErase("it is worn out") }),
		"disk good": simple(3, "its disk can be erased", func(m *emulator.Machine) { m.Drives()[0].FailErase("") }),
	}
}

// fateActions is what happens to the manager, and time going by.
func fateActions() map[string]action {
	return map[string]action{
		"kill": {weight: 2, words: fixed("the manager is killed"), do: func(_ context.Context, r *run, _ step) error {
			if !r.world.operator.Kill() {
				return errNothing
			}
			return nil
		}},
		"ambush": {weight: 4, words: func(s step) string {
			return fmt.Sprintf("the manager will be killed %s its next write to a BMC", pick(s, 0, "before", "after"))
		}, do: func(_ context.Context, r *run, s step) error {
			r.world.ambush.Store(ambushes[pick(s, 0, "before", "after")])
			return nil
		}},
		"restart": {weight: 1, words: fixed("the manager is restarted in order"), do: func(_ context.Context, r *run, _ step) error {
			if !r.world.operator.Restart(20 * time.Second) {
				return errNothing
			}
			return nil
		}},
		"wait": {weight: 8, words: func(s step) string { return "wait " + waits(s).String() }, do: func(ctx context.Context, r *run, s step) error {
			return r.pause(ctx, waits(s))
		}},
		"clear": {weight: 1, words: fixed("everything is mended and free again, or 8s"), do: func(ctx context.Context, r *run, _ step) error {
			return r.clear(ctx)
		}},
		"settle": {weight: 14, words: onMachine("wait until it rests, or 6s"), do: func(ctx context.Context, r *run, s step) error {
			return r.settle(ctx, s.machine, 6*time.Second)
		}},
		"await claim": {weight: 24, words: onClaim("wait until it runs, or 8s"), do: func(ctx context.Context, r *run, s step) error {
			return r.awaitClaim(ctx, s.claim, 8*time.Second)
		}},
	}
}

func waits(s step) time.Duration { return time.Duration(200+100*(s.choice%20)) * time.Millisecond }
