// SPDX-License-Identifier: Apache-2.0

package drives

import "strings"

// volumeSet is what the volumes of one adapter say of its drives.
type volumeSet struct {
	// shown says that the adapter shows volumes in place of drives.
	shown bool
	// linked says that at least one of them names the drives that it uses; used are those, canonical.
	linked bool
	used   map[string]bool
	uris   map[string]bool
}

// readVolumes reads the volumes of an adapter. A raw device of one drive, and the namespace of an NVMe drive, are no
// volumes: the machine sees the drive itself.
func readVolumes(volumes []Resource) volumeSet {
	set := volumeSet{used: map[string]bool{}, uris: map[string]bool{}}
	for _, r := range volumes {
		body := decode(r.Raw)
		users := body.object("Links").links("Drives")
		if !combines(body, len(users)) {
			continue
		}
		set.shown = true
		set.uris[canonical(r.URI)] = true
		for _, uri := range users {
			set.linked = true
			set.used[canonical(uri)] = true
		}
	}
	return set
}

// combines says that the machine sees the volume in place of its drives.
func combines(body doc, drives int) bool {
	raid, kind := body.text("RAIDType"), body.text("VolumeType")
	switch {
	case drives > 1:
		return true
	case body.object("NVMeNamespaceProperties") != nil:
		return false
	case raid != "":
		return !strings.EqualFold(raid, "None")
	}
	return kind != "" && !strings.EqualFold(kind, "RawDevice")
}

// leavesOut says that no volume uses a drive. Where neither side names the other it is not known.
func (v volumeSet) leavesOut(uri string, drive doc) bool {
	users := drive.object("Links").links("Volumes")
	for _, user := range users {
		if v.uris[canonical(user)] {
			return false
		}
	}
	return (v.linked || len(users) > 0) && !v.used[canonical(uri)]
}
