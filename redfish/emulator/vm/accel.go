// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"os"
	"os/exec"
	"time"
)

// kvmTrial is how long a kernel may take to boot with KVM. Some hosts have a device that hangs every guest.
const kvmTrial = 5 * time.Second

// accelerate says what runs the guests' instructions. It tries KVM once, with the first kernel that comes by: without a root that
// kernel panics, which resets the guest and so ends QEMU.
func (b *Backend) accelerate(ctx context.Context, kernel string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.accelerator != "" {
		return b.accelerator
	}
	device, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		b.accelerator = "tcg"
		return b.accelerator
	}
	_ = device.Close()
	if kernel == "" {
		return "tcg"
	}
	trial, cancel := context.WithTimeout(ctx, kvmTrial)
	defer cancel()
	command := exec.CommandContext(trial, b.options.QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-machine", "q35,accel=kvm", "-cpu", "host", "-m", "128", "-kernel", kernel, "-append", "panic=-1")
	alone(command)
	err = command.Run()
	if ctx.Err() != nil {
		return "tcg"
	}
	b.accelerator = "tcg"
	if err == nil {
		b.accelerator = "kvm"
	}
	b.options.Log.Info("accelerator chosen", "accelerator", b.accelerator)
	return b.accelerator
}
