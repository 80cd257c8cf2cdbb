// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"path"
	"strings"
)

// Parts lists the directories of a disk and of its partitions.
func (t Tree) Parts(name string) []string {
	dir := path.Join("sys/block", name)
	parts := []string{dir}
	entries, _ := t.List(dir)
	for _, entry := range entries {
		if t.Exists(path.Join(dir, entry, "partition")) {
			parts = append(parts, path.Join(dir, entry))
		}
	}
	return parts
}

// DiskOf names the disk of a partition; a name that is no partition's stays as it is.
func (t Tree) DiskOf(name string) string {
	place := t.Resolve("sys/class/block/" + name)
	if t.Exists(place + "/partition") {
		return path.Base(path.Dir(place))
	}
	return name
}

// HolderTitle says what a device on top of disks is.
func (t Tree) HolderTitle(name string) string {
	dir := "sys/block/" + name
	mapping, uuid := t.Word(dir+"/dm/name"), t.Word(dir+"/dm/uuid")
	switch {
	case strings.HasPrefix(uuid, "LVM-"):
		return "LVM volume " + mapping
	case strings.HasPrefix(uuid, "CRYPT-"):
		return "encryption " + mapping
	case mapping != "":
		return "mapping " + mapping
	case t.Exists(dir + "/md"):
		return "RAID array " + name
	case t.Exists(dir + "/bcache"):
		return "bcache " + name
	}
	return name
}

// Mounted says where a disk or one of its partitions is mounted, or that it is swap; empty where neither is so.
func (t Tree) Mounted(name string) string {
	for _, part := range t.Parts(name) {
		device := "/dev/" + strings.ReplaceAll(path.Base(part), "!", "/")
		if where := t.mountedAt(t.Word(part+"/dev"), device); where != "" {
			return "mounted at " + where
		}
		for line := range strings.Lines(t.Word("proc/swaps")) {
			if fields := strings.Fields(line); len(fields) > 0 && fields[0] == device {
				return "used as swap"
			}
		}
	}
	return ""
}

// InUse says what uses a disk: a mounted file system, swap, or a mapping on top (LVM, RAID, encryption).
// Empty means that nothing was found.
func (t Tree) InUse(name string) string {
	for _, part := range t.Parts(name) {
		if holders, _ := t.List(part + "/holders"); len(holders) > 0 {
			return "it is held by " + t.HolderTitle(holders[0])
		}
	}
	if used := t.Mounted(name); used != "" {
		return "it is " + used
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
