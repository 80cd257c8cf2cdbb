// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// fakeRegistry writes down what it is told and answers as scripted.
type fakeRegistry struct {
	mu       sync.Mutex
	log      []string
	register func() error
	status   func(call int) (WipeStatus, error)
	report   func() error
	asked    int
}

func (f *fakeRegistry) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, fmt.Sprintf(format, args...))
}

func (f *fakeRegistry) Register(context.Context, string, Data) error {
	f.note("register")
	if f.register != nil {
		return f.register()
	}
	return nil
}

func (f *fakeRegistry) WipeStatus(context.Context, string) (WipeStatus, error) {
	f.mu.Lock()
	f.asked++
	call := f.asked
	f.mu.Unlock()
	f.note("ask")
	if f.status != nil {
		return f.status(call)
	}
	return WipeStatus{Current: true}, nil
}

func (f *fakeRegistry) ReportWipe(_ context.Context, _ string, report WipeReport) error {
	states := make([]string, 0, len(report.Disks))
	for _, disk := range report.Disks {
		states = append(states, string(disk.State))
	}
	f.note("%s %s", report.State, strings.Join(states, ","))
	if f.report != nil {
		return f.report()
	}
	return nil
}

// fakeDisk takes its time to erase.
type fakeDisk struct {
	registry *fakeRegistry
	name     string
	takes    time.Duration
	erase    error
	verify   error
	refused  bool
}

func (d *fakeDisk) Info() policyv1alpha1.BlockDevice {
	return policyv1alpha1.BlockDevice{Path: "/dev/" + d.name, Name: d.name}
}

func (d *fakeDisk) Verdict() Verdict {
	if d.refused {
		return Verdict{Standing: DiskRefused, Transport: "iscsi", Reason: "it is remote"}
	}
	return Verdict{Standing: DiskOurs}
}

func (d *fakeDisk) Erase(ctx context.Context) (string, error) {
	d.registry.note("erase %s", d.name)
	if d.takes > 0 && !Wait(ctx, d.takes) {
		d.registry.note("stopped %s", d.name)
		return "", ctx.Err()
	}
	return "zero", d.erase
}

func (d *fakeDisk) Verify(context.Context) error { return d.verify }

func agentOf(registry *fakeRegistry, purpose Purpose, disks ...*fakeDisk) *Agent {
	return &Agent{
		Registry: registry,
		UUID:     uuid,
		Purpose:  purpose,
		Collect:  func(context.Context) (Data, error) { return Data{}, errors.New("no DMI") },
		Disks: func(context.Context) ([]Disk, []policyv1alpha1.SkippedDisk, error) {
			var list []Disk
			for _, disk := range disks {
				disk.registry = registry
				list = append(list, disk)
			}
			return list, nil, nil
		},
		Log: slog.New(slog.DiscardHandler),
	}
}

func TestAgentReportsAtOnceAndThenAtEachInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 65*time.Second)
		defer cancel()
		registry := &fakeRegistry{register: func() error { return &RefusedError{Status: 401} }}
		if err := agentOf(registry, PurposeProbe).Run(ctx); err != nil {
			t.Error(err)
		}
		if want := []string{"register", "register", "register"}; !slices.Equal(registry.log, want) {
			t.Errorf("got %q, want %q", registry.log, want)
		}
	})
}

func TestAnAgentRepeatsAReportOfTheSameHardwareOnlyWhenItIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Minute+time.Second)
		defer cancel()
		registry := &fakeRegistry{}
		agent := agentOf(registry, PurposeProbe)
		agent.Refresh = 10 * time.Minute
		began := time.Now()
		var reported []time.Duration
		registry.register = func() error { reported = append(reported, time.Since(began)); return nil }
		agent.Collect = func(context.Context) (Data, error) {
			var data Data
			data.Timestamp.Time = time.Now()
			data.NetworkInterfaces = []policyv1alpha1.ProbeNetworkInterface{{Name: "eth0", IPAddresses: []string{time.Now().String()}}}
			if time.Since(began) >= 12*time.Minute {
				data.Storage = []policyv1alpha1.BlockDevice{{Name: "sda"}}
			}
			return data, nil
		}
		var phases []string
		agent.OnPhase = func(_ context.Context, phase, _ string, _ int32) { phases = append(phases, phase) }
		if err := agent.Run(ctx); err != nil {
			t.Error(err)
		}
		if want := []time.Duration{0, 10 * time.Minute, 12 * time.Minute, 22 * time.Minute}; !slices.Equal(reported, want) {
			t.Errorf("reported after %v, want %v", reported, want)
		}
		if want := []string{"collect", "report"}; !slices.Equal(phases, want) {
			t.Errorf("phases %q, want %q", phases, want)
		}
	})
}

func TestAnAgentStopsOnceItsReportWasAcceptedAndNoMoreAreWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []error{&RefusedError{Status: 503}, errors.New("no route"), nil, errors.New("no route"), nil, &RefusedError{Status: 401}}
		var registry fakeRegistry
		calls := 0
		registry.register = func() error {
			calls++
			return answers[calls-1]
		}
		if err := agentOf(&registry, PurposeProbe).Run(t.Context()); err != nil || calls != len(answers) {
			t.Errorf("%v after %d calls", err, calls)
		}
	})
}

