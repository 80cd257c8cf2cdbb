// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// wipeOf runs the agent for a day, and returns what the registry heard last.
func wipeOf(t *testing.T, registry *fakeRegistry, change func(*Agent), disks ...*fakeDisk) (WipeReport, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := time.Now()
	var took time.Duration
	registry.report = func() error {
		if registry.last.State != policyv1alpha1.WipeRunning {
			took = time.Since(begun)
			cancel()
		}
		return nil
	}
	agent := agentOf(registry, PurposeWipe, disks...)
	agent.Parallel = 0
	if change != nil {
		change(agent)
	}
	if err := agent.Run(ctx); err != nil {
		t.Error(err)
	}
	synctest.Wait()
	return registry.last, took
}

func states(report WipeReport) string {
	var words []string
	for _, d := range report.Disks {
		words = append(words, d.Name+" "+string(d.State))
	}
	return strings.Join(words, ", ")
}

func TestDisksAreErasedInParallel(t *testing.T) {
	disks := func(n int, lane string) []*fakeDisk {
		var list []*fakeDisk
		for i := range n {
			list = append(list, &fakeDisk{name: fmt.Sprintf("%s%d", lane, i), lane: lane, takes: time.Hour, size: 1000})
		}
		return list
	}
	for name, c := range map[string]struct {
		disks []*fakeDisk
		takes time.Duration
	}{
		"sixteen at a time":               {disks(16, ""), time.Hour},
		"the seventeenth after the first": {disks(17, ""), 2 * time.Hour},
		"one at a time of one adapter":    {disks(3, "adapter"), 3 * time.Hour},
		"two adapters side by side":       {slices.Concat(disks(3, "adapter"), disks(2, "other"), disks(4, "")), 3 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				report, took := wipeOf(t, &fakeRegistry{}, nil, c.disks...)
				if report.State != policyv1alpha1.WipeVerified || len(report.Disks) != len(c.disks) || took != c.takes {
					t.Errorf("%s after %s, want %s: %s", report.State, took, c.takes, states(report))
				}
			})
		})
	}
}

func TestADiskThatHangsInTheKernelHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report, took := wipeOf(t, &fakeRegistry{}, nil,
			&fakeDisk{name: "a", stuck: 48 * time.Hour}, &fakeDisk{name: "b", takes: 10 * time.Minute}, &fakeDisk{name: "c", takes: 5 * time.Hour})
		if got, want := states(report), "a Failed, b Verified, c Failed"; report.State != policyv1alpha1.WipeFailed || got != want {
			t.Errorf("%s: %s, want %s", report.State, got, want)
		}
		if took != 2*time.Hour+stopGrace {
			t.Errorf("reported after %s", took)
		}
		if got := report.Disks[0].Message; got != "DeadlineExceeded: zero did not end within 2h0m0s; it hangs in the kernel, replace the disk" {
			t.Errorf("a disk that hangs: %s", got)
		}
		if got := report.Disks[2].Message; got != "DeadlineExceeded: zero did not end within 2h0m0s" {
			t.Errorf("a disk that is slow: %s", got)
		}
		if got := report.Disks[1]; got.FinishedAt.Sub(got.StartedAt.Time) != 10*time.Minute {
			t.Errorf("the times of b: %s to %s", got.StartedAt, got.FinishedAt)
		}
		<-time.After(48 * time.Hour) // the kernel lets go, and nothing changes
	})
}

func TestARevokedWipeDoesNotWaitForADiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := &fakeRegistry{status: func(call int) (WipeStatus, error) { return WipeStatus{Current: call < 2, Reason: "claimed"}, nil }}
		begun := time.Now()
		err := agentOf(registry, PurposeWipe, &fakeDisk{name: "a", stuck: 48 * time.Hour}).Run(t.Context())
		if !errors.Is(err, ErrNotCurrent) || time.Since(begun) > MaxWipeInterval+stopGrace {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
		<-time.After(48 * time.Hour)
	})
}

// lateRegistry answers whether to go on only once nobody waits for the answer any more.
type lateRegistry struct{ *fakeRegistry }

