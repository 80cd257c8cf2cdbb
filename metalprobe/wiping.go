// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe/erasure"
)

// stopGrace is how long a disk is given to stop after its deadline, or after the wipe was revoked. What is still stuck in the kernel
// then is left behind: it must not hold up the report of the others.
const stopGrace = 20 * time.Second

// wiping is a wipe under way.
type wiping struct {
	*Agent
	disks []Disk
	// sending holds one report at a time, so that none overtakes a newer one.
	sending chan struct{}
	// quarters are percentages of the whole that were passed, and are to be told as a phase.
	quarters chan int32

	// proved is what a former boot of this wipe erased and checked.
	proved []policyv1alpha1.DiskWipe

	mu     sync.Mutex
	report WipeReport
	// waits says what each disk waits for; empty for a disk that does not wait.
	waits []string
	// doubts say why the registry refuses a disk that the policy allows; empty for a disk that it does not refuse.
	doubts []string
	told   int32
	// looked says that hidden storage was looked for before.
	looked bool
}

// one erases a disk once that is permitted. It returns an error only where the whole wipe must stop.
func (w *wiping) one(ctx context.Context, i int) error {
	if permitted, err := w.allowed(ctx, i); !permitted {
		return err
	}
	disk := w.disks[i]
	if former := provedBefore(w.proved, disk.Info()); former != nil {
		if holds, err := w.holds(ctx, i, former); holds || err != nil {
			return err
		}
		if permitted, err := w.allowed(ctx, i); !permitted { // the permission is as old as the reading took
			return err
		}
	}
	outcome, err := w.bounded(ctx, i, disk.Erase)
	if ctx.Err() != nil {
		w.end(i, outcome, cause(ctx, err))
		return context.Cause(ctx)
	}
	if err == nil && !erasure.Reaches(outcome.Term, w.Wipe.MinimumTerm) {
		err = fmt.Errorf("the policy asks for %s, and the erase reached %q; replace the disk, or excuse it in the policy",
			w.Wipe.MinimumTerm, outcome.Term)
	}
	w.end(i, outcome, err)
	return nil
}

// allowed waits for the permission to erase a disk. False without an error means that this disk may not be erased.
func (w *wiping) allowed(ctx context.Context, i int) (bool, error) {
	status, err := w.begin(ctx, i)
	if err != nil || status.RefusedDisk == "" {
		return err == nil, err
	}
	if disk := w.disks[i].Info(); named(w.Wipe.Allowed, disk.WWID, disk.Serial) { // a model names the disks of others, too
		w.Log.Warn("the policy allows a disk that the registry refuses", "server", w.UUID, "disk", disk.Path, "because", status.RefusedDisk)
		w.mu.Lock()
		w.doubts[i] = "the policy allows it, although the registry says: " + status.RefusedDisk
		w.mu.Unlock()
		return true, nil
	}
	w.end(i, EraseOutcome{}, errors.New("not erased: the registry refuses it: "+status.RefusedDisk))
	return false, nil
}

// holds reads a disk again that a former boot proved, and says whether that proof stands and satisfies the policy.
func (w *wiping) holds(ctx context.Context, i int, former *policyv1alpha1.DiskWipe) (bool, error) {
	disk := w.disks[i]
	outcome, err := w.bounded(ctx, i, func(ctx context.Context, _ EraseOrder) (EraseOutcome, error) {
		verification, err := disk.Recheck(ctx)
		return EraseOutcome{Method: former.Method, Steps: former.Steps, Term: former.Term, Verification: verification}, err
	})
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err != nil || !erasure.Reaches(outcome.Term, w.Wipe.MinimumTerm) {
		w.Log.Warn("a disk that a former boot proved is erased anew", "server", w.UUID, "disk", disk.Info().Path, "term", outcome.Term, "error", err)
		return false, nil
	}
	w.end(i, outcome, nil)
	w.change(i, func(d *policyv1alpha1.DiskWipe) {
		d.StartedAt, d.FinishedAt = former.StartedAt, former.FinishedAt
		d.Message = shorten("a former boot of this wipe erased it; it was read again. " + d.Message)
	})
	return true, nil
}

// cause prefers what the disk said to why it was stopped.
func cause(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	return context.Cause(ctx)
}

// provedBefore finds what a former boot of this wipe did with a disk, where its zeros can be read again. What a drive's own erase left
// is not known, so such a disk is erased anew.
func provedBefore(proved []policyv1alpha1.DiskWipe, s policyv1alpha1.BlockDevice) *policyv1alpha1.DiskWipe {
	for i := range proved {
		d := &proved[i]
		same := d.WWID == s.WWID && d.Serial == s.Serial && d.Model == s.Model && d.SizeBytes == s.SizeBytes &&
			(policyv1alpha1.DiskIdentifies(s.WWID) || policyv1alpha1.DiskIdentifies(s.Serial))
		if same && d.State == policyv1alpha1.DiskVerified && d.Verification != nil && d.Verification.Passed &&
			d.Verification.Kind == policyv1alpha1.VerifiedZeros {
			return d
		}
	}
	return nil
}

