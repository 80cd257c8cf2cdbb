// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"path"
	"strings"
)

// InUse says what uses a disk: a mounted file system, swap, or a mapping on top (LVM, RAID, encryption).
// Empty means that nothing was found.
func (t Tree) InUse(name string) string {
	dir := path.Join("sys/block", name)
	parts := []string{dir}
	entries, _ := t.List(dir)
	for _, entry := range entries {
		if t.Exists(path.Join(dir, entry, "partition")) {
			parts = append(parts, path.Join(dir, entry))
		}
	}
	for _, part := range parts {
		if holders, _ := t.List(part + "/holders"); len(holders) > 0 {
			return "it is held by " + holders[0]
		}
		device := "/dev/" + strings.ReplaceAll(path.Base(part), "!", "/")
		if where := t.mountedAt(t.Word(part+"/dev"), device); where != "" {
			return "it is mounted at " + where
		}
		for line := range strings.Lines(t.Word("proc/swaps")) {
			if fields := strings.Fields(line); len(fields) > 0 && fields[0] == device {
				return "it is used as swap"
			}
		}
	}
	return ""
}

// mountedAt finds where a device is mounted, by its number and by its path (some file systems have numbers of their own).
func (t Tree) mountedAt(number, device string) string {
	for line := range strings.Lines(t.Word("proc/self/mountinfo")) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		_, source, _ := strings.Cut(line, " - ")
		words := strings.Fields(source)
		if (number != "" && fields[2] == number) || (len(words) > 1 && words[1] == device) {
			return fields[4]
		}
	}
	return ""
}
