// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"errors"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/metalaw/metalaw/metalprobe/kernel"
)

// Read gathers what the kernel shows of storage on the PCI bus. active asks an NVMe controller which namespaces it
// shows; it may be nil. disk says whether a block device may be a disk.
func Read(tree kernel.Tree, active func(controller string) ([]uint32, error),
	disk func(name string) bool) (facts Facts, err error) {
	functions, err := tree.PCIDevices()
	all, failed := tree.List("sys/block")
	err = errors.Join(err, failed)
	var places []string
	for _, name := range all {
		if disk(name) && tree.Number("sys/block/"+name+"/size") > 0 {
			places = append(places, tree.Resolve("sys/block/"+name)+"/")
		}
	}
	for _, f := range functions {
		function := Function{Address: f.Address, Vendor: f.VendorID, Device: f.ProductID, Class: f.Class,
			Driver: f.Driver,
			Name:   strings.TrimSpace(f.Vendor + " " + f.Product), Slot: tree.PCISlot(f.Address)}
		for _, place := range places {
			if strings.Contains(place, "/"+f.Address+"/") {
				function.Disks++
			}
		}
		facts.Functions = append(facts.Functions, function)
	}
	controllers, failed := tree.List("sys/class/nvme")
	err = errors.Join(err, failed)
	for _, name := range controllers {
		if tree.Word("sys/class/nvme/"+name+"/transport") == "pcie" {
			facts.Controllers = append(facts.Controllers, controller(tree, name, all, active))
		}
	}
	return facts, err
}

// controller reads what the kernel and the drive say of one NVMe controller. disks are the entries of sys/block.
func controller(tree kernel.Tree, name string, disks []string, active func(string) ([]uint32, error)) Controller {
	base := "sys/class/nvme/" + name
	c := Controller{Name: name, Address: kernel.PCIAddress(tree.Resolve(base)), Model: tree.Word(base + "/model"),
		Serial: tree.Word(base + "/serial"), State: tree.Word(base + "/state"), Kind: tree.Word(base + "/cntrltype")}
	for _, disk := range disks {
		if strings.HasPrefix(disk, "nvme") && reaches(tree, name, disk) && shows(tree, disk) {
			c.Shown = append(c.Shown, namespaceOf(tree, disk))
		}
	}
	if active == nil {
		c.Unread = "it was not asked"
		return c
	}
	found, err := active(name)
	c.Active = found
	if err != nil {
		c.Unread = err.Error()
	}
	return c
}

// multipathPath matches a path of native multipath: nvme0c1n1 is one of nvme0n1.
var multipathPath = regexp.MustCompile(`^(nvme\d+)c\d+(n\d+)$`)

// shows says that a namespace can be read and written. Linux hides the disk of one whose format it does not know, and
// the paths of native multipath, whose disk it shows by itself.
func shows(tree kernel.Tree, disk string) bool {
	visible := func(name string) bool {
		return tree.Exists("sys/block/"+name) && tree.Word("sys/block/"+name+"/hidden") != "1"
	}
	if visible(disk) {
		return true
	}
	parts := multipathPath.FindStringSubmatch(disk)
	return len(parts) > 2 && visible(parts[1]+parts[2])
}

// reaches says that a disk, or a hidden path to one, hangs below a controller.
func reaches(tree kernel.Tree, controller, disk string) bool {
	place := tree.Resolve("sys/block/" + disk)
	return slices.Contains(strings.Split(path.Dir(place), "/"), controller) ||
		tree.Resolve(place+"/device") == tree.Resolve("sys/class/nvme/"+controller)
}

// namespaceOf is the number of the namespace that a disk shows. A kernel that does not tell numbers them in their
// order.
func namespaceOf(tree kernel.Tree, disk string) uint32 {
	number := tree.Word("sys/block/" + disk + "/nsid")
	if number == "" {
		number = disk[strings.LastIndex(disk, "n")+1:]
	}
	nsid, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(nsid)
}
