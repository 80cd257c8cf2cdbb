// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe/drive"
)

// medium is something that may hold data although the kernel shows no disk that could be erased. It is refused, and fails a wipe.
type medium struct {
	info    policyv1alpha1.BlockDevice
	verdict Verdict
	// sleeps says that a sanitize runs in the drive, and that the kernel shows its capacity when that has ended.
	sleeps bool
}

var errHidden = errors.New("the kernel shows no disk for it")

func refusedMedium(info policyv1alpha1.BlockDevice, transport, reason string) medium {
	info.Path, info.Transport = "/dev/"+info.Name, transport
	info.Content, info.ContentFound = policyv1alpha1.ContentUnreadable, reason
	return medium{info: info, verdict: Verdict{Standing: DiskRefused, Transport: transport, Reason: reason}}
}

// hiddenMedia lists NVDIMMs without a disk, NVMe drives with namespaces that are attached nowhere, and disks without a capacity.
func (h *Host) hiddenMedia() []medium {
	return slices.Concat(h.nvdimms(), h.detached(), h.unusable())
}

// nvdimms lists persistent memory where no disk shows it: it is not configured, or is used as memory. A disk of it is judged as others.
func (h *Host) nvdimms() (media []medium) {
	disks, _ := h.sys().List("sys/block") // an error shows where disks are read
	if slices.ContainsFunc(disks, func(name string) bool { return strings.HasPrefix(name, "pmem") }) {
		return nil
	}
	devices, _ := h.sys().List("sys/bus/nd/devices") // none is an answer: there is no persistent memory
	for _, name := range devices {
		if strings.HasPrefix(name, "nmem") {
			info := policyv1alpha1.BlockDevice{Name: name, Serial: h.sys().Word("sys/bus/nd/devices/" + name + "/nfit/serial")}
			media = append(media, refusedMedium(info, "nvdimm", "it is persistent memory that no disk shows; erase it in the BIOS or with ndctl"))
		}
	}
	return media
}

// detached lists local NVMe controllers with namespaces that no controller of this machine shows. Controllers of one drive count together.
func (h *Host) detached() (media []medium) {
	if h.Namespaces == nil {
		return nil
	}
	controllers, _ := h.sys().List("sys/class/nvme") // an error shows where disks are read
	type subsystem struct {
		name              string
		allocated, active []uint32
		silent            error
	}
	var drives []*subsystem
	byName := map[string]*subsystem{}
	for _, controller := range controllers {
		base := "sys/class/nvme/" + controller
		if h.sys().Word(base+"/transport") != "pcie" {
			continue
		}
		id := h.sys().Word(base + "/subsysnqn")
		if id == "" {
			id = controller
		}
		s := byName[id]
		if s == nil {
			s = &subsystem{name: controller}
			byName[id], drives = s, append(drives, s)
		}
		allocated, active, err := h.Namespaces(controller)
		if errors.Is(err, drive.ErrActiveUnknown) {
			err = nil // such a drive hides no namespace
		}
		s.allocated, s.active = append(s.allocated, allocated...), append(s.active, active...)
		s.silent = errors.Join(s.silent, err)
	}
	for _, s := range drives {
		slices.Sort(s.allocated)
		reason := drive.Detached(slices.Compact(s.allocated), s.active)
		if s.silent != nil {
			reason = fmt.Sprintf("the drive did not say whether it has namespaces that are attached nowhere: %v", s.silent)
		}
		if reason != "" {
			base := "sys/class/nvme/" + s.name
			info := policyv1alpha1.BlockDevice{Name: s.name, Model: h.sys().Word(base + "/model"), Serial: h.sys().Word(base + "/serial"),
				Firmware: h.sys().Word(base + "/firmware_rev")}
			media = append(media, refusedMedium(info, "nvme/pcie", reason))
		}
	}
	return media
}

// unusable lists fixed disks for which the kernel shows no capacity: they do not start, or have a format that the kernel does not know.
func (h *Host) unusable() (media []medium) {
	names, _ := h.sys().List("sys/block") // an error shows where disks are read
	for _, name := range names {
		dir := path.Join("sys/block", name)
		fixed := noDisk(name) == "" && h.sys().Exists(dir+"/device") && h.sys().Word(dir+"/hidden") != "1" && h.sys().Word(dir+"/removable") == "0"
		if !fixed || h.sys().Word(dir+"/size") != "0" {
			continue
		}
		info := policyv1alpha1.BlockDevice{Name: name, Model: h.sys().Model(dir), Serial: h.sys().Serial(dir),
			WWID: h.sys().WWID(dir)}
		if verdict := h.judge(name); verdict.Sanitizing {
			asleep := refusedMedium(info, verdict.Transport, sanitizes)
			asleep.verdict, asleep.sleeps = verdict, true
			media = append(media, asleep)
			continue
		}
		media = append(media, refusedMedium(info, transportOf(h.facts(name)),
			"the kernel shows no capacity for it: it does not start, or its format is not known; replace it"))
	}
	return media
}
