// SPDX-License-Identifier: Apache-2.0

package uki

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// cpioTime is 1 January 2020: each file of our archives has this time.
const cpioTime = 1577836800

// File is a file, folder, link or device of an initramfs.
type File struct {
	// Mode holds type and permissions, as in fs.FileMode.
	Mode fs.FileMode
	// Content of a file, or the target of a link.
	Content []byte
	// Major and Minor number a device.
	Major, Minor uint32
}

// Cpio returns the files as an archive in the format newc, which Linux unpacks as initramfs. Folders above the files
// need not be named. All belongs to root, and the archive is padded to 512 bytes.
func Cpio(files map[string]File) ([]byte, error) {
	all := maps.Clone(files)
	size := 0
	for name, file := range files {
		if !fs.ValidPath(name) || name == "." || strings.ContainsRune(name, 0) {
			return nil, fmt.Errorf("writing an initramfs: %q is not a path without a leading slash", name)
		}
		if int64(len(file.Content)) >= 1<<32 {
			return nil, fmt.Errorf("writing an initramfs: %s has %d bytes; the format ends at 4 GB", name, len(file.Content))
		}
		size += 2*len(name) + len(file.Content) + 128
		for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
			if _, there := all[folder]; !there {
				all[folder] = File{Mode: fs.ModeDir | 0o755}
			}
		}
	}
	out := make([]byte, 0, size+1024)
	for n, name := range slices.Sorted(maps.Keys(all)) {
		mode, err := unixMode(all[name].Mode)
		if err != nil {
			return nil, fmt.Errorf("writing an initramfs: %s: %w", name, err)
		}
		out = appendCpio(out, n+1, name, mode, all[name])
	}
	out = appendCpio(out, 0, "TRAILER!!!", 0, File{})
	return append(out, make([]byte, roundUp(int64(len(out)), 512)-int64(len(out)))...), nil
}

func appendCpio(out []byte, inode int, name string, mode uint32, file File) []byte {
	links := 1
	if file.Mode.IsDir() {
		links = 2
	}
	out = fmt.Appendf(out, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", inode, mode, 0, 0, links, cpioTime,
		len(file.Content), 0, 0, file.Major, file.Minor, len(name)+1, 0)
	out = append(out, name...)
	out = append(out, 0)
	out = padTo4(out)
	out = append(out, file.Content...)
	return padTo4(out)
}

func padTo4(b []byte) []byte { return append(b, make([]byte, (4-len(b)%4)%4)...) }

// unixMode returns the mode as Linux writes it.
func unixMode(mode fs.FileMode) (uint32, error) {
	kind, known := map[fs.FileMode]uint32{
		0:                                 0o100000,
		fs.ModeDir:                        0o040000,
		fs.ModeSymlink:                    0o120000,
		fs.ModeDevice:                     0o060000,
		fs.ModeDevice | fs.ModeCharDevice: 0o020000,
	}[mode.Type()]
	if !known {
		return 0, fmt.Errorf("type %s has no place in an initramfs", mode.Type())
	}
	sticky := uint32(0)
	if mode&fs.ModeSticky != 0 {
		sticky = 0o1000
	}
	return kind | sticky | uint32(mode.Perm()), nil
}
