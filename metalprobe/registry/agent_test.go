// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
)

var errDown = errors.New("down")

// direct lets the agent's client reach the registry without a network, so that hours of waiting take no time.
type direct struct{ registry http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	served := r.Clone(r.Context())
	served.RemoteAddr = "10.0.0.1:1"
	if served.Body == nil {
		served.Body = http.NoBody
	}
	recorder := httptest.NewRecorder()
	d.registry.ServeHTTP(recorder, served)
	return recorder.Result(), nil
}

// slowDisk takes its time, and says what happens to it.
type slowDisk struct {
	name  string
	takes time.Duration
	note  func(string)
}

func (d slowDisk) Info() policyv1alpha1.BlockDevice {
	return policyv1alpha1.BlockDevice{Path: "/dev/" + d.name, Name: d.name, Serial: d.name, SizeBytes: 1}
}

func (slowDisk) Verdict() metalprobe.Verdict {
	return metalprobe.Verdict{Standing: metalprobe.DiskOurs}
}

func (slowDisk) Lane() string { return "" }

func (d slowDisk) Erase(ctx context.Context, order metalprobe.EraseOrder) (metalprobe.EraseOutcome, error) {
	order.Expect("zero", 24*time.Hour)
	d.note("begin " + d.name)
	select {
	case <-ctx.Done():
		d.note("stop " + d.name)
		return metalprobe.EraseOutcome{}, ctx.Err()
	case <-time.After(d.takes):
	}
	d.note("end " + d.name)
	return metalprobe.EraseOutcome{Method: "zero"}, nil
}

func (d slowDisk) Recheck(context.Context) (*policyv1alpha1.EraseVerification, error) {
	d.note("recheck " + d.name)
	return &policyv1alpha1.EraseVerification{Kind: policyv1alpha1.VerifiedZeros, Passed: true}, nil
}

// wiping is a machine with disks "a" and "b", on which the agent runs, and its registry. It runs in a synctest bubble.
type wiping struct {
	*fleet
	// blind says that no FleetControl can be read.
	blind atomic.Bool
	// more are objects beside the machine's, policy what the agent is told.
	more   []client.Object
	policy *metalprobe.WipePolicy
	mu     sync.Mutex
	notes  []string
	ended  chan error
}

func (w *wiping) note(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, text)
}

func (w *wiping) happened() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.notes, ", ")
}

// wipe is a machine on which the agent runs.
func wipe(t *testing.T, change func(*metalv1alpha1.Server, *Options), takes time.Duration, names ...string) *wiping {
	t.Helper()
	w := &wiping{}
	w.begin(t, change, takes, names...)
	return w
}

// begin starts the agent, with as many of the disks as are named.
func (w *wiping) begin(t *testing.T, change func(*metalv1alpha1.Server, *Options), takes time.Duration, names ...string) {
	t.Helper()
	w.ended = make(chan error, 1)
	w.fleet = newFleet(t, func(s *metalv1alpha1.Server, o *Options) {
		asWipe(s, o)
		o.Now = time.Now
		if change != nil {
			change(s, o)
		}
	}, w.more...)
	w.registry.options.Live = interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if _, is := o.(*policyv1alpha1.FleetControl); is && w.blind.Load() {
				return errDown
			}
			return c.Get(ctx, key, o, options...)
		},
	})
	data := metalprobe.Data{CPU: []metalprobe.CPU{{}}}
	var disks []metalprobe.Disk
	for _, name := range names {
		disk := slowDisk{name: name, takes: takes, note: w.note}
		disks, data.Storage = append(disks, disk), append(data.Storage, disk.Info())
	}
	agent := &metalprobe.Agent{
		Registry: &metalprobe.Client{BaseURL: "http://registry", Token: "mine", HTTP: &http.Client{Transport: direct{w.registry}}},
		UUID:     uuid, Purpose: metalprobe.PurposeWipe, Log: slog.New(slog.DiscardHandler), Parallel: 1, Wipe: w.policy,
		Collect: func(context.Context) (metalprobe.Data, error) { return data, nil },
		Disks: func(context.Context) ([]metalprobe.Disk, []policyv1alpha1.SkippedDisk, error) {
			return slices.Clone(disks), nil, nil
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { w.ended <- agent.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		synctest.Wait()
	})
}

// after lets time pass, and looks all the while that the wipe is not silent.
func (w *wiping) after(d time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		<-time.After(min(20*time.Second, time.Until(end)))
		synctest.Wait()
		wipe := w.outcome()
		if wipe.State == policyv1alpha1.WipeRunning && time.Since(wipe.UpdatedAt.Time) >= policyv1alpha1.WipeSilence/2 {
			w.t.Fatalf("the last sign of life is %s old", time.Since(wipe.UpdatedAt.Time))
		}
	}
}

func (w *wiping) outcome() policyv1alpha1.WipeReport {
	w.t.Helper()
	stored := w.inventory(uuid)
	if stored == nil || stored.Wipe == nil {
		return policyv1alpha1.WipeReport{}
	}
	return *stored.Wipe
}

func (w *wiping) expect(happened string, state policyv1alpha1.WipeState, message string) {
	w.t.Helper()
	wipe := w.outcome()
	if got := w.happened(); got != happened || wipe.State != state || !strings.Contains(wipe.Message, message) {
		w.t.Fatalf("%q, and the wipe is %s: %q", got, wipe.State, wipe.Message)
	}
}