func TestWipe(t *testing.T) {
	revoked := func(from int) func(int) (WipeStatus, error) {
		return func(call int) (WipeStatus, error) { return WipeStatus{Current: call < from, Reason: "claimed"}, nil }
	}
	// held is held back from one question on, and no more from the next on, and so on.
	held := func(changes ...int) func(int) (WipeStatus, error) {
		return func(call int) (WipeStatus, error) {
			now := false
			for _, from := range changes {
				now = now != (call >= from)
			}
			return WipeStatus{Current: !now, Held: now, Reason: "frozen"}, nil
		}
	}
	refusal := func() error { return &RefusedError{Status: 409, Message: "the entry is over"} }
	for name, c := range map[string]struct {
		registry *fakeRegistry
		disks    []*fakeDisk
		want     []string
		fails    string
	}{
		"asks before each disk, then says that all are verified": {
			disks: []*fakeDisk{{name: "a"}, {name: "b"}},
			want: []string{"register", "Running Erasing,Pending", "ask", "erase a", "Running Verified,Erasing", "ask", "erase b",
				"Verified Verified,Verified"},
		},
		"without disks it says that it saw none, and leaves the judgement to the registry": {want: []string{"register", "Verified "}},
		"a disk that fails does not keep the next from being erased": {
			disks: []*fakeDisk{{name: "a", erase: errors.New("I/O error")}, {name: "b"}},
			want: []string{"register", "Running Erasing,Pending", "ask", "erase a", "Running Failed,Erasing", "ask", "erase b",
				"Failed Failed,Verified"},
		},
		"a refused disk fails the wipe untouched and unasked, and the next is erased": {
			disks: []*fakeDisk{{name: "a", refused: true}, {name: "b"}},
			want:  []string{"register", "Running Failed,Erasing", "ask", "erase b", "Failed Failed,Verified"},
		},
		"a machine whose only disk is refused fails at once": {
			disks: []*fakeDisk{{name: "a", refused: true}},
			want:  []string{"register", "Failed Failed"},
		},
		"a disk that keeps its data fails": {
			disks: []*fakeDisk{{name: "a", verify: errors.New("data found")}},
			want:  []string{"register", "Running Erasing", "ask", "erase a", "Failed Failed"},
		},
		"stops before the second disk when no longer current": {
			registry: &fakeRegistry{status: revoked(2)},
			disks:    []*fakeDisk{{name: "a"}, {name: "b"}},
			want:     []string{"register", "Running Erasing,Pending", "ask", "erase a", "Running Verified,Erasing", "ask"},
			fails:    "no longer current: claimed",
		},
		"stops in the middle of a disk when no longer current": {
			registry: &fakeRegistry{status: revoked(3)},
			disks:    []*fakeDisk{{name: "a", takes: time.Hour}},
			want:     []string{"register", "Running Erasing", "ask", "erase a", "ask", "Running Erasing", "ask", "stopped a"},
			fails:    "no longer current: claimed",
		},
		"erases nothing when its announcement is refused": {
			registry: &fakeRegistry{report: refusal},
			disks:    []*fakeDisk{{name: "a"}},
			want:     []string{"register", "Running Erasing"},
			fails:    "the entry is over",
		},
		"erases nothing when its registration is refused": {
			registry: &fakeRegistry{register: refusal},
			disks:    []*fakeDisk{{name: "a"}},
			want:     []string{"register"},
			fails:    "the entry is over",
		},
		"erases nothing when its credential is refused": {
			registry: &fakeRegistry{status: func(int) (WipeStatus, error) { return WipeStatus{}, &RefusedError{Status: 401, Message: "who?"} }},
			disks:    []*fakeDisk{{name: "a"}},
			want:     []string{"register", "Running Erasing", "ask"},
			fails:    "who?",
		},
		"waits for a registry that is away before it erases": {
			registry: &fakeRegistry{status: func(call int) (WipeStatus, error) {
				if call < 3 {
					return WipeStatus{}, errors.New("connection refused")
				}
				return WipeStatus{Current: true}, nil
			}},
			disks: []*fakeDisk{{name: "a"}},
			want: []string{"register", "Running Erasing", "ask", "Running Pending", "ask", "Running Pending", "ask",
				"Running Erasing", "ask", "erase a", "Verified Verified"},
		},
		"waits before the next disk for as long as it is held back": {
			registry: &fakeRegistry{status: held(2, 4)},
			disks:    []*fakeDisk{{name: "a"}, {name: "b"}},
			want: []string{"register", "Running Erasing,Pending", "ask", "erase a", "Running Verified,Erasing", "ask",
				"Running Verified,Pending", "ask", "Running Verified,Pending", "ask", "Running Verified,Erasing", "ask", "erase b",
				"Verified Verified,Verified"},
		},
		"waits again where it is held back again before it began": {
			registry: &fakeRegistry{status: held(1, 2, 3, 4)},
			disks:    []*fakeDisk{{name: "a"}},
			want: []string{"register", "Running Erasing", "ask", "Running Pending", "ask", "Running Erasing", "ask",
				"Running Pending", "ask", "Running Erasing", "ask", "erase a", "Verified Verified"},
		},
		"goes on with a disk that it erases, and tells that it does, though it is held back": {
			registry: &fakeRegistry{status: held(2, 100)},
			disks:    []*fakeDisk{{name: "a", takes: 100 * time.Second}},
			want: []string{"register", "Running Erasing", "ask", "erase a", "ask", "Running Erasing", "ask", "Running Erasing",
				"ask", "Running Erasing", "Verified Verified"},
		},
		"goes on with a disk that it erases, and tells that it does, though nobody answers": {
			registry: &fakeRegistry{status: func(call int) (WipeStatus, error) {
				if call == 1 {
					return WipeStatus{Current: true}, nil
				}
				return WipeStatus{}, errors.New("status 500")
			}},
			disks: []*fakeDisk{{name: "a", takes: 40 * time.Second}},
			want:  []string{"register", "Running Erasing", "ask", "erase a", "ask", "Running Erasing", "Verified Verified"},
		},
		"gives a disk up for which it waits when no longer current": {
			registry: &fakeRegistry{status: func(call int) (WipeStatus, error) {
				return WipeStatus{Held: call < 3, Reason: "claimed"}, nil
			}},
			disks: []*fakeDisk{{name: "a"}},
			want:  []string{"register", "Running Erasing", "ask", "Running Pending", "ask", "Running Pending", "ask"},
			fails: "no longer current: claimed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				registry := c.registry
				if registry == nil {
					registry = &fakeRegistry{}
				}
				err := agentOf(registry, PurposeWipe, c.disks...).Run(ctx)
				if (err == nil) != (c.fails == "") || (err != nil && !strings.Contains(err.Error(), c.fails)) {
					t.Errorf("got %v, want %q", err, c.fails)
				}
				// After the wipe the agent goes on reporting until it is switched off.
				log := slices.Clone(registry.log)
				for len(log) > 1 && log[len(log)-1] == "register" {
					log = log[:len(log)-1]
				}
				if !slices.Equal(log, c.want) {
					t.Errorf("got  %q\nwant %q", log, c.want)
				}
			})
		})
	}
}

