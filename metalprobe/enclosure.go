// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"path"
	"regexp"
	"strings"
)

// internalEnclosures are SES devices that are known to be backplanes within a server, by vendor and model: those of Dell (BP13G+EXP and
// newer), those of HPE (ServBP and Smart Adapter), and those that an adapter of Broadcom makes up for the disks at its own ports. Every
// other one may be a shelf of disks that other hosts reach as well.
var internalEnclosures = []struct{ vendor, model *regexp.Regexp }{
	{regexp.MustCompile(`^(DP|DELL)$`), regexp.MustCompile(`^BP`)},
	{regexp.MustCompile(`^HPE?$`), regexp.MustCompile(`ServBP|^Smart Adapter`)},
	{regexp.MustCompile(`^(LSI|BROADCOM)$`), regexp.MustCompile(`^VirtualSES`)},
}

// component finds where an SES enclosure says that a disk sits: the number of the enclosure, and the name of the bay. Both are
// empty for a disk in no enclosure.
func (h *Host) component(name string) (enclosure, bay string) {
	device := h.resolve(h.resolve("sys/block/"+name) + "/device")
	entries, _ := h.list(device) // none is an answer: the kernel names no enclosure
	for _, entry := range entries {
		place, found := strings.CutPrefix(entry, "enclosure_device:")
		if !found {
			continue
		}
		return path.Base(path.Dir(h.resolve(device + "/" + entry))), place
	}
	return "", ""
}

// foreignEnclosure names the enclosure of a disk where that is not known to be a part of this machine.
func (h *Host) foreignEnclosure(name string) string {
	enclosure, bay := h.component(name)
	if bay == "" {
		return ""
	}
	device := "sys/class/enclosure/" + enclosure + "/device/"
	vendor, model := h.word(device+"vendor"), h.word(device+"model")
	for _, known := range internalEnclosures {
		if known.vendor.MatchString(vendor) && known.model.MatchString(model) {
			return ""
		}
	}
	return strings.TrimSpace(strings.Join([]string{vendor, model, enclosure}, " ")) + " (" + bay + ")"
}
