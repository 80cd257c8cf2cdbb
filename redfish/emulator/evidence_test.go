// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEachProfileNamesItsEvidence(t *testing.T) {
	for _, name := range ProfileNames() {
		if e := profileEvidence[name]; e.tree == "" && e.documents == "" {
			t.Errorf("profile %s follows neither a tree nor a document: name one in profileEvidence, or delete the profile", name)
		}
	}
	if len(profileEvidence) != len(ProfileNames()) {
		t.Errorf("there is evidence for %d profiles, and there are %d", len(profileEvidence), len(ProfileNames()))
	}
}

// shown are the fields of a profile that a tree can show; those that it does not show are left out.
func shown(t *Tree) map[string]any {
	system, service, manager := t.doc(t.hosts[0].uri), t.doc(root), t.doc(t.managed.uri)
	boot, p := object(system, "Boot"), &t.profile
	facts := map[string]any{
		"SystemID": t.hosts[0].id, "ManagerID": p.ManagerID, "Manufacturer": text(system, "Manufacturer"), "Model": text(system, "Model"),
		"FirmwareVersion": p.FirmwareVersion, "TrailingSlash": p.TrailingSlash, "UUID": system["UUID"] != nil,
		"NoSystemNICs": linkOf(system, "EthernetInterfaces") == "", "ResetTypes": sorted(p.ResetTypes),
		"ResetByActionInfo": object(system, "Actions", "#ComputerSystem.Reset")["ResetType@Redfish.AllowableValues"] == nil,
		"ETags":             text(system, "@odata.etag") != "", "ManagerPower": manager["PowerState"] != nil,
		"IndicatorLED": system["IndicatorLED"] != nil, "LocationIndicatorActive": system["LocationIndicatorActive"] != nil,
		"SettingsID": filepath.Base("/" + t.hosts[0].settings), "Expand": p.Expand,
	}
	_, facts["HTTPBootURI"] = boot["HttpBootUri"]
	facts["MediaOnManager"], facts["MediaByPatch"] = t.slotIDs(manager), slices.ContainsFunc(t.media, func(s treeSlot) bool { return s.insert == "" })
	facts["MediaOnSystem"] = t.slotIDs(system)
	for name, property := range map[string]string{"BootTargets": "BootSourceOverrideTarget", "BootEnabled": "BootSourceOverrideEnabled"} {
		if listed := words(boot[property+"@Redfish.AllowableValues"]); listed != nil {
			facts[name] = sorted(listed)
		}
	}
	if seconds := number(t.member(service, "SessionService"), "SessionTimeout"); seconds > 0 {
		facts["SessionTimeout"] = seconds
	}
	if accounts := t.member(service, "AccountService"); accounts["AccountLockoutThreshold"] != nil {
		facts["LockoutAfter"] = p.LockoutAfter
	}
	return facts
}

// slotIDs are the slots of virtual media that a resource links, with their types.
func (t *Tree) slotIDs(owner doc) []MediaSlot {
	var slots []MediaSlot
	_, bodies := t.members(t.member(owner, "VirtualMedia"))
	for _, body := range bodies {
		slots = append(slots, MediaSlot{ID: text(body, "Id"), Types: words(body["MediaTypes"])})
	}
	return slots
}

// linkedMedia are the slots that the system leads to.
func (p *Profile) linkedMedia() []MediaSlot {
	if p.Media.SystemLinksManager {
		return p.Media.OnManager
	}
	return p.Media.OnSystem
}

func (p *Profile) facts() map[string]any {
	return map[string]any{
		"SystemID": p.SystemID, "ManagerID": p.ManagerID, "Manufacturer": p.Manufacturer, "Model": p.Model,
		"FirmwareVersion": p.FirmwareVersion, "TrailingSlash": p.TrailingSlash, "UUID": p.UUID == Present, "NoSystemNICs": p.NoSystemNICs,
		"ResetTypes": sorted(p.ResetTypes), "ResetByActionInfo": p.ResetByActionInfo, "ETags": p.ETags != ETagsNone,
		"ManagerPower": p.ManagerPower, "IndicatorLED": p.LED == LEDIndicator || p.LED == LEDBoth,
		"LocationIndicatorActive": p.LED == LEDLocation || p.LED == LEDBoth,
		"SettingsID":              filepath.Base("/" + p.SettingsID), "Expand": p.Expand, "HTTPBootURI": p.HTTPBootURI,
		"BootTargets": sorted(p.BootTargets), "BootEnabled": sorted(p.BootEnabled), "SessionTimeout": p.SessionTimeout.Seconds(),
		"LockoutAfter": p.LockoutAfter, "MediaOnManager": p.Media.OnManager, "MediaOnSystem": p.linkedMedia(), "MediaByPatch": p.Media.ByPatch,
	}
}

func sorted[T ~string](words []T) []T { return slices.Sorted(slices.Values(words)) }

func TestAProfileAgreesWithItsTree(t *testing.T) {
	folder := os.Getenv("METALAW_REDFISH_TREES")
	if folder == "" {
		t.Skip("METALAW_REDFISH_TREES is not set: set it to a folder with captured Redfish trees (*.tar.gz) to compare the profiles with them")
	}
	for _, profile := range allProfiles() {
		e := profileEvidence[profile.Name]
		if e.tree == "" {
			continue
		}
		t.Run(profile.Name, func(t *testing.T) {
			tree, err := ReadTree(filepath.Join(folder, e.tree+".tar.gz"))
			if err != nil {
				t.Fatal(err)
			}
			has := profile.facts()
			for name, want := range shown(tree) {
				diff := cmp.Diff(want, has[name])
				switch _, excused := e.but[name]; {
				case diff != "" && !excused:
					t.Errorf("%s differs from the tree, - tree, + profile:\n%s", name, diff)
				case diff == "" && excused:
					t.Errorf("%s agrees with the tree: take its excuse away", name)
				}
			}
		})
	}
}
