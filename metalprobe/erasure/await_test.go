// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

func TestAwait(t *testing.T) {
	running, ended := sanitizeStatusPage(0, 2, 0xa), sanitizeStatusPage(0, 1, 0xa)
	scsi := func(asc uint16, key byte) []byte {
		page := make([]byte, 18)
		page[0], page[2], page[12], page[13] = 0x70, key, byte(asc>>8), byte(asc)
		return page
	}
	for name, c := range map[string]struct {
		protocol Protocol
		change   func(*fakeDrive)
		size     int64
		want     string // of step and error
		took     time.Duration
	}{
		"an NVMe drive that runs none": {NVMe, func(f *fakeDrive) { f.sanitizeLogs = [][]byte{ended} }, 1 << 20, "Succeeded it had ended", 0},
		"an NVMe drive that runs one for two seconds": {NVMe, func(f *fakeDrive) { f.sanitizeLogs = [][]byte{running, running, running, ended} }, 1 << 20,
			"Succeeded", 2 * time.Second},
		"an NVMe drive whose sanitize fails": {NVMe, func(f *fakeDrive) { f.sanitizeLogs = [][]byte{running, sanitizeStatusPage(0, 3, 0xa)} }, 1 << 20,
			"Succeeded", 0},
		"an NVMe drive that does not end": {NVMe, func(f *fakeDrive) { f.sanitizeLogs = [][]byte{running} }, 1 << 20,
			"Failed a sanitize that was started before still runs in the drive after 5m0s (0%); repeat the wipe when it has ended", 5 * time.Minute},
		"a SATA drive": {ATA, func(f *fakeDrive) {
			f.ataPage[119] = 0x10 // word 59, bit 12
			f.statuses = []ATAResult{{Count: sanitizeInProgress}, {Count: sanitizeInProgress}, {Count: sanitizeCompletedOK}}
		}, 1 << 20, "Succeeded", time.Second},
		"a SCSI drive without a capacity": {SCSI, func(f *fakeDrive) {
			f.senses = [][]byte{scsi(ascSanitizeRuns, senseNotReady), scsi(ascSanitizeRuns, senseNotReady), scsi(0, senseNoSense)}
		}, 0, "Succeeded", time.Second},
		"a SCSI drive that does not end": {SCSI, func(f *fakeDrive) { f.senses = [][]byte{scsi(ascSanitizeRuns, senseNotReady)} }, 0,
			"Failed a sanitize that was started before still runs in the drive after 24h0m0s", 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				drive := nvme(t, fullDisk(1<<20), 2, 0, 0)
				drive.ataPage = make([]byte, 512)
				c.change(drive)
				var told []string
				begun := time.Now()
				step, err := Await(t.Context(), c.protocol, drive, c.size, Order{
					Announce: func(_ context.Context, message string) error { told = append(told, message); return nil },
					Expect:   func(step string, _ time.Duration) { told = append(told, step) },
				})
				if got := strings.TrimSpace(string(step.Result) + " " + step.Answer); !strings.HasPrefix(got, c.want) || (err == nil) != strings.HasPrefix(c.want, "Succeeded") {
					t.Errorf("got %q, %v; want %q", got, err, c.want)
				}
				if took := time.Since(begun); took != c.took {
					t.Errorf("took %s, want %s", took, c.took)
				}
				if waited := !strings.Contains(c.want, "it had ended"); waited && (len(told) != 2 || !strings.Contains(told[1], "a sanitize that was started before runs")) {
					t.Errorf("told %q", told)
				}
				if len(drive.log) > 0 {
					t.Errorf("it was told %q", drive.log)
				}
			})
		})
	}
}

func TestAPreparationIsNoMethod(t *testing.T) {
	steps := []policyv1alpha1.EraseStep{{Method: MethodAwait, Result: policyv1alpha1.EraseSucceeded}, {Method: MethodRelease, Result: policyv1alpha1.EraseSucceeded},
		{Method: MethodZero, Result: policyv1alpha1.EraseSucceeded}}
	if got := MethodOf(steps); got != MethodZero {
		t.Errorf("got %q", got)
	}
	verified := &policyv1alpha1.EraseVerification{Kind: policyv1alpha1.VerifiedZeros, Passed: true}
	if got := Term(policyv1alpha1.MediaSSD, steps[:2], verified, false); got != "" {
		t.Errorf("waiting reached %q", got)
	}
}
