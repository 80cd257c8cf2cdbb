// SPDX-License-Identifier: Apache-2.0

// Package holders stops what the kernel put on top of a disk that is to be erased: LVM and other mappings, RAID arrays,
// bcache.
package holders

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/metalprobe/kernel"
)

// Changer changes what the kernel made of disks.
type Changer interface {
	// Write writes a value to a file of /sys, named without the leading slash.
	Write(name, value string) error
	// RemoveMapping removes a device of the device mapper by its name.
	RemoveMapping(name string) error
}

// Holder is a device on top of a disk.
type Holder struct {
	// Name is the kernel's name; Title says what it is.
	Name, Title string
	// Mapping is its name in the device mapper. Stop is the file that stops it, and Value what is written there.
	Mapping, Stop, Value string
	// Used says what uses the device; empty where nothing does.
	Used string
	// Disks are all disks below it.
	Disks []string
}

// Step is one thing to do.
type Step struct {
	// Mapping is to be removed; without it Value is to be written to File.
	Mapping, File, Value string
	Title                string
}

// Find lists what is on top of a disk and of its partitions, the topmost first.
func Find(tree kernel.Tree, disk string) []Holder {
	var found []Holder
	seen := map[string]bool{}
	var visit func(dir string)
	visit = func(dir string) {
		names, _ := tree.List(dir + "/holders") // none is an answer: nothing is on top
		for _, name := range names {
			if !seen[name] {
				seen[name] = true
				visit("sys/block/" + name)
				found = append(found, describe(tree, name))
			}
		}
	}
	for _, part := range tree.Parts(disk) {
		visit(part)
	}
	for _, part := range tree.Parts(disk) { // a device that bcache keeps without a cached disk shows no holder
		for _, file := range []string{part + "/bcache/set/stop", part + "/bcache/stop"} {
			if tree.Exists(file) {
				found = append(found, Holder{Name: disk, Title: "bcache", Stop: file, Value: "1",
					Disks: []string{disk}})
				break
			}
		}
	}
	return found
}

func describe(tree kernel.Tree, name string) Holder {
	dir := "sys/block/" + name
	h := Holder{Name: name, Title: tree.HolderTitle(name), Used: tree.Mounted(name), Disks: disksBelow(tree, name)}
	switch {
	case tree.Exists(dir + "/dm"):
		h.Mapping = tree.Word(dir + "/dm/name")
	case tree.Exists(dir + "/md"):
		h.Stop, h.Value = dir+"/md/array_state", "clear"
	case tree.Exists(dir + "/bcache"):
		h.Stop, h.Value = dir+"/bcache/stop", "1"
	}
	return h
}

// disksBelow lists the disks at the bottom of a device.
func disksBelow(tree kernel.Tree, name string) []string {
	var found []string
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		below, _ := tree.List("sys/block/" + name + "/slaves") // none is an answer: it is at the bottom
		if len(below) == 0 {
			found = append(found, name)
		}
		for _, slave := range below {
			visit(tree.DiskOf(slave))
		}
	}
	visit(name)
	slices.Sort(found)
	return found
}

// Plan says how to stop what is on top of a disk. It stops nothing that is used, nor what reaches disks that the wipe
// does not erase: stopping may write to them. erased says of a disk that the wipe erases it.
func Plan(found []Holder, erased func(disk string) bool) (steps []Step, err error) {
	for _, h := range found {
		if h.Used != "" {
			return nil, fmt.Errorf("it is held by %s, %s; the agent must run from memory", h.Title, h.Used)
		}
		for _, disk := range h.Disks {
			if !erased(disk) {
				return nil, fmt.Errorf("it is held by %s, which also reaches %s, a disk that the wipe does not "+
					"erase; disconnect that disk", h.Title, disk)
			}
		}
		if h.Mapping == "" && h.Stop == "" {
			return nil, fmt.Errorf("it is held by %s, which the agent cannot stop; remove it by hand", h.Title)
		}
		steps = append(steps, Step{Mapping: h.Mapping, File: h.Stop, Value: h.Value, Title: h.Title})
	}
	return steps, nil
}

// Do carries a step out.
func (s Step) Do(c Changer) error {
	var err error
	if s.Mapping != "" {
		err = c.RemoveMapping(s.Mapping)
	} else {
		err = c.Write(s.File, s.Value)
	}
	if err != nil {
		return fmt.Errorf("it is held by %s, which does not stop: %w", s.Title, err)
	}
	return nil
}

// Titles names holders for a record.
func Titles(steps []Step) string {
	var words []string
	for _, s := range steps {
		words = append(words, s.Title)
	}
	return strings.Join(words, ", ")
}
