// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// MethodAwait waits for a sanitize that another boot, or another program, has started. It erases nothing that a record
// may count.
const MethodAwait = "await-sanitize"

// MethodRelease stops what the kernel put on top of a disk, such as LVM. It erases nothing either.
const MethodRelease = "release"

// awaitUnknown is how long a sanitize may run of which the drive tells neither the end nor its capacity.
const awaitUnknown = 24 * time.Hour

// Sanitize is what a drive says of a sanitize that runs in it.
type Sanitize struct {
	Runs    bool
	Percent int32
	// Estimate is the longest of the drive's own; zero where it gives none.
	Estimate time.Duration
}

// Sanitizing asks a drive whether a sanitize runs in it. It only reads. A drive that knows no sanitize, or does not
// answer, runs none that could be waited for.
func Sanitizing(protocol Protocol, c Commands) (Sanitize, error) {
	switch protocol {
	case NVMe:
		log, err := nvmeDrive{Commands: c}.log()
		if err != nil {
			return Sanitize{}, err
		}
		return Sanitize{Runs: log.state() == sanitizeRunning, Percent: log.percent, Estimate: max(log.overwrite,
			log.block, log.crypto)}, nil
	case ATA:
		facts, err := identifyATA(c)
		if err != nil || !facts.sanitize {
			return Sanitize{}, err
		}
		status, err := c.ATA(ATACommand{Command: ataSanitize, Extended: true, Feature: sanitizeStatusExt,
			Timeout: short})
		if err != nil {
			return Sanitize{}, err
		}
		return Sanitize{Runs: status.Count&sanitizeInProgress != 0,
			Percent: int32(status.LBA & 0xffff * 100 / 65536)}, nil
	case SCSI:
		s, err := scsiDrive{c}.requestSense()
		if err != nil {
			return Sanitize{}, err
		}
		return Sanitize{Runs: s.key == senseNotReady && s.asc == ascSanitizeRuns, Percent: max(0, s.percent)}, nil
	case NoProtocol:
	}
	return Sanitize{}, nil
}

// Await waits until no sanitize runs in a drive that was seen to run one, within twice the drive's own estimate, else
// twice the time by its capacity. The step that it returns names how that ended. size is zero where the kernel shows no
// capacity meanwhile.
func Await(ctx context.Context, protocol Protocol, c Commands, size int64, order Order) (policyv1alpha1.EraseStep,
	error) {
	step := policyv1alpha1.EraseStep{Method: MethodAwait, Result: policyv1alpha1.EraseSucceeded}
	now, err := Sanitizing(protocol, c)
	if err == nil && !now.Runs {
		step.Answer = "it had ended"
		return step, nil
	}
	limit := awaitLimit(now.Estimate, size, cmp.Or(order.Floor, DefaultFloor))
	step.Parameters = "at most " + limit.String()
	if order.Expect != nil {
		order.Expect(MethodAwait, limit+cmp.Or(order.Floor, DefaultFloor))
	}
	if err == nil && order.Announce != nil {
		message := fmt.Sprintf("a sanitize that was started before runs in the drive (%d%%); the wipe waits for "+
			"its end, at most %s", now.Percent, limit)
		err = order.Announce(ctx, message)
	}
	if err == nil {
		err = poll(ctx, limit, func() (bool, error) {
			var failed error
			now, failed = Sanitizing(protocol, c)
			if failed == nil && order.Progress != nil {
				order.Progress(now.Percent / 2) // an erase follows
			}
			return !now.Runs, failed
		})
	}
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("a sanitize that was started before still runs in the drive after %s (%d%%); repeat the "+
			"wipe when it has ended", limit, now.Percent)
	}
	if err != nil {
		step.Result, step.Answer = policyv1alpha1.EraseFailed, clip(err.Error(), maxAnswer)
	}
	return step, err
}

func awaitLimit(estimate time.Duration, size int64, floor time.Duration) time.Duration {
	switch {
	case estimate > 0:
		return max(floor, 2*estimate)
	case size <= 0:
		return max(floor, awaitUnknown)
	}
	return max(floor, 2*time.Duration(size/slowest)*time.Second)
}
