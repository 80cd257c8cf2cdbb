// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"slices"
)

// Ranks say by what two disks are taken for one, the weakest first. Zero means that they are not.
const (
	byPlaceholder = iota + 1
	byName
	bySerial
	byWWID
	byBoth
)

// found says by what an erased disk stands for a remembered one: only by the strongest identity of the remembered
// disk. Where that is none, a placeholder that both show still counts one disk for one.
func found(remembered, erased CustodyDisk) int {
	switch key := remembered.Key(); {
	case key.By == "wwid":
		return rankWWID(remembered, erased)
	case key.By == "serial" && key.Value == erased.Serial:
		return bySerial
	case key.By == "serial":
		return 0
	case remembered.Name != "" && remembered.Name == erased.Name:
		return byName
	case remembered.WWID != "" && remembered.WWID == erased.WWID,
		remembered.Serial != "" && remembered.Serial == erased.Serial:
		return byPlaceholder
	}
	return 0
}

// sameBoot says by what two disks of one boot are one: by the strongest identity that both have, else by their names.
func sameBoot(a, b CustodyDisk) int {
	switch {
	case DiskIdentifies(a.WWID) && DiskIdentifies(b.WWID):
		return rankWWID(a, b)
	case DiskIdentifies(a.Serial) && DiskIdentifies(b.Serial):
		if a.Serial == b.Serial {
			return bySerial
		}
		return 0
	case a.Name != "" && a.Name == b.Name:
		return byName
	}
	return 0
}

func rankWWID(a, b CustodyDisk) int {
	switch {
	case !OneDisk(a, b):
		return 0
	case a.Serial != "" && a.Serial == b.Serial:
		return byBoth
	}
	return byWWID
}

// notPaired gives those of some disks for which none of the others stands, in their order. Each of the others stands
// for one disk, and as many disks as possible are paired. Several paths to one disk count as one on either side.
func notPaired(disks, others []CustodyDisk, rank func(disk, other CustodyDisk) int) []CustodyDisk {
	of, firsts := fold(disks, OneDisk)
	_, stands := fold(others, func(a, b CustodyDisk) bool { return OneDisk(a, b) && !differ(a.Serial, b.Serial) })
	with := pairUp(firsts, stands, rank)
	var left []CustodyDisk
	for i, disk := range disks {
		if with[of[i]] < 0 {
			left = append(left, disk)
		}
	}
	return left
}

// pairUp pairs as many disks as possible with others, each with one, the best ranks first. It gives the other of each
// disk; -1 for none.
func pairUp(disks, others []CustodyDisk, rank func(disk, other CustodyDisk) int) []int {
	pairs := pairing{with: slices.Repeat([]int{-1}, len(others)), edges: make([][]int, len(disks))}
	order, strongest := make([]int, len(disks)), make([]int, len(disks))
	for i, disk := range disks {
		order[i] = i
		ranks := make([]int, len(others))
		for j, other := range others {
			if ranks[j] = rank(disk, other); ranks[j] > 0 {
				pairs.edges[i] = append(pairs.edges[i], j)
			}
			strongest[i] = max(strongest[i], ranks[j])
		}
		slices.SortStableFunc(pairs.edges[i], func(a, b int) int { return cmp.Compare(ranks[b], ranks[a]) })
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(strongest[b], strongest[a]) })
	for _, i := range order {
		pairs.augment(i, make([]bool, len(others)))
	}
	with := slices.Repeat([]int{-1}, len(disks))
	for j, i := range pairs.with {
		if i >= 0 {
			with[i] = j
		}
	}
	return with
}

// fold takes several paths to one disk together: of says which of the firsts each disk belongs to.
func fold(disks []CustodyDisk, one func(a, b CustodyDisk) bool) (of []int, firsts []CustodyDisk) {
	of = make([]int, len(disks))
	for i, disk := range disks {
		at := slices.IndexFunc(firsts, func(first CustodyDisk) bool { return one(first, disk) })
		if at < 0 {
			at, firsts = len(firsts), append(firsts, disk)
		}
		if firsts[at].Serial == "" {
			firsts[at].Serial = disk.Serial // a third disk with this wwid may differ by it
		}
		of[i] = at
	}
	return of, firsts
}

// pairing pairs disks with those that stand for them.
type pairing struct {
	// with is the disk that each of the others stands for; -1 for none.
	with []int
	// edges are the others that may stand for each disk, the best first.
	edges [][]int
}

// augment pairs a disk, and moves disks that are paired already to others where that makes room.
func (p *pairing) augment(disk int, tried []bool) bool {
	for _, other := range p.edges[disk] {
		if tried[other] {
			continue
		}
		tried[other] = true
		if p.with[other] < 0 || p.augment(p.with[other], tried) {
			p.with[other] = disk
			return true
		}
	}
	return false
}
