// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"cmp"
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
	refused  map[string]string
	proved   []policyv1alpha1.DiskWipe
	last     WipeReport
	greeted  bool
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
	if !f.greeted { // the question for what is proved comes first, once
		defer f.mu.Unlock()
		f.greeted = true
		return WipeStatus{Current: true, Proved: f.proved}, nil
	}
	f.mu.Unlock()
	return f.ask()
}

func (f *fakeRegistry) ask() (WipeStatus, error) {
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

func (f *fakeRegistry) MayErase(_ context.Context, _ string, disk DiskIdentity) (WipeStatus, error) {
	status, err := f.ask()
	status.RefusedDisk = f.refused[disk.Serial]
	return status, err
}

func (f *fakeRegistry) ReportWipe(_ context.Context, _ string, report WipeReport) error {
	f.mu.Lock()
	f.last = report
	f.mu.Unlock()
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
	refused  bool
	lane     string
	// stuck makes the erase ignore that it is told to stop.
	stuck time.Duration
	// announces makes the erase set a password.
	announces bool
	recheck   error
	term      policyv1alpha1.SanitizationTerm
	size      int64
}

func (d *fakeDisk) Info() policyv1alpha1.BlockDevice {
	return policyv1alpha1.BlockDevice{Path: "/dev/" + d.name, Name: d.name, Serial: d.name, Model: "m", SizeBytes: d.size}
}

func (d *fakeDisk) Verdict() Verdict {
	if d.refused {
		return Verdict{Standing: DiskRefused, Transport: "iscsi", Reason: "it is remote"}
	}
	return Verdict{Standing: DiskOurs}
}

func (d *fakeDisk) Lane() string { return d.lane }

// Erase is done in four parts, each a quarter of what it takes.
func (d *fakeDisk) Erase(ctx context.Context, order EraseOrder) (EraseOutcome, error) {
	d.registry.note("erase %s", d.name)
	order.Expect("zero", 2*time.Hour)
	if d.stuck > 0 {
		<-time.After(d.stuck)
		order.Progress(50)
		d.registry.note("unstuck %s", d.name)
		return EraseOutcome{}, ctx.Err()
	}
	if d.announces {
		if err := order.Announce(ctx, "the drive gets a password"); err != nil {
			return EraseOutcome{}, err
		}
		d.registry.note("password %s", d.name)
	}
	for part := range int32(4) {
		if d.takes > 0 && !Wait(ctx, d.takes/4) {
			d.registry.note("stopped %s", d.name)
			return EraseOutcome{}, context.Cause(ctx)
		}
		order.Progress(25 * (part + 1))
	}
	return EraseOutcome{Method: "zero", Term: cmp.Or(d.term, policyv1alpha1.TermClear)}, d.erase
}

func (d *fakeDisk) Recheck(context.Context) (*policyv1alpha1.EraseVerification, error) {
	d.registry.note("recheck %s", d.name)
	return &policyv1alpha1.EraseVerification{Kind: policyv1alpha1.VerifiedZeros, Passed: d.recheck == nil}, d.recheck
}

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
		Parallel: 1,
		Log:      slog.New(slog.DiscardHandler),
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
			disks: []*fakeDisk{{name: "a", erase: errors.New("data found")}},
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
			want: []string{"register", "Running Erasing", "ask", "Running Pending", "Running Pending", "ask", "Running Pending", "ask",
				"Running Erasing", "ask", "erase a", "Verified Verified"},
		},
		"waits before the next disk for as long as it is held back": {
			registry: &fakeRegistry{status: held(2, 4)},
			disks:    []*fakeDisk{{name: "a"}, {name: "b"}},
			want: []string{"register", "Running Erasing,Pending", "ask", "erase a", "Running Verified,Erasing", "ask",
				"Running Verified,Pending", "Running Verified,Pending", "ask", "Running Verified,Pending", "ask", "Running Verified,Erasing", "ask", "erase b",
				"Verified Verified,Verified"},
		},
		"waits again where it is held back again before it began": {
			registry: &fakeRegistry{status: held(1, 2, 3, 4)},
			disks:    []*fakeDisk{{name: "a"}},
			want: []string{"register", "Running Erasing", "ask", "Running Pending", "Running Pending", "ask", "Running Erasing", "ask",
				"Running Pending", "Running Pending", "ask", "Running Erasing", "ask", "erase a", "Verified Verified"},
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
			want:  []string{"register", "Running Erasing", "ask", "Running Pending", "Running Pending", "ask", "Running Pending", "ask"},
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
		after, interval, asks time.Duration
	}{
		"asks at the time that the registry names":  {after: 10 * time.Second, interval: time.Hour, asks: 10 * time.Second},
		"asks never later than the longest silence": {after: 24 * time.Hour, interval: time.Hour, asks: MaxWipeInterval},
		"asks at its own pace where none is named":  {interval: 20 * time.Second, asks: 20 * time.Second},
		"and then never later than that, either":    {interval: time.Hour, asks: MaxWipeInterval},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 7*24*time.Hour)
				defer cancel()
				var told, asked []time.Time
				registry := &fakeRegistry{
					status: func(int) (WipeStatus, error) {
						asked = append(asked, time.Now())
						return WipeStatus{Held: true, RetryAfter: c.after}, nil
					},
					report: func() error { told = append(told, time.Now()); return nil },
				}
				agent := agentOf(registry, PurposeWipe, &fakeDisk{name: "a"})
				agent.Interval = c.interval
				if err := agent.Run(ctx); err != nil {
					t.Error(err)
				}
				for i := 1; i < len(told); i++ {
					if pause := told[i].Sub(told[i-1]); pause > MaxWipeInterval {
						t.Fatalf("report %d came after %s", i, pause)
					}
				}
				for i := 1; i < len(asked); i++ {
					if pause := asked[i].Sub(asked[i-1]); pause != c.asks {
						t.Fatalf("question %d came after %s, want %s", i, pause, c.asks)
					}
				}
				if last := ctx.Err(); last == nil || len(told) < 100 || len(asked) < 100 || slices.Contains(registry.log, "erase a") {
					t.Errorf("%d reports, %d questions, %v", len(told), len(asked), registry.log[:4])
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