// begin announces that a disk is to be erased and waits until that is permitted, however long that takes. Announcing
// comes first, so that nobody cuts the power unawares; asking comes last, so that no permission is old.
func (w *wiping) begin(ctx context.Context, i int) (WipeStatus, error) {
	for {
		w.wait(i, policyv1alpha1.DiskErasing, "")
		if err := w.tell(ctx); err != nil {
			return WipeStatus{}, err
		}
		status, err := w.mayErase(ctx, w.disks[i].Info())
		if err != nil || !status.Held {
			return status, err
		}
		for told := ""; status.Held; {
			path := w.disks[i].Info().Path
			reason := fmt.Sprintf("waits before %s: %s", path, status.Reason)
			w.wait(i, policyv1alpha1.DiskPending, reason)
			w.Log.Warn("waits for the permission to erase", "server", w.UUID, "disk", path, "because", status.Reason)
			if reason != told { // the watch says it again
				if err := w.tell(ctx); err != nil {
					return WipeStatus{}, err
				}
			}
			told = reason
			if !Wait(ctx, w.patience(status)) {
				return WipeStatus{}, context.Cause(ctx)
			}
			if status, err = w.mayErase(ctx, w.disks[i].Info()); err != nil {
				return WipeStatus{}, err
			}
		}
	}
}

// mayErase asks the registry whether a disk may be erased now.
func (a *Agent) mayErase(ctx context.Context, s policyv1alpha1.BlockDevice) (WipeStatus, error) {
	identity := DiskIdentity{WWID: s.WWID, Serial: s.Serial, Model: s.Model, SizeBytes: s.SizeBytes}
	status, err := a.Registry.MayErase(ctx, a.UUID, identity)
	return permitted(ctx, status, err)
}

// permitted reads an answer to the question whether to go on. Held without an error means: ask again. So does no answer.
func permitted(ctx context.Context, status WipeStatus, err error) (WipeStatus, error) {
	switch {
	case ctx.Err() != nil && err != nil:
		return WipeStatus{}, fmt.Errorf("asking whether to go on: %w", context.Cause(ctx))
	case IsRefused(err):
		return WipeStatus{}, fmt.Errorf("asking whether to go on: %w", err)
	case err != nil:
		return WipeStatus{Held: true, Reason: err.Error()}, nil //nolint:nilerr // no answer means: ask again
	case !status.Current && !status.Held:
		return WipeStatus{}, fmt.Errorf("%w: %s", ErrNotCurrent, status.Reason)
	}
	return status, nil
}

// order is what a disk is told, and whom it tells.
func (w *wiping) order(i int) EraseOrder {
	return EraseOrder{
		AcceptDriveErase: w.Wipe.AcceptDriveErase, Floor: w.Floor,
		Progress: func(percent int32) { w.progress(i, percent) },
		Step: func(step policyv1alpha1.EraseStep) {
			w.change(i, func(d *policyv1alpha1.DiskWipe) {
				if d.State == policyv1alpha1.DiskErasing {
					d.Steps = brief(append(slices.Clip(d.Steps), step), len(w.disks)) // a report that is being sent shares the others
				}
			})
		},
		Announce: func(ctx context.Context, message string) error {
			w.Log.Info(message, "server", w.UUID, "disk", w.disks[i].Info().Path)
			w.change(i, func(d *policyv1alpha1.DiskWipe) {
				if d.State == policyv1alpha1.DiskErasing {
					d.Message = shorten(message)
				}
			})
			return w.tell(ctx)
		},
	}
}

// bounded runs what may get stuck in the kernel, each step within its deadline.
func (w *wiping) bounded(ctx context.Context, i int, run func(context.Context, EraseOrder) (EraseOutcome, error)) (EraseOutcome, error) {
	return erasure.Bounded(ctx, w.order(i), stopGrace, run)
}

// watch tells at each turn that the wipe is alive, and asks whether it is current where a disk is being erased; told that it is
// not, it revokes the wipe. What is held back, or not answered, does not stop a disk that is being erased: half an erase helps nobody.
func (w *wiping) watch(ctx context.Context, revoke context.CancelCauseFunc) {
	turn := time.NewTimer(w.pace() / 2) // between the questions of disks that wait
	defer turn.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case percent := <-w.quarters:
			w.tellPhase(ctx, percent)
			continue
		case <-turn.C:
			turn.Reset(w.pace())
		}
		if w.erasing() {
			status, err := w.Registry.WipeStatus(ctx, w.UUID)
			_, err = permitted(ctx, status, err)
			if ctx.Err() != nil {
				return // every disk has ended, and this question with it: that says nothing of the wipe
			}
			if err != nil {
				revoke(err)
				return
			}
		}
		// A report that is lost is repeated at the next turn, or overtaken by the outcome of a disk.
		if err := w.send(ctx); err != nil && ctx.Err() == nil {
			w.Log.Warn("progress not reported", "server", w.UUID, "error", err)
		}
	}
}

// tell reports, again and again until the registry answered: yes, or a refusal.
func (w *wiping) tell(ctx context.Context) error {
	for {
		err := w.send(ctx)
		if err == nil {
			return nil
		}
		if err = fmt.Errorf("reporting the wipe: %w", err); IsRefused(err) {
			return err
		}
		w.Log.Warn("will try again", "server", w.UUID, "in", w.pace(), "error", err)
		if !Wait(ctx, w.pace()) {
			return err
		}
	}
}

// send reports once how things stand.
func (w *wiping) send(ctx context.Context) error {
	select {
	case w.sending <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-w.sending }()
	return w.Registry.ReportWipe(ctx, w.UUID, w.snapshot())
}
