// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe/erasure"
	"github.com/metalaw/metalaw/metalprobe/holders"
)

// preparation is done before the erase of a disk. A step without a method means that there was nothing to do.
type preparation func(ctx context.Context, order EraseOrder) (policyv1alpha1.EraseStep, error)

// ours is a disk that is listed to be erased. Disks share what is on top of them, so one at a time is released.
func (h *Host) ours(info policyv1alpha1.BlockDevice, verdict Verdict, releasing *sync.Mutex) *blockDisk {
	d := &blockDisk{info: info, verdict: verdict, flags: os.O_EXCL,
		lane: laneOf(h.sys().Resolve("sys/block/"+info.Name), verdict)}
	d.guard = func() error {
		h.contents.forget(info.Name)
		return h.mayErase(info)
	}
	if verdict.Sanitizing {
		d.prepare = append(d.prepare, func(ctx context.Context, order EraseOrder) (policyv1alpha1.EraseStep, error) {
			return h.await(ctx, d, order)
		})
	}
	d.prepare = append(d.prepare, func(ctx context.Context, _ EraseOrder) (policyv1alpha1.EraseStep, error) {
		releasing.Lock()
		defer releasing.Unlock()
		return h.release(ctx, info.Name)
	})
	return d
}

// await waits until the sanitize that runs in a drive has ended, and lets the kernel read the capacity of a drive that
// showed none.
func (h *Host) await(ctx context.Context, d *blockDisk, order EraseOrder) (policyv1alpha1.EraseStep, error) {
	disk, err := erasure.OpenCommands(d.info.Path)
	if err != nil {
		return policyv1alpha1.EraseStep{Method: erasure.MethodAwait, Result: policyv1alpha1.EraseFailed,
			Answer: err.Error()}, err
	}
	defer func() { _ = disk.Close() }() // nothing was written
	step, err := erasure.Await(ctx, protocolOf(d.info, d.verdict), disk, d.info.SizeBytes, order)
	size := "sys/block/" + d.info.Name + "/size"
	if err != nil || h.sys().Number(size) > 0 {
		return step, err
	}
	if h.Change != nil {
		err = h.Change.Write("sys/block/"+d.info.Name+"/device/rescan", "1")
	}
	if err == nil && h.sys().Number(size) <= 0 {
		err = errors.New("the sanitize in the drive has ended, and the kernel shows no capacity for it; " +
			"power-cycle the machine, and repeat the wipe")
	}
	return step, err
}

// released is how long what was stopped may take to go: bcache writes its cache back before.
const released = 30 * time.Second

// release stops what the kernel put on top of a disk, and waits until it is gone.
func (h *Host) release(ctx context.Context, name string) (step policyv1alpha1.EraseStep, err error) {
	found := holders.Find(h.sys(), name)
	if len(found) == 0 || h.Change == nil {
		return step, nil // mayErase names what still holds it
	}
	step = policyv1alpha1.EraseStep{Method: erasure.MethodRelease, Result: policyv1alpha1.EraseSucceeded}
	steps, err := holders.Plan(found, h.erases)
	step.Parameters = holders.Titles(steps)
	for _, s := range steps {
		err = errors.Join(err, s.Do(h.Change))
	}
	for began := time.Now(); err == nil && len(holders.Find(h.sys(), name)) > 0 && time.Since(began) < released; {
		if !Wait(ctx, time.Second) {
			break
		}
	}
	if err != nil {
		step.Result, step.Answer = policyv1alpha1.EraseFailed, err.Error()
	}
	return step, err
}

// erases says that a wipe erases a disk: what is on top of it may be stopped, which may write to it.
func (h *Host) erases(name string) bool {
	dir := "sys/block/" + name
	return !named(h.Policy.Excused, h.sys().WWID(dir), h.sys().Serial(dir), h.sys().Model(dir)) &&
		h.judge(name).Standing == DiskOurs
}
