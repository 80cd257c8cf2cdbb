// SPDX-License-Identifier: Apache-2.0

// Package hidden judges storage that a machine has and that no disk of the kernel shows. It is pure.
package hidden

import (
	"cmp"
	"slices"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/internal/drives"
)

// ByPolicy is what excusedBy says where the policy excuses hidden storage.
const ByPolicy = "policy"

// most is how many entries the API stores.
const most = 256

// Input is what is known of the storage of a machine.
type Input struct {
	// Agent is what the agent saw of hidden storage, and Disks are the disks that it saw.
	Agent []policyv1alpha1.HiddenStorage
	Disks []policyv1alpha1.CustodyDisk
	// Storage is the last reading of the BMC's list; nil where there is none.
	Storage *policyv1alpha1.BMCStorage
	// Excused are the names in wipe.excused, and Attested is what persons answer for.
	Excused  []string
	Attested []policyv1alpha1.AttestedHidden
}

// Findings is the hidden storage of a machine.
type Findings struct {
	// All is all of it, each with who excuses it.
	All []policyv1alpha1.HiddenStorage
	// Covered are drives behind volumes, which the agent does not see. They fail nothing.
	Covered []policyv1alpha1.HiddenStorage
}

// Judge takes together what the agent and the BMC say, and finds out what is excused. A drive of which both know
// counts once.
func Judge(in Input) Findings {
	var found Findings
	seen := make([]drives.Seen, len(in.Disks))
	for i, d := range in.Disks {
		seen[i] = drives.Seen{Serial: d.Serial, WWID: d.WWID, Name: d.Name}
	}
	listed, covered := drives.Unseen(in.Storage, seen)
	for _, h := range in.Agent {
		h.Source, h.ExcusedBy = policyv1alpha1.HiddenByAgent, "" // no agent excuses
		if at := slices.IndexFunc(listed, func(l policyv1alpha1.HiddenStorage) bool { return sameSerial(l, h) }); at >= 0 {
			h.Slot, h.SizeBytes = cmp.Or(h.Slot, listed[at].Slot), cmp.Or(h.SizeBytes, listed[at].SizeBytes)
			listed = slices.Delete(listed, at, at+1)
		}
		found.All = append(found.All, h)
	}
	found.All = append(found.All, listed...)
	found.All = found.All[:min(len(found.All), most)]
	found.Covered = covered[:min(len(covered), most)]
	for i := range found.All {
		found.All[i].ExcusedBy = excusedBy(found.All[i], in)
	}
	return found
}

// Open is what neither the policy nor a person excuses.
func (f Findings) Open() []policyv1alpha1.HiddenStorage { return Open(f.All) }

// Open leaves out what is excused.
func Open(all []policyv1alpha1.HiddenStorage) []policyv1alpha1.HiddenStorage {
	return slices.DeleteFunc(slices.Clone(all), func(h policyv1alpha1.HiddenStorage) bool { return h.ExcusedBy != "" })
}

func sameSerial(a, b policyv1alpha1.HiddenStorage) bool {
	return policyv1alpha1.DiskIdentifies(a.Serial) && strings.EqualFold(strings.TrimSpace(a.Serial), strings.TrimSpace(b.Serial))
}

// excusedBy says who excuses hidden storage: the policy, or the person who answers for it; empty where nothing does.
func excusedBy(h policyv1alpha1.HiddenStorage, in Input) string {
	named := func(name string) bool {
		return strings.EqualFold(name, h.PCIID) && h.PCIID != "" || name == h.Slot || strings.EqualFold(name, strings.TrimSpace(h.Serial))
	}
	if slices.ContainsFunc(in.Excused, func(name string) bool { return name != "" && named(name) }) {
		return ByPolicy
	}
	for i := range in.Attested {
		if Answers(&in.Attested[i], h) {
			return in.Attested[i].By
		}
	}
	return ""
}

// Answers says that an attestation is of this storage: by its serial number, without one by function and address,
// without these by its slot, else by its name.
func Answers(a *policyv1alpha1.AttestedHidden, h policyv1alpha1.HiddenStorage) bool {
	named := key(h.Serial, h.Address, h.PCIID, h.Slot, h.Name)
	return named[1] != "" && named == key(a.Serial, a.Address, a.PCIID, a.Slot, a.Name)
}

func key(serial, address, id, slot, name string) [2]string {
	switch {
	case policyv1alpha1.DiskIdentifies(serial):
		return [2]string{"serial", strings.ToLower(strings.TrimSpace(serial))}
	case address != "":
		return [2]string{"address", address + " " + id}
	case slot != "":
		return [2]string{"slot", slot}
	}
	return [2]string{"name", name}
}

// Named says that a person means this storage by a word: its serial number, address, slot or name.
func Named(h policyv1alpha1.HiddenStorage, word string) bool {
	return word != "" && (strings.EqualFold(word, strings.TrimSpace(h.Serial)) || word == h.Address || word == h.Slot || word == h.Name)
}