func (l lateRegistry) WipeStatus(ctx context.Context, uuid string) (WipeStatus, error) {
	if status, err := l.fakeRegistry.WipeStatus(ctx, uuid); len(l.log) < 3 {
		return status, err
	}
	<-ctx.Done()
	return WipeStatus{}, ctx.Err()
}

func TestAQuestionThatIsOpenWhenTheLastDiskEndsRevokesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := &fakeRegistry{}
		agent := agentOf(registry, PurposeWipe, &fakeDisk{registry: registry, name: "a", takes: MaxWipeInterval})
		agent.Registry = lateRegistry{registry}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if err := agent.Run(ctx); err != nil {
			t.Error(err)
		}
		if registry.last.State != policyv1alpha1.WipeVerified {
			t.Errorf("the last report is %s: %s", registry.last.State, states(registry.last))
		}
	})
}

func TestWhatTheRegistryAndThePolicySayOfADisk(t *testing.T) {
	proved := func(change func(*policyv1alpha1.DiskWipe)) []policyv1alpha1.DiskWipe {
		d := policyv1alpha1.DiskWipe{Serial: "a", Model: "m", SizeBytes: 1000, State: policyv1alpha1.DiskVerified, Method: "nvme-format+zero", Term: policyv1alpha1.TermClear,
			Verification: &policyv1alpha1.EraseVerification{Kind: policyv1alpha1.VerifiedZeros, Passed: true}}
		if change != nil {
			change(&d)
		}
		return []policyv1alpha1.DiskWipe{d}
	}
	for name, c := range map[string]struct {
		registry *fakeRegistry
		policy   WipePolicy
		disk     fakeDisk
		state    policyv1alpha1.WipeState
		want     string // the disk's state and message, or why it was skipped
		did      string // what was done to disk a
	}{
		"a disk that is another machine's as well": {registry: &fakeRegistry{refused: map[string]string{"a": "Server b has it too"}},
			state: "Failed", want: "Failed not erased: the registry refuses it: Server b has it too"},
		"a disk that is, and that the policy allows by its serial number": {registry: &fakeRegistry{refused: map[string]string{"a": "Server b has it too"}},
			policy: WipePolicy{Allowed: []string{"a"}}, state: "Verified", did: "erase a",
			want: "Verified the policy allows it, although the registry says: Server b has it too"},
		"a disk that is, of a model that the policy allows": {registry: &fakeRegistry{refused: map[string]string{"a": "Server b has it too"}},
			policy: WipePolicy{Allowed: []string{"m"}}, state: "Failed", want: "Failed not erased: the registry refuses it: Server b has it too"},
		"a disk that the policy excuses by its serial number": {policy: WipePolicy{Excused: []string{"a"}}, state: "Verified",
			want: "the policy excuses serial number a"},
		"a refused disk that the policy excuses": {policy: WipePolicy{Excused: []string{"x", "a"}}, disk: fakeDisk{refused: true}, state: "Verified",
			want: "the policy excuses serial number a: it is remote"},
		"a refused disk that it does not": {policy: WipePolicy{Excused: []string{""}}, disk: fakeDisk{refused: true}, state: "Failed",
			want: "Failed not erased: it is remote"},
		"a disk that a former boot proved": {registry: &fakeRegistry{proved: proved(nil)}, state: "Verified", did: "recheck a",
			want: "Verified a former boot of this wipe erased it; it was read again. "},
		"a disk that holds data since": {registry: &fakeRegistry{proved: proved(nil)}, disk: fakeDisk{recheck: errors.New("data was found")},
			state: "Verified", did: "recheck a, Running Erasing, ask, erase a", want: "Verified "},
		"a disk of another size": {registry: &fakeRegistry{proved: proved(func(d *policyv1alpha1.DiskWipe) { d.SizeBytes = 7 })},
			state: "Verified", did: "erase a", want: "Verified "},
		"a disk that its drive erased, whose samples are not known": {
			registry: &fakeRegistry{proved: proved(func(d *policyv1alpha1.DiskWipe) { d.Verification.Kind = policyv1alpha1.VerifiedSamplesGone })},
			state:    "Verified", did: "erase a", want: "Verified "},
		"a proof of less than the policy asks for": {registry: &fakeRegistry{proved: proved(nil)}, policy: WipePolicy{MinimumTerm: policyv1alpha1.TermPurge},
			disk: fakeDisk{term: policyv1alpha1.TermPurge}, state: "Verified", did: "recheck a, Running Erasing, ask, erase a", want: "Verified "},
		"an erase that reaches less than the policy asks for": {policy: WipePolicy{MinimumTerm: policyv1alpha1.TermPurge},
			state: "Failed", did: "erase a", want: `Failed the policy asks for Purge, and the erase reached "Clear"; replace the disk, or excuse it in the policy`},
		"a drive that gets a password, which is reported first": {disk: fakeDisk{announces: true}, state: "Verified",
			did: "erase a, Running Erasing, password a", want: "Verified "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.disk.name, c.disk.size = "a", 1000
				registry := cmp.Or(c.registry, &fakeRegistry{})
				report, _ := wipeOf(t, registry, func(a *Agent) { a.Wipe = &c.policy }, &c.disk)
				var got string
				for _, d := range report.Disks {
					got = string(d.State) + " " + d.Message
				}
				for _, d := range report.Skipped {
					if got = d.Reason; !d.Excused {
						t.Error("the report does not say that the policy excuses the disk")
					}
				}
				if report.State != c.state || got != c.want {
					t.Errorf("%s: %q, want %s: %q", report.State, got, c.state, c.want)
				}
				at := slices.IndexFunc(registry.log, func(line string) bool { return strings.HasSuffix(line, "e a") || strings.HasSuffix(line, "k a") })
				var did []string
				if at >= 0 {
					did = registry.log[at : len(registry.log)-1]
				}
				if got := strings.Join(did, ", "); got != c.did {
					t.Errorf("did %q, want %q", got, c.did)
				}
			})
		})
	}
}

