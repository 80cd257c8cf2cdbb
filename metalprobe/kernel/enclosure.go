// SPDX-License-Identifier: Apache-2.0

package kernel

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

// Component finds where an SES enclosure says that a disk sits: the number of the enclosure, and the name of the bay. Both are
// empty for a disk in no enclosure.
func (t Tree) Component(name string) (enclosure, bay string) {
	device := t.Resolve(t.Resolve("sys/block/"+name) + "/device")
	entries, _ := t.List(device) // none is an answer: the kernel names no enclosure
	for _, entry := range entries {
		place, found := strings.CutPrefix(entry, "enclosure_device:")
		if !found {
			continue
		}
		return path.Base(path.Dir(t.Resolve(device + "/" + entry))), place
	}
	return "", ""
}

// ForeignEnclosure names the enclosure of a disk where that is not known to be a part of this machine. Without the driver ses the
// kernel shows that an adapter reaches an enclosure, but not which disks are in it: then each disk of that adapter may be.
func (t Tree) ForeignEnclosure(name string) string {
	if enclosure, bay := t.Component(name); bay != "" {
		return t.unlessInternal("sys/class/enclosure/"+enclosure+"/device", enclosure, bay)
	}
	devices, _ := t.List("sys/bus/scsi/devices") // none is an answer: the machine has no SCSI devices
	for part := range strings.SplitSeq(t.Resolve("sys/block/"+name), "/") {
		if !scsiHost.MatchString(part) {
			continue
		}
		for _, device := range devices {
			dir := "sys/bus/scsi/devices/" + device
			ours := strings.HasPrefix(device, strings.TrimPrefix(part, "host")+":")
			if !ours || t.Word(dir+"/type") != scsiEnclosure || t.Exists("sys/class/enclosure/"+device) {
				continue
			}
			if foreign := t.unlessInternal(dir, device, "bay not known"); foreign != "" {
				return foreign
			}
		}
	}
	return ""
}

var scsiHost = regexp.MustCompile(`^host\d+$`)

// scsiEnclosure is the type of SCSI devices that manage enclosures.
const scsiEnclosure = "13"

// unlessInternal names an enclosure and a bay; empty for a backplane that is known.
func (t Tree) unlessInternal(device, enclosure, bay string) string {
	vendor, model := t.Word(device+"/vendor"), t.Word(device+"/model")
	for _, known := range internalEnclosures {
		if known.vendor.MatchString(vendor) && known.model.MatchString(model) {
			return ""
		}
	}
	return strings.Join(strings.Fields(vendor+" "+model+" "+enclosure), " ") + " (" + bay + ")"
}
