// SPDX-License-Identifier: Apache-2.0

// Package hidden finds storage that a machine has and that its kernel shows as no disk. Read gathers what the kernel
// and the drives say, and Find judges that.
package hidden

import (
	"fmt"
	"slices"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// Facts is what the kernel shows of the storage on the PCI bus.
type Facts struct {
	Functions   []Function
	Controllers []Controller
}

// Function is a PCI function. The numbers are in hex without a prefix.
type Function struct {
	Address, Vendor, Device, Class, Driver string
	// Slot is the name of its slot, where the firmware tells.
	Slot string
	// Name is what the list of PCI products calls it, where the image has that list.
	Name string
	// Disks is how many disks with a capacity hang below the function.
	Disks int
}

// Controller is an NVMe controller on PCIe.
type Controller struct {
	// Name is the kernel's name, such as nvme1; Address is that of its function.
	Name, Address string
	Model, Serial string
	// State and Kind are the kernel's words: a live controller is "live", one for disks has kind "io".
	State, Kind string
	// Active are the namespaces that the drive shows. Unread says why they are not known.
	Active []uint32
	Unread string
	// Shown are the namespaces for which the kernel shows a disk.
	Shown []uint32
}

// Find lists the storage that no disk shows, in the order of the facts.
func Find(facts Facts) []policyv1alpha1.HiddenStorage {
	var found []policyv1alpha1.HiddenStorage
	add := func(f Function, name, model, serial, reason string) {
		if reason != "" {
			found = append(found, policyv1alpha1.HiddenStorage{Source: policyv1alpha1.HiddenByAgent,
				Address: f.Address, PCIID: f.id(),
				Slot: f.Slot, Name: name, Model: model, Serial: serial, Reason: reason})
		}
	}
	for _, f := range facts.Functions {
		if f.storage() {
			add(f, f.kind(), f.Name, "", f.hides(facts.Controllers))
		}
	}
	for _, c := range facts.Controllers {
		at := slices.IndexFunc(facts.Functions, func(f Function) bool { return f.Address == c.Address })
		f := Function{Address: c.Address}
		if at >= 0 {
			f = facts.Functions[at]
		}
		add(f, c.Name, c.Model, c.Serial, c.hides())
	}
	return found
}

// id is vendor and device, as lists of PCI products write them.
func (f Function) id() string {
	if f.Vendor == "" && f.Device == "" {
		return ""
	}
	return f.Vendor + ":" + f.Device
}

// storage says that the function is a controller of mass storage.
func (f Function) storage() bool { return strings.HasPrefix(f.Class, "01") }

// kinds names the controllers of mass storage by class and subclass, as the PCI list does.
var kinds = map[string]string{
	"0100": "SCSI controller", "0101": "IDE controller", "0102": "floppy controller", "0104": "RAID controller",
	"0105": "ATA controller",
	"0106": "SATA controller", "0107": "SAS controller", "0108": "NVMe controller", "0109": "UFS controller",
}

func (f Function) kind() string {
	if len(f.Class) >= 4 && kinds[f.Class[:4]] != "" {
		return kinds[f.Class[:4]]
	}
	return "storage controller"
}

// hides says why a storage function may hide disks, and what to do; empty where it hides none.
func (f Function) hides(controllers []Controller) string {
	const excuse = ", or excuse it by its PCI id"
	switch {
	case f.Harmless() != "":
		return ""
	case f.Driver == "" && f.vmd():
		return "Intel VMD is on and no driver serves it, so the NVMe drives behind it are not shown; switch VMD " +
			"off in the BIOS" + excuse
	case f.Driver == "":
		return "no driver serves it, so its disks are not shown; boot an image that has the driver, remove the " +
			f.kind() + excuse
	case slices.Contains(stubs, f.Driver):
		return fmt.Sprintf("the driver %s keeps it for other programs, so its disks are not shown; boot an image "+
			"without that%s", f.Driver, excuse)
	case f.Driver == "nvme" && !slices.ContainsFunc(controllers,
		func(c Controller) bool { return c.Address == f.Address }):
		return "its driver shows no NVMe controller: the drive does not start; power-cycle the machine, or " +
			"replace the drive" + excuse
	case f.Disks == 0 && slices.Contains(raidDrivers, f.Driver):
		return fmt.Sprintf("its driver %s shows no volume; drives may sit behind it: make volumes of them or "+
			"remove them, "+
			"and wipe again%s", f.Driver, excuse)
	}
	return ""
}

// hides says why an NVMe controller hides a namespace, and what to do; empty where it hides none.
func (c Controller) hides() string {
	if c.Kind == "admin" || c.Kind == "discovery" {
		return ""
	}
	var missing []string
	for _, nsid := range c.Active {
		if !slices.Contains(c.Shown, nsid) {
			missing = append(missing, fmt.Sprint(nsid))
		}
	}
	const act = "; power-cycle the machine, or replace the drive"
	switch {
	case c.State != "" && c.State != "live":
		return fmt.Sprintf("the controller is in state %q, so what it holds was not reached%s", c.State, act)
	case len(missing) > 0:
		return fmt.Sprintf("the kernel shows no disk for its namespace %s: it has a format or a command set that "+
			"the kernel does not know; "+
			"format it with nvme-cli, or replace the drive", strings.Join(missing, ", "))
	case c.Unread != "" && len(c.Shown) == 0:
		return fmt.Sprintf("the kernel shows no disk for it, and the drive did not say whether it has namespaces "+
			"(%s)%s", c.Unread, act)
	}
	return ""
}
