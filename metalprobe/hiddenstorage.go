// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"errors"
	"strconv"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe/hidden"
	"github.com/metalaw/metalaw/metalprobe/kernel"
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

// hiddenFacts reads what the kernel shows of storage on the PCI bus, and asks NVMe drives for their namespaces.
func (h *Host) hiddenFacts() (facts hidden.Facts, err error) {
	functions, err := h.sys().PCIDevices()
	names, failed := h.sys().List("sys/block")
	err = errors.Join(err, failed)
	var places []string
	for _, name := range names {
		if noDisk(name) == "" && h.sys().Number("sys/block/"+name+"/size") > 0 {
			places = append(places, h.sys().Resolve("sys/block/"+name)+"/")
		}
	}
	for _, f := range functions {
		function := hidden.Function{Address: f.Address, Vendor: f.VendorID, Device: f.ProductID, Class: f.Class, Driver: f.Driver,
			Name: strings.TrimSpace(f.Vendor + " " + f.Product), Slot: h.pciSlot(f.Address)}
		for _, place := range places {
			if strings.Contains(place, "/"+f.Address+"/") {
				function.Disks++
			}
		}
		facts.Functions = append(facts.Functions, function)
	}
	controllers, failed := h.sys().List("sys/class/nvme")
	err = errors.Join(err, failed)
	for _, name := range controllers {
		base := "sys/class/nvme/" + name
		if h.sys().Word(base+"/transport") == "pcie" {
			facts.Controllers = append(facts.Controllers, h.hiddenController(name, base, names))
		}
	}
	return facts, err
}

// hiddenController reads what the kernel and the drive say of one NVMe controller. disks are the entries of sys/block.
func (h *Host) hiddenController(name, base string, disks []string) hidden.Controller {
	c := hidden.Controller{Name: name, Address: kernel.PCIAddress(h.sys().Resolve(base)), Model: h.sys().Word(base + "/model"),
		Serial: h.sys().Word(base + "/serial"), State: h.sys().Word(base + "/state"), Kind: h.sys().Word(base + "/cntrltype")}
	for _, disk := range disks {
		if isNVMe(disk) && h.reaches(name, disk) {
			c.Shown = append(c.Shown, h.namespaceOf(disk))
		}
	}
	if h.Active == nil {
		c.Unread = "it was not asked"
		return c
	}
	active, err := h.Active(name)
	c.Active = active
	if err != nil {
		c.Unread = err.Error()
	}
	return c
}

// reaches says that a disk, or a hidden path to one, hangs below a controller.
func (h *Host) reaches(controller, disk string) bool {
	place := h.sys().Resolve("sys/block/" + disk)
	return strings.Contains(place, "/"+controller+"/") || h.sys().Resolve(place+"/device") == h.sys().Resolve("sys/class/nvme/"+controller)
}

// namespaceOf is the number of the namespace that a disk shows. A kernel that does not tell numbers the first disk of a drive as 1.
func (h *Host) namespaceOf(disk string) uint32 {
	number := h.sys().Word("sys/block/" + disk + "/nsid")
	if number == "" {
		_, number, _ = cutLast(disk, "n")
	}
	nsid, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(nsid)
}

func cutLast(text, mark string) (before, after string, found bool) {
	if at := strings.LastIndex(text, mark); at >= 0 {
		return text[:at], text[at+len(mark):], true
	}
	return text, "", false
}

// pciSlot names the slot of a PCI function; empty where the firmware names none.
func (h *Host) pciSlot(address string) string {
	device, _, _ := strings.Cut(address, ".")
	slots, _ := h.sys().List("sys/bus/pci/slots") // none is an answer: the firmware names no slots
	for _, slot := range slots {
		if device != "" && h.sys().Word("sys/bus/pci/slots/"+slot+"/address") == device {
			return slot
		}
	}
	return ""
}

// joinHidden adds to a list of hidden storage what it does not hold yet: what was hidden once in a wipe was not erased by it.
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