func TestProgressIsToldByBytesAtEachQuarter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		var percents []int32
		registry := &fakeRegistry{}
		begun := time.Now()
		report, _ := wipeOf(t, registry, func(a *Agent) {
			a.OnPhase = func(_ context.Context, phase, detail string, percent int32) {
				told = append(told, fmt.Sprintf("%s %d%% after %s (%s)", phase, percent, time.Since(begun), detail))
				if len(registry.last.Disks) > 0 {
					percents = append(percents, registry.last.Disks[0].Percent)
				}
			}
		}, &fakeDisk{name: "large", size: 900_000, takes: 4 * time.Hour / 2}, &fakeDisk{name: "small", size: 100_000, takes: time.Hour / 2})
		want := []string{
			"collect 0% after 0s ()", "report 0% after 0s ()", "wipe 0% after 0s (2 disks)", "wipe 25% after 30m0s (2 disks)", "wipe 50% after 1h0m0s (2 disks)", "wipe 75% after 1h30m0s (2 disks)",
		}
		if !slices.Equal(told, want) {
			t.Errorf("told %q\nwant %q", told, want)
		}
		if report.Disks[0].Percent != 0 || !slices.Contains(percents, 25) {
			t.Errorf("percentages %v, at the end %d", percents, report.Disks[0].Percent)
		}
	})
}

