// SPDX-License-Identifier: Apache-2.0

// Package drives reads the drives of a machine out of what its BMC shows of its storage. It is pure: the port in
// package redfish asks the BMC.
package drives

import (
	"slices"
	"strings"
)

// MaxDrives bounds how many drives one machine may list.
const MaxDrives = 512

// List is what a BMC says of the drives of one machine.
type List struct {
	// Drives are those that count: enabled, with a capacity and a serial number, neither USB nor virtual. It is empty
	// where the BMC has no list of drives, which says nothing of the machine.
	Drives []Drive
	// Left says which other drives the BMC lists and why each does not count; empty where all count.
	Left string
}

// Drive is a drive that a BMC lists.
type Drive struct {
	// Name and Slot are the BMC's words.
	Name, Slot    string
	Model         string
	Serial        string
	CapacityBytes int64
	// Protocol is how it is attached, in the words of Redfish; empty where the BMC does not say.
	Protocol string
	// DurableNames are its world-wide names in lower case without punctuation.
	DurableNames []string
	// BehindVolume says that its adapter shows volumes: the machine sees a volume in its place.
	BehindVolume bool
	// Spare says, of a drive behind such an adapter, that no volume uses it.
	Spare bool
}

// Resource is one resource as the BMC gave it.
type Resource struct {
	URI string
	Raw []byte
}

// Adapter is one member of the storage of a system, with its drives and volumes.
type Adapter struct {
	Drives  []Resource
	Volumes []Resource
}

// Judge makes a list of what was read of all adapters.
func Judge(adapters []Adapter) List {
	var list List
	var left []string
	seen := map[string]bool{}
	for _, a := range adapters {
		volumes := readVolumes(a.Volumes)
		for _, r := range a.Drives {
			at := canonical(r.URI)
			if at != "" && seen[at] {
				continue
			}
			seen[at] = true
			d, why := readDrive(r, volumes)
			switch {
			case why == notOurs:
			case why != "":
				left = append(left, name(d)+": "+why)
			case len(list.Drives) < MaxDrives:
				list.Drives = append(list.Drives, d)
			}
		}
	}
	list.Left = clean(strings.Join(left, "; "), 900)
	return list
}

func name(d Drive) string {
	if d.Slot != "" {
		return d.Slot
	}
	return d.Name
}

// notOurs says of a drive that it is no storage of the machine: an empty bay, or what is not attached as a disk.
const notOurs = "-"

// readDrive reads a drive and says why it does not count; empty where it does.
func readDrive(r Resource, volumes volumeSet) (Drive, string) {
	body := decode(r.Raw)
	d := Drive{Name: body.first("Name", "Id"), Slot: slot(body), Model: clean(body.text("Model"), maxText),
		Serial: serial(body.text("SerialNumber")), CapacityBytes: body.number("CapacityBytes"),
		Protocol: clean(body.text("Protocol"), maxProtocol), DurableNames: durableNames(body)}
	if d.Name == "" {
		d.Name = clean(lastSegment(r.URI), maxText)
	}
	d.BehindVolume = volumes.shown
	state := body.text("Status", "State")
	standby := strings.HasPrefix(strings.ToLower(state), "standby")
	d.Spare = d.BehindVolume && (standby || hotSpare(body) || volumes.leavesOut(r.URI, body))
	switch {
	case strings.EqualFold(state, "Absent") || usb(r.URI, body) || virtual(body):
		return d, notOurs
	case state != "" && !strings.EqualFold(state, "Enabled") && !(standby && d.BehindVolume):
		return d, "its state is " + clean(state, maxProtocol)
	}
	lacks := d.lacks()
	return d, lacks
}

// lacks says what a drive lacks to count; empty where it lacks nothing.
func (d *Drive) lacks() string {
	switch {
	case d.Serial == "" && d.CapacityBytes == 0 && d.Model == "":
		return notOurs // an empty bay of a BMC that shows no state
	case d.Serial == "":
		return "it has no serial number"
	case d.CapacityBytes == 0:
		return "it has no capacity"
	}
	return ""
}

func usb(uri string, body doc) bool {
	if protocol := body.text("Protocol"); protocol != "" {
		return strings.EqualFold(protocol, "USB")
	}
	between := func(r rune) bool { return strings.ContainsRune("_ -.", r) }
	for _, word := range []string{lastSegment(uri), body.text("Id"), body.text("Name")} {
		if slices.Contains(strings.FieldsFunc(strings.ToUpper(word), between), "USB") {
			return true
		}
	}
	return false
}

// virtualKinds are the words after "virtual" in the names of virtual media.
var virtualKinds = []string{"cd", "dvd", "hdisk", "hd ", "floppy", "media", "usb", "flash"}

// virtual knows the virtual media that some BMCs list among the drives, such as AMI's "Virtual HDisk Device".
func virtual(body doc) bool {
	for _, word := range []string{body.text("Model"), body.text("Name")} {
		_, after, found := strings.Cut(strings.ToLower(word), "virtual")
		after = strings.TrimLeft(after, " _-")
		begins := func(kind string) bool { return strings.HasPrefix(after, kind) }
		if found && slices.ContainsFunc(virtualKinds, begins) {
			return true
		}
	}
	return false
}

func hotSpare(body doc) bool {
	kind := body.text("HotspareType")
	return kind != "" && !strings.EqualFold(kind, "None")
}

// slot is where the drive sits, in the words of the BMC.
func slot(body doc) string {
	for _, at := range append([]doc{body.object("PhysicalLocation")}, body.objects("Location")...) {
		part := at.object("PartLocation")
		ordinal := ""
		if n := part.text("LocationOrdinalValue"); n != "" && part.text("LocationType") != "" {
			ordinal = part.text("LocationType") + " " + n
		}
		for _, label := range []string{part.text("ServiceLabel"), at.text("Info"), ordinal} {
			if label = clean(label, maxText); label != "" {
				return label
			}
		}
	}
	return ""
}

// serial is a serial number; a placeholder is none.
func serial(raw string) string {
	s := clean(raw, maxText)
	switch strings.ToLower(s) {
	case "none", "null", "n/a", "na", "unknown", "not available", "not specified", "not applicable",
		"to be filled by o.e.m.", "default string":
		return ""
	}
	if s != "" && strings.Trim(s, s[:1]) == "" && !isLetter(s[0]) {
		return ""
	}
	return s
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// maxNames bounds how many world-wide names of one drive are kept.
const maxNames = 16

func durableNames(body doc) []string {
	var names []string
	for _, id := range body.objects("Identifiers") {
		n := durable(id.text("DurableName"))
		if n != "" && len(names) < maxNames && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// durable is a world-wide name in lower case without punctuation and without the word for its form.
func durable(raw string) string {
	s := strings.ToLower(strings.TrimSpace(raw))
	for _, form := range []string{"urn:uuid:", "eui.", "naa.", "uuid.", "0x"} {
		s = strings.TrimPrefix(s, form)
	}
	s = strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, s)
	if len(s) < 8 || strings.Trim(s, s[:1]) == "" {
		return ""
	}
	return s[:min(len(s), maxText)]
}