func TestAnAgentWaitsOutAFreezeHoweverLongItLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wipe(t, nil, 5*time.Minute, "a", "b")
		w.after(time.Minute)
		w.expect("begin a", "Running", "")
		freeze := frozen(policyv1alpha1.FreezeDestructive)
		if err := w.client.Create(t.Context(), freeze); err != nil {
			t.Fatal(err)
		}
		w.after(5 * time.Minute)
		w.expect("begin a, end a", "Running", `waits before /dev/b: freeze "recall" (Destructive) by jane: bad batch`)
		w.after(3 * time.Hour)
		w.expect("begin a, end a", "Running", "waits before /dev/b")
		if err := w.client.Delete(t.Context(), freeze); err != nil {
			t.Fatal(err)
		}
		w.after(time.Minute)
		w.expect("begin a, end a, begin b", "Running", "")
		w.after(10 * time.Minute)
		w.expect("begin a, end a, begin b, end b", "Verified", "")
	})
}

func TestAnAgentBeginsNoDiskWhileTheFleetIsFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wipe(t, func(_ *metalv1alpha1.Server, o *Options) { o.ObserveOnly = true }, time.Minute, "a")
		w.after(time.Hour)
		w.expect("", "Running", "waits before /dev/a: the manager runs to observe only")
	})
}

func TestAnAgentWaitsWhileNobodyCanTellWhetherTheFleetIsFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wiping{}
		w.blind.Store(true)
		w.begin(t, nil, 5*time.Minute, "a", "b")
		w.after(time.Hour)
		w.expect("", "Running", "waits before /dev/a")
		w.blind.Store(false)
		w.after(time.Minute)
		w.expect("begin a", "Running", "")
		w.blind.Store(true)
		w.after(time.Hour)
		w.expect("begin a, end a", "Running", "waits before /dev/b")
	})
}

func TestAnAgentThatWaitsStopsForGoodWhenTheWipeIsNoLongerInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wipe(t, func(_ *metalv1alpha1.Server, o *Options) { o.ObserveOnly = true }, time.Minute, "a")
		w.after(time.Hour)
		var server metalv1alpha1.Server
		if err := w.client.Get(t.Context(), client.ObjectKey{Name: "srv"}, &server); err != nil {
			t.Fatal(err)
		}
		delete(server.Annotations, metalv1alpha1.ReleasedClaimAnnotation)
		if err := w.client.Update(t.Context(), &server); err != nil {
			t.Fatal(err)
		}
		if err := <-w.ended; !strings.Contains(err.Error(), "no release record") {
			t.Error(err)
		}
		if got := w.happened(); got != "" {
			t.Error(got)
		}
	})
}

func TestAnAgentWithoutDisksDoesNotCallAMachineClean(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*metalv1alpha1.Server, *Options)
		state  policyv1alpha1.WipeState
		says   string
	}{
		"by itself":                      {nil, "Failed", "no disk was seen"},
		"unless it is said to have none": {diskless, "Verified", "this boot sees no disk"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := wipe(t, c.change, time.Minute)
				w.after(time.Minute)
				w.expect("", c.state, c.says)
			})
		})
	}
}

func TestARetryErasesOnlyWhatIsNotProved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		change, stored := retried()
		stored.Wipe.Disks = []policyv1alpha1.DiskWipe{
			{Path: "/dev/a", Serial: "a", SizeBytes: 1, State: policyv1alpha1.DiskVerified, Method: "nvme-format+zero", Term: policyv1alpha1.TermClear,
				Verification: &policyv1alpha1.EraseVerification{Kind: policyv1alpha1.VerifiedZeros, Passed: true}},
			{Path: "/dev/b", Serial: "b", SizeBytes: 1, State: policyv1alpha1.DiskFailed},
		}
		w := &wiping{more: []client.Object{stored}}
		w.begin(t, change, time.Minute, "a", "b")
		w.after(5 * time.Minute)
		w.expect("recheck a, begin b, end b", "Verified", "")
		if got := w.outcome().Disks[0]; got.Method != "nvme-format+zero" || got.Term != policyv1alpha1.TermClear {
			t.Errorf("disk a: %+v", got)
		}
	})
}

func TestADiskOfAnotherMachineFailsTheWipeUntouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: otherUUID}, Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: otherUUID},
			Custody: &policyv1alpha1.Custody{Disks: []policyv1alpha1.CustodyDisk{{Serial: "a", SizeBytes: 1}}}}
		w := &wiping{more: []client.Object{other}}
		w.begin(t, nil, time.Minute, "a", "b")
		w.after(5 * time.Minute)
		w.expect("begin b, end b", "Failed", "1 of 2 disks may still hold data: /dev/a (serial a): not erased: the registry refuses it: Server other has this disk")
	})
}

func TestADiskThatThePolicyExcusesNeedNotBeErased(t *testing.T) {
	for name, c := range map[string]struct {
		excused  []string
		happened string
		state    policyv1alpha1.WipeState
	}{
		"one of two":  {[]string{"a"}, "begin b, end b", "Verified"},
		"both":        {[]string{"a", "b"}, "", "Verified"},
		"not another": {[]string{"c"}, "begin a, end a, begin b, end b", "Verified"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stored := emptyInventory()
				stored.Custody = &policyv1alpha1.Custody{Disks: []policyv1alpha1.CustodyDisk{{Serial: "a"}, {Serial: "b"}}}
				w := &wiping{more: []client.Object{stored}, policy: &metalprobe.WipePolicy{Excused: c.excused}}
				w.begin(t, nil, time.Minute, "a", "b")
				w.after(5 * time.Minute)
				w.expect(c.happened, c.state, "")
			})
		})
	}
}
