// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// snapshot shares nothing that changes while it is sent.
func (w *wiping) snapshot() WipeReport {
	w.mu.Lock()
	defer w.mu.Unlock()
	report := w.report
	report.Disks = slices.Clone(report.Disks)
	for _, reason := range w.waits {
		if reason != "" {
			report.Message = shorten(reason)
			break
		}
	}
	return report
}

// look adds the storage that no disk shows to the report. It is known only where it was at each look, before the erase
// and after it.
func (w *wiping) look(ctx context.Context) {
	if w.Hidden == nil {
		return
	}
	found, known := w.Hidden(ctx)
	for _, s := range found {
		w.Log.Warn("storage that no disk shows", "server", w.UUID, "address", s.Address, "pci", s.PCIID, "name",
			s.Name, "because", s.Reason)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.HiddenKnown = known && (w.report.HiddenKnown || !w.looked)
	w.report.Hidden, w.looked = joinHidden(slices.Clone(w.report.Hidden), found), true
}

func (w *wiping) change(i int, change func(d *policyv1alpha1.DiskWipe)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.report.Disks[i])
}

func (w *wiping) wait(i int, state policyv1alpha1.DiskWipeState, reason string) {
	w.change(i, func(d *policyv1alpha1.DiskWipe) {
		d.State, w.waits[i] = state, reason
		if state == policyv1alpha1.DiskErasing && d.StartedAt == nil {
			d.StartedAt = &metav1.Time{Time: time.Now()}
		}
	})
}

// progress notes how far a disk has come, and what quarter of the whole is passed.
func (w *wiping) progress(i int, percent int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := &w.report.Disks[i]
	if d.State != policyv1alpha1.DiskErasing || percent == d.Percent {
		return
	}
	d.Percent = percent
	w.total()
}

// total tells the quarters of the whole, by bytes; the lock is held. A disk that failed is done.
func (w *wiping) total() {
	var whole, done int64
	for _, d := range w.report.Disks {
		whole += d.SizeBytes / 100 * 100
		switch d.State {
		case policyv1alpha1.DiskErasing:
			done += d.SizeBytes / 100 * int64(d.Percent)
		case policyv1alpha1.DiskPending:
		default:
			done += d.SizeBytes / 100 * 100
		}
	}
	if whole == 0 {
		return
	}
	if quarter := int32(done*100/whole) / 25 * 25; quarter > w.told && quarter < 100 {
		w.told = quarter
		select {
		case w.quarters <- quarter:
		default: // at most three are ever sent
		}
	}
}

// brief cuts the answers of drives, so that a report of many disks is no longer than the registry takes.
func brief(steps []policyv1alpha1.EraseStep, disks int) []policyv1alpha1.EraseStep {
	limit := min(maxStepAnswer, MaxBody/2/maxSteps/disks)
	steps = slices.Clone(steps[:min(len(steps), maxSteps)])
	b := bounds{trim: true}
	for i := range steps {
		b.text("answer", &steps[i].Answer, limit)
	}
	return steps
}

// end records how the erase of a disk ended.
func (w *wiping) end(i int, outcome EraseOutcome, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := &w.report.Disks[i]
	if outcome.Steps != nil { // a disk that hangs keeps those that it was seen to end
		d.Steps = brief(outcome.Steps, len(w.disks))
	}
	d.Method, d.Term, d.Verification = outcome.Method, outcome.Term, outcome.Verification
	d.FinishedAt, d.Percent = &metav1.Time{Time: time.Now()}, 0
	if err != nil {
		d.State, d.Message, d.Term = policyv1alpha1.DiskFailed, shorten(err.Error()), ""
		w.Log.Error("disk not erased", "server", w.UUID, "disk", d.Path, "serial", d.Serial, "method", d.Method, "error", err)
	} else {
		d.State, d.Message = policyv1alpha1.DiskVerified, shorten(strings.Trim(w.disks[i].Verdict().Reason+"; "+w.doubts[i], "; "))
		w.Log.Info("disk erased and read back", "server", w.UUID, "disk", d.Path, "serial", d.Serial, "method", d.Method, "term", d.Term)
	}
	w.total()
}

func (w *wiping) erasing() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.report.Disks, func(d policyv1alpha1.DiskWipe) bool { return d.State == policyv1alpha1.DiskErasing })
}

func (w *wiping) failed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	failed := 0
	for _, d := range w.report.Disks {
		if d.State != policyv1alpha1.DiskVerified {
			failed++
		}
	}
	return failed
}

// pace is the time between two signs of life.
func (a *Agent) pace() time.Duration { return min(a.Interval, MaxWipeInterval) }

// patience is how long to wait before asking again: as the registry says, and never so long that the wipe seems silent.
func (a *Agent) patience(status WipeStatus) time.Duration {
	if status.RetryAfter <= 0 {
		return a.pace()
	}
	return min(status.RetryAfter, MaxWipeInterval)
}

// tellPhase tells how much of the wipe is done, and says it on the console.
func (w *wiping) tellPhase(ctx context.Context, percent int32) {
	detail := fmt.Sprintf("%d disks", len(w.disks))
	w.Log.Info("wipe", "server", w.UUID, "percent", percent, "of", detail)
	w.phase(ctx, WipePhase, detail, percent)
}
