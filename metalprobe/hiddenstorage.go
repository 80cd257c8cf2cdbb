// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe/hidden"
)

// MaxHidden bounds what a report lists of storage that no disk shows.
const MaxHidden = 256

// Hidden lists the storage of this machine that no disk shows. It is not known where a part of /sys could not be read.
func (h *Host) Hidden(context.Context) (found []policyv1alpha1.HiddenStorage, known bool) {
	facts, err := h.hiddenFacts()
	return hidden.Find(facts), err == nil && h.sys().Exists("sys/bus")
}

// hiddenStorage is the collector of what no disk shows.
func (h *Host) hiddenStorage(data *Data) error {
	facts, err := h.hiddenFacts()
	data.Hidden, data.HiddenKnown = hidden.Find(facts), err == nil && h.sys().Exists("sys/bus")
	return err
}

// hiddenFacts reads what the kernel shows, and asks NVMe drives for their namespaces.
func (h *Host) hiddenFacts() (hidden.Facts, error) {
	var active func(string) ([]uint32, error)
	if h.Namespaces != nil {
		active = func(controller string) ([]uint32, error) {
			_, shown, err := h.Namespaces(controller)
			return shown, err
		}
	}
	return hidden.Read(h.sys(), active, func(name string) bool { return noDisk(name) == "" })
}

// joinHidden adds to a list of hidden storage what it does not hold yet: what was hidden once in a wipe was not erased
// by it.
func joinHidden(list, more []policyv1alpha1.HiddenStorage) []policyv1alpha1.HiddenStorage {
	key := func(s policyv1alpha1.HiddenStorage) string {
		return strings.Join([]string{s.Address, s.PCIID, s.Serial}, " ")
	}
	known := map[string]bool{}
	for _, s := range list {
		known[key(s)] = true
	}
	for _, s := range more {
		if !known[key(s)] {
			list = append(list, s)
		}
	}
	b := bounds{trim: true}
	b.hidden("hidden", &list)
	return list
}