// The registry's answers say how long to wait; whatever they say, others must not take the wipe for silent.
func TestAWipeThatIsHeldBackStaysAudible(t *testing.T) {
	for name, c := range map[string]struct {
		after, interval, want time.Duration
	}{
		"at the time that the registry names":    {after: 10 * time.Second, interval: time.Hour, want: 10 * time.Second},
		"never later than the longest silence":   {after: 24 * time.Hour, interval: time.Hour, want: MaxWipeInterval},
		"at its own pace where none is named":    {interval: 20 * time.Second, want: 20 * time.Second},
		"and then never later than that, either": {interval: time.Hour, want: MaxWipeInterval},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 7*24*time.Hour)
				defer cancel()
				var told []time.Time
				registry := &fakeRegistry{
					status: func(int) (WipeStatus, error) { return WipeStatus{Held: true, RetryAfter: c.after}, nil },
					report: func() error { told = append(told, time.Now()); return nil },
				}
				agent := agentOf(registry, PurposeWipe, &fakeDisk{name: "a"})
				agent.Interval = c.interval
				if err := agent.Run(ctx); err != nil {
					t.Error(err)
				}
				for i := 2; i < len(told); i++ {
					if pause := told[i].Sub(told[i-1]); pause != c.want {
						t.Fatalf("report %d came after %s, want %s", i, pause, c.want)
					}
				}
				if last := ctx.Err(); last == nil || len(told) < 100 || slices.Contains(registry.log, "erase a") {
					t.Errorf("%d reports, %v", len(told), registry.log[:4])
				}
			})
		})
	}
}

func TestWipeEndsWithThePower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 65*time.Second)
		defer cancel()
		registry := &fakeRegistry{}
		if err := agentOf(registry, PurposeWipe, &fakeDisk{name: "a", takes: time.Hour}).Run(ctx); err != nil {
			t.Error(err)
		}
		if last := registry.log[len(registry.log)-1]; last != "stopped a" {
			t.Errorf("the last thing was %q, want the erase to stop", last)
		}
	})
}

func TestAWipeSpeaksOftenHoweverSeldomTheAgentReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 65*time.Second)
		defer cancel()
		registry := &fakeRegistry{}
		agent := agentOf(registry, PurposeWipe, &fakeDisk{name: "a", takes: time.Hour})
		agent.Interval = time.Hour
		if err := agent.Run(ctx); err != nil {
			t.Error(err)
		}
		want := []string{"register", "Running Erasing", "ask", "erase a", "ask", "Running Erasing", "ask", "Running Erasing", "stopped a"}
		if !slices.Equal(registry.log, want) {
			t.Errorf("got  %q\nwant %q", registry.log, want)
		}
	})
}
