// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/internal/tools/metalaw-image/uki"
)

// Parts are what a boot image is made of.
type Parts struct {
	// Release is the version of the kernel, as uname -r prints it.
	Release string
	// Kernel is bootable; Modules is the folder of its modules, as depmod left it.
	Kernel  []byte
	Modules fs.FS
	// Patterns choose modules, and Required must be among them.
	Patterns, Required []string
	// Agent becomes /init, and CA, if any, what the agent trusts.
	Agent, CA []byte
	// Firmware are files for /lib/firmware, nil for none.
	Firmware fs.FS
	// Stub is the EFI stub of systemd.
	Stub      []byte
	Cmdline   string
	OSRelease string
}

// Artefacts are what a machine can boot from. The ISO is composed of the UKI.
type Artefacts struct {
	Kernel, Initramfs, UKI []byte
	// Modules counts the modules, and Firmware names the files that they would load and the image lacks.
	Modules  int
	Firmware []string
}

// Assemble makes the artefacts. The same parts give the same bytes.
func Assemble(parts Parts) (*Artefacts, error) {
	modules, err := uki.SelectModules(parts.Modules, parts.Patterns)
	if err != nil {
		return nil, err
	}
	for _, module := range parts.Required {
		if !modules.Has(module) {
			return nil, fmt.Errorf("choosing kernel modules of %s: %s is not among them; mend the patterns: machines that need it lose devices",
				parts.Release, module)
		}
	}
	files, missing, err := parts.files(modules)
	if err != nil {
		return nil, err
	}
	archive, err := uki.Cpio(files)
	if err != nil {
		return nil, err
	}
	initramfs, err := uki.Zstd(archive)
	if err != nil {
		return nil, err
	}
	image, err := uki.New(uki.Options{Stub: parts.Stub, Kernel: parts.Kernel, Initramfs: initramfs,
		Cmdline: parts.Cmdline, OSRelease: parts.OSRelease, Uname: parts.Release})
	if err != nil {
		return nil, err
	}
	return &Artefacts{Kernel: parts.Kernel, Initramfs: initramfs, UKI: image, Modules: len(modules.Files), Firmware: missing}, nil
}

// files returns what the initramfs holds, and the firmware that its modules may ask for and that is not there.
func (parts Parts) files(modules *uki.Modules) (map[string]uki.File, []string, error) {
	files := map[string]uki.File{
		"init":           {Mode: 0o755, Content: parts.Agent},
		"dev/console":    {Mode: fs.ModeDevice | fs.ModeCharDevice | 0o600, Major: 5, Minor: 1},
		"dev/null":       {Mode: fs.ModeDevice | fs.ModeCharDevice | 0o666, Major: 1, Minor: 3},
		"tmp":            {Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		"etc/os-release": {Mode: 0o644, Content: []byte(parts.OSRelease)},
	}
	for _, folder := range []string{"proc", "sys", "run", "etc/metalprobe", "mnt"} {
		files[folder] = uki.File{Mode: fs.ModeDir | 0o755}
	}
	if len(parts.CA) > 0 {
		files["etc/metalprobe/ca.pem"] = uki.File{Mode: 0o644, Content: parts.CA}
	}
	have := map[string]bool{}
	if parts.Firmware != nil {
		var err error
		if have, err = addFirmware(files, parts.Firmware); err != nil {
			return nil, nil, err
		}
	}
	folder := "lib/modules/" + parts.Release
	for name, text := range modules.Index {
		files[path.Join(folder, name)] = uki.File{Mode: 0o644, Content: text}
	}
	missing := map[string]bool{}
	for _, name := range modules.Files {
		content, err := fs.ReadFile(parts.Modules, name)
		if err != nil {
			return nil, nil, fmt.Errorf("reading a kernel module: %w", err)
		}
		files[path.Join(folder, name)] = uki.File{Mode: 0o644, Content: content}
		for _, file := range firmwareOf(content) {
			if !have[file] {
				missing[file] = true
			}
		}
	}
	return files, slices.Sorted(maps.Keys(missing)), nil
}

// addFirmware adds all files of a folder below /lib/firmware.
func addFirmware(files map[string]uki.File, firmware fs.FS) (map[string]bool, error) {
	have := map[string]bool{}
	err := fs.WalkDir(firmware, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(firmware, name) // follows links, which lead out of a package often
		have[name] = true
		files[path.Join("lib/firmware", name)] = uki.File{Mode: 0o644, Content: content}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("adding firmware: %w", err)
	}
	return have, nil
}

// firmwareOf returns the firmware files that a module names. A module that cannot be read names none: the list is advice.
func firmwareOf(module []byte) []string {
	file, err := elf.NewFile(bytes.NewReader(module))
	if err != nil {
		return nil
	}
	section := file.Section(".modinfo")
	if section == nil {
		return nil
	}
	text, err := section.Data()
	if err != nil {
		return nil
	}
	var names []string
	for field := range strings.SplitSeq(string(text), "\x00") {
		if name, found := strings.CutPrefix(field, "firmware="); found {
			names = append(names, name)
		}
	}
	return names
}
