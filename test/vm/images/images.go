// SPDX-License-Identifier: Apache-2.0

// Package images names what virtual machines of tests and of the demo boot: the agent's image as `make vm-images` builds it, and a
// tenant's workload beside the same kernel and modules.
package images

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/metalaw/metalaw/internal/tools/metalaw-image/uki"
	"github.com/metalaw/metalaw/test/bootprovider"
)

// The names of images, as a boot configuration gives them.
const (
	// Probe is the agent with Debian's small kernel for virtual machines, which boots fastest; Workload is a tenant's beside it.
	Probe    = "probe"
	Workload = "workload"
	// ProbeRemote is the agent on a machine that has its virtio disk as a remote one too, over NVMe/TCP.
	ProbeRemote = "probe-remote"
	// ProbeHeld is the agent on a machine whose virtio disk is held by a RAID array with a mapping on top.
	ProbeHeld = "probe-held"
	// ProbeFull is the agent with the kernel and the drivers of real machines: what users get.
	ProbeFull = "probe-full"
)

// Marker is what the workload writes to its disks.
const Marker = "metalaw-tenant-marker"

// Load builds the workload into dir and returns the images by name. root is the repository.
func Load(root, dir string) (map[string]bootprovider.Image, error) {
	workload, err := pack(root, dir)
	if err != nil {
		return nil, err
	}
	all := map[string]bootprovider.Image{}
	for name, folder := range map[string]string{Probe: "cloud", ProbeFull: "amd64"} {
		image := bootprovider.Image{Kernel: filepath.Join(root, "bin", "vm-image", folder, "vmlinuz"),
			Initramfs: []string{filepath.Join(root, "bin", "vm-image", folder, "initramfs.zst")}}
		for _, file := range append([]string{image.Kernel}, image.Initramfs...) {
			if _, err := os.Stat(file); err != nil {
				return nil, fmt.Errorf("images of virtual machines: %w: run `make vm-images`", err)
			}
		}
		all[name] = image
	}
	probe := all[Probe]
	beside := append([]string{workload}, probe.Initramfs...)
	// An archive that is not compressed must come first, and rdinit chooses its program instead of the agent.
	all[Workload] = bootprovider.Image{Kernel: probe.Kernel, Initramfs: beside, Arguments: "rdinit=/workload"}
	all[ProbeRemote] = bootprovider.Image{Kernel: probe.Kernel, Initramfs: beside, Arguments: "rdinit=/remote"}
	all[ProbeHeld] = bootprovider.Image{Kernel: probe.Kernel, Initramfs: beside, Arguments: "rdinit=/held"}
	return all, nil
}

// pack builds the workload and puts it into an archive of its own.
func pack(root, dir string) (string, error) {
	program := filepath.Join(dir, "workload")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "./test/vm/workload") //nolint:noctx // it ends by itself
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the workload: %w: %s", err, said)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	archive, err := uki.Cpio(map[string]uki.File{
		"workload": {Mode: 0o755, Content: content},
		"remote":   {Mode: fs.ModeSymlink | 0o777, Content: []byte("workload")},
		"held":     {Mode: fs.ModeSymlink | 0o777, Content: []byte("workload")},
	})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "workload.cpio")
	return path, os.WriteFile(path, archive, 0o600)
}