func TestTheQuestionForADiskNamesIt(t *testing.T) {
	transport := &answers{statuses: []int{200}, body: `{"current":true,"refusedDisk":"shared","proved":[{"path":"/dev/sda","serial":"S 1"}]}`}
	disk := DiskIdentity{WWID: "naa.5&6", Serial: "S 1", SizeBytes: 42}
	status, err := clientOf(transport).MayErase(t.Context(), uuid, disk)
	if err != nil || !status.Current || status.RefusedDisk != "shared" || len(status.Proved) != 1 {
		t.Errorf("got %+v, %v", status, err)
	}
	if got, want := transport.requests[0].URL.RequestURI(), "/wipe/"+uuid+"?serial=S+1&size=42&wwid=naa.5%266"; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	for name, c := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"no longer":          {409, `{"reason":"claimed"}`, "false false claimed"},
		"held back":          {503, `{"held":true,"reason":"frozen"}`, "false true frozen"},
		"a 200 that is idle": {200, `{}`, "false false "},
	} {
		t.Run(name, func(t *testing.T) {
			status, err := clientOf(&answers{statuses: []int{c.status}, body: c.body, header: http.Header{}}).MayErase(t.Context(), uuid, disk)
			if got := fmt.Sprint(status.Current, status.Held, " ", status.Reason); err != nil || got != c.want {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestAReportOfAnEraseIsBounded(t *testing.T) {
	const valid = 12
	good := policyv1alpha1.DiskWipe{Path: "/dev/sda", State: policyv1alpha1.DiskVerified, Percent: 100, MediaType: policyv1alpha1.MediaSSD,
		Term: policyv1alpha1.TermPurge, Steps: []policyv1alpha1.EraseStep{{Method: "zero", Result: policyv1alpha1.EraseSucceeded}},
		Verification: &policyv1alpha1.EraseVerification{Kind: policyv1alpha1.VerifiedZeros, ReadBytes: valid, Passed: true}}
	for name, c := range map[string]struct {
		change func(*policyv1alpha1.DiskWipe)
		want   string
	}{
		"a good one":         {func(*policyv1alpha1.DiskWipe) {}, ""},
		"too many steps":     {func(d *policyv1alpha1.DiskWipe) { d.Steps = make([]policyv1alpha1.EraseStep, 17) }, "17 entries"},
		"a step of no name":  {func(d *policyv1alpha1.DiskWipe) { d.Steps[0].Method = "" }, "method: empty"},
		"a long answer":      {func(d *policyv1alpha1.DiskWipe) { d.Steps[0].Answer = strings.Repeat("x", 513) }, "513 bytes"},
		"an odd result":      {func(d *policyv1alpha1.DiskWipe) { d.Steps[0].Result = "Maybe" }, "none of Succeeded"},
		"a term of people":   {func(d *policyv1alpha1.DiskWipe) { d.Term = policyv1alpha1.TermDestroy }, "none that an erase reaches"},
		"more than all":      {func(d *policyv1alpha1.DiskWipe) { d.Percent = 101 }, "no percentage"},
		"an odd medium":      {func(d *policyv1alpha1.DiskWipe) { d.MediaType = "Tape" }, "not known"},
		"less than no bytes": {func(d *policyv1alpha1.DiskWipe) { d.Verification.ReadBytes = -1 }, "negative"},
		"an odd check":       {func(d *policyv1alpha1.DiskWipe) { d.Verification.Kind = "Hope" }, "none of Zeros"},
	} {
		t.Run(name, func(t *testing.T) {
			disk := *good.DeepCopy()
			c.change(&disk)
			report := WipeReport{SystemUUID: uuid, State: policyv1alpha1.WipeVerified, Disks: []policyv1alpha1.DiskWipe{disk}}
			err := report.Validate()
			if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestAReportOfManyDisksIsNoLongerThanTheRegistryTakes(t *testing.T) {
	steps := make([]policyv1alpha1.EraseStep, 20)
	for i := range steps {
		steps[i] = policyv1alpha1.EraseStep{Method: "nvme-sanitize-block", Result: policyv1alpha1.EraseFailed, Answer: strings.Repeat("x", 512)}
	}
	report := WipeReport{SystemUUID: uuid, State: policyv1alpha1.WipeFailed}
	for range MaxDisks {
		report.Disks = append(report.Disks, policyv1alpha1.DiskWipe{Path: "/dev/sda", State: policyv1alpha1.DiskFailed, Steps: brief(steps, MaxDisks)})
	}
	text, err := json.Marshal(report)
	if err != nil || len(text) > MaxBody {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if err := report.Validate(); err != nil {
		t.Error(err)
	}
	if got := brief(steps, 1); len(got) != maxSteps || len(got[0].Answer) != 512 {
		t.Errorf("one disk: %d steps of %d bytes", len(got), len(got[0].Answer))
	}
}
