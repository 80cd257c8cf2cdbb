// SPDX-License-Identifier: Apache-2.0

package drives

import (
	"slices"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// leastPrefix is how long a serial number must be to stand for a longer one that begins with it.
const leastPrefix = 8

// identity is what a drive or a disk is found by.
type identity struct {
	serial  string
	durable []string
}

type listedDrive struct {
	drive policyv1alpha1.BMCDrive
	identity
}

// distinct are the listed drives, each once: a drive behind two adapters is listed by both.
func distinct(listed []policyv1alpha1.BMCDrive) []listedDrive {
	var out []listedDrive
	for _, d := range listed {
		next := listedDrive{drive: d, identity: identity{serial: Serial(d.Serial)}}
		for _, name := range d.DurableNames {
			if name = DurableName(name); name != "" {
				next.durable = append(next.durable, name)
			}
		}
		i := slices.IndexFunc(out, func(known listedDrive) bool { return known.twice(next.identity) })
		if i < 0 {
			out = append(out, next)
			continue
		}
		// One adapter that does not show volumes is enough: the kernel shows the drive there.
		out[i].drive.BehindVolume = out[i].drive.BehindVolume && d.BehindVolume
		out[i].drive.Spare = out[i].drive.Spare && d.Spare
		out[i].durable = append(out[i].durable, next.durable...)
	}
	return out
}

// twice says that two lines of a list are one drive.
func (a identity) twice(b identity) bool {
	return a.serial != "" && a.serial == b.serial && (len(a.durable) == 0 || len(b.durable) == 0 || a.shares(b))
}

func (a identity) shares(b identity) bool {
	return slices.ContainsFunc(a.durable, func(name string) bool { return slices.Contains(b.durable, name) })
}

// match says of each listed drive whether a disk of its own shows it. Where a disk could show two drives, the drives
// are matched so that as few as possible are left.
func match(listed []listedDrive, seen []Seen) []bool {
	disks := make([]identity, len(seen))
	for i, s := range seen {
		disks[i].serial = Serial(s.Serial)
		if name := DurableName(s.WWID); name != "" {
			disks[i].durable = []string{name}
		}
	}
	owner := make([]int, len(disks)) // the drive that a disk shows, counted from 1
	shown := make([]bool, len(listed))
	for i := range listed {
		shown[i] = place(i, listed, disks, owner, make([]bool, len(disks)))
	}
	return shown
}

// place finds a disk for a drive, and another one for the drive that had it.
func place(i int, listed []listedDrive, disks []identity, owner []int, tried []bool) bool {
	for n, disk := range disks {
		if tried[n] || !listed[i].shownBy(disk) {
			continue
		}
		tried[n] = true
		if owner[n] == 0 || place(owner[n]-1, listed, disks, owner, tried) {
			owner[n] = i + 1
			return true
		}
	}
	return false
}

// shownBy says that a disk is a listed drive: by serial number, of which one may begin with the other, or by durable
// name.
func (a identity) shownBy(disk identity) bool {
	if a.shares(disk) {
		return true
	}
	if a.serial == "" || disk.serial == "" {
		return false
	}
	short, long := a.serial, disk.serial
	if len(short) > len(long) {
		short, long = long, short
	}
	return short == long || len(short) >= leastPrefix && strings.HasPrefix(long, short)
}

// Serial is a serial number as it is compared: trimmed and in lower case. A placeholder is empty.
func Serial(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	if !policyv1alpha1.DiskIdentifies(s) {
		return ""
	}
	return s
}

// DurableName is a world-wide name as it is compared: lower-case letters and digits, without the word that names its
// form. What is shorter than eight, and a placeholder, names nothing.
func DurableName(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	for _, form := range []string{"eui.", "naa.", "uuid.", "urn:uuid:", "wwn-", "0x", "eui-", "naa-"} {
		s = strings.TrimPrefix(s, form)
	}
	s = strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, s)
	if len(s) < leastPrefix || !policyv1alpha1.DiskIdentifies(s) {
		return ""
	}
	return s
}
