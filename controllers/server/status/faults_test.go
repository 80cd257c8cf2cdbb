// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

var (
	faultsNow    = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	faultsBefore = faultsNow.Add(-time.Hour)
)

func part(fault v1alpha1.HardwareFault, name, detail, version string, since time.Time) v1alpha1.FaultyPart {
	return v1alpha1.FaultyPart{Fault: fault, Name: name, Detail: detail, AgentVersion: version, Since: metav1.NewTime(since)}
}

func parts(all ...v1alpha1.FaultyPart) []v1alpha1.FaultyPart { return all }

func TestPartsThatTheBMCReports(t *testing.T) {
	psu := part("Health", "PSU1", "the BMC reports it as critical", "", faultsBefore)
	for name, c := range map[string]struct {
		known           []v1alpha1.FaultyPart
		spoke, critical bool
		parts           []redfish.HealthPart
		want            []v1alpha1.FaultyPart
	}{
		"a critical part is named": {nil, true, true, []redfish.HealthPart{{Name: "PSU1", Hardware: true}},
			parts(part("Health", "PSU1", "the BMC reports it as critical", "", faultsNow))},
		"one that was known keeps its time": {parts(psu), true, true, []redfish.HealthPart{{Name: "PSU1", Hardware: true}}, parts(psu)},
		"what is no hardware is left out": {nil, true, true, []redfish.HealthPart{{Name: "PSU1", Hardware: true}, {Name: "Intrusion"}},
			parts(part("Health", "PSU1", "the BMC reports it as critical", "", faultsNow))},
		"a machine without a named part is faulty": {nil, true, true, nil,
			parts(part("Health", "", "the BMC reports the machine as critical and names no part", "", faultsNow))},
		"a BMC that says nothing leaves what was known": {parts(psu), false, false, nil, parts(psu)},
		"good health ends it":                           {parts(psu), true, false, nil, nil},
		"what is tolerated is no fault":                 {nil, true, false, []redfish.HealthPart{{Name: "Intrusion"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := FaultyParts(Reported{Known: c.known, Now: faultsNow, Spoke: c.spoke, Critical: c.critical, Parts: c.parts})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// agentSaid is an inventory whose wipe is an hour older than its report, or a minute younger.
func agentSaid(wipe []policyv1alpha1.DiskWipe, younger bool, report ...policyv1alpha1.BlockDevice) *policyv1alpha1.ServerInventory {
	inv := &policyv1alpha1.ServerInventory{Report: &policyv1alpha1.ProbeReport{ReceivedAt: metav1.NewMicroTime(faultsBefore),
		Data: policyv1alpha1.ProbeData{Storage: report}}}
	if wipe != nil {
		at := faultsBefore.Add(-time.Hour)
		if younger {
			at = faultsBefore.Add(time.Minute)
		}
		inv.Wipe = &policyv1alpha1.WipeReport{UpdatedAt: metav1.NewMicroTime(at), Disks: wipe}
	}
	return inv
}

func TestDisksThatFailed(t *testing.T) {
	ended := metav1.NewTime(faultsBefore)
	wiped := func(state policyv1alpha1.DiskWipeState, change ...func(*policyv1alpha1.DiskWipe)) []policyv1alpha1.DiskWipe {
		d := policyv1alpha1.DiskWipe{Path: "/dev/sda", Serial: "D1", Slot: "bay 3", State: state, Message: "medium error"}
		for _, c := range change {
			c(&d)
		}
		return []policyv1alpha1.DiskWipe{d}
	}
	steps := func(result policyv1alpha1.EraseResult) func(*policyv1alpha1.DiskWipe) {
		return func(d *policyv1alpha1.DiskWipe) {
			d.Steps = []policyv1alpha1.EraseStep{{Method: "zero", Result: result}}
		}
	}
	unproven := func(d *policyv1alpha1.DiskWipe) {
		d.Verification = &policyv1alpha1.EraseVerification{Kind: policyv1alpha1.VerifiedZeros}
	}
	hung := func(d *policyv1alpha1.DiskWipe) { d.FinishedAt = &ended }
	disk := func(content policyv1alpha1.DiskContent) policyv1alpha1.BlockDevice {
		return policyv1alpha1.BlockDevice{Path: "/dev/sda", Serial: "D1", Slot: "bay 3", Content: content}
	}
	removable, remote := disk("Unreadable"), disk("Unreadable")
	removable.Removable, remote.Transport = true, "iscsi"
	failed := part("Disk", "D1", "/dev/sda bay 3 failed its erase: medium error", "", faultsNow)
	unread := part("Disk", "D1", "/dev/sda bay 3 cannot be read: no reason given", "", faultsNow)
	known := part("Disk", "D1", "whatever", "", faultsBefore)
	for name, c := range map[string]struct {
		known     []v1alpha1.FaultyPart
		inventory *policyv1alpha1.ServerInventory
		excused   bool
		want      []v1alpha1.FaultyPart
	}{
		"one whose erase failed":                          {nil, agentSaid(wiped("Failed", steps("Failed")), true, disk("Data")), false, parts(failed)},
		"one that was read back with data":                {nil, agentSaid(wiped("Failed", steps("Succeeded"), unproven), true, disk("Data")), false, parts(failed)},
		"one that hung":                                   {nil, agentSaid(wiped("Failed", hung), true, disk("Data")), false, parts(failed)},
		"one that the agent refused is not broken":        {nil, agentSaid(wiped("Failed"), true, disk("Data")), false, nil},
		"one without a method that the policy asks for":   {nil, agentSaid(wiped("Failed", steps("Unsupported"), hung), true, disk("Data")), false, nil},
		"one that was erased is not":                      {parts(known), agentSaid(wiped("Verified"), true, disk("Unreadable")), false, nil},
		"one that is tried again stays":                   {parts(known), agentSaid(wiped("Erasing"), true, disk("Data")), false, parts(known)},
		"one that is tried for the first time is not":     {nil, agentSaid(wiped("Erasing"), true, disk("Data")), false, nil},
		"one that a later report still has":               {nil, agentSaid(wiped("Failed", steps("Failed")), false, disk("Data")), false, parts(failed)},
		"one that a later report does not have":           {parts(known), agentSaid(wiped("Failed", steps("Failed")), false, policyv1alpha1.BlockDevice{Serial: "D2"}), false, nil},
		"one that the report cannot read":                 {nil, agentSaid(nil, false, disk("Unreadable")), false, parts(unread)},
		"one that was erased before and cannot be read":   {nil, agentSaid(wiped("Verified"), false, disk("Unreadable")), false, parts(unread)},
		"an unreadable disk that the policy leaves alone": {nil, agentSaid(nil, false, disk("Unreadable")), true, nil},
		"an unreadable medium that can be taken out":      {nil, agentSaid(nil, false, removable), false, nil},
		"an unreadable disk over a network":               {nil, agentSaid(nil, false, remote), false, nil},
		"one that can be read":                            {parts(known), agentSaid(nil, false, disk("Data")), false, nil},
		"no inventory":                                    {parts(known), nil, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := FaultyParts(Reported{Known: c.known, Now: faultsNow, Inventory: c.inventory,
				Excused: func(*policyv1alpha1.BlockDevice) bool { return c.excused }})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestMemoryModulesThatAreMissing(t *testing.T) {
	module := func(slot string, bytes int64) policyv1alpha1.MemoryDevice {
		return policyv1alpha1.MemoryDevice{DeviceLocator: slot, BankLocator: "P0", SizeBytes: bytes}
	}
	differs := func(kind policyv1alpha1.DifferenceKind, slot, serial string) policyv1alpha1.HardwareDifference {
		return policyv1alpha1.HardwareDifference{Part: "DIMM", Kind: kind, Name: slot + " P0", Detail: "32768 MiB serial " + serial}
	}
	type modules = []policyv1alpha1.MemoryDevice
	type differences = []policyv1alpha1.HardwareDifference
	missing := part("Memory", "A1 P0", "32768 MiB serial S1 is missing", "1.0", faultsNow)
	known := part("Memory", "A1 P0", "whatever", "1.0", faultsBefore)
	disk := policyv1alpha1.HardwareDifference{Part: "Disk", Kind: "Removed", Name: "D1"}
	module0 := policyv1alpha1.ProbeProblem{Source: "smbios"}
	for name, c := range map[string]struct {
		known       []v1alpha1.FaultyPart
		version     string
		modules     modules
		differences differences
		problems    []policyv1alpha1.ProbeProblem
		want        []v1alpha1.FaultyPart
	}{
		"one that the former report had":                 {nil, "1.0", modules{module("A2", 1)}, differences{differs("Removed", "A1", "S1")}, nil, parts(missing)},
		"one that was moved is not missing":              {nil, "1.0", modules{module("B1", 1)}, differences{differs("Removed", "A1", "S1"), differs("Added", "B1", "S1")}, nil, nil},
		"one that was moved while another is missing":    {nil, "1.0", modules{module("B1", 1)}, differences{differs("Removed", "A1", "S1"), differs("Added", "B1", "S2")}, nil, parts(missing)},
		"one that came is not missing":                   {nil, "1.0", modules{module("A1", 1)}, differences{differs("Added", "A1", "S1")}, nil, nil},
		"one that is another is not missing":             {nil, "1.0", modules{module("A1", 1)}, differences{differs("Changed", "A1", "S1")}, nil, nil},
		"a disk that is missing is no module":            {nil, "1.0", modules{module("A1", 1)}, differences{disk}, nil, nil},
		"it stays when the next report is like the last": {parts(known), "1.0", modules{module("A2", 1)}, nil, nil, parts(known)},
		"it stays while its slot is empty":               {parts(known), "1.0", modules{module("A1", 0), module("A2", 1)}, nil, nil, parts(known)},
		"it stays while memory cannot be read":           {parts(known), "1.0", modules{module("A1", 1)}, nil, []policyv1alpha1.ProbeProblem{module0}, parts(known)},
		"it goes when its slot holds one again":          {parts(known), "1.0", modules{module("A1", 1), module("A2", 1)}, nil, nil, nil},
		"it goes with the version of the agent":          {parts(known), "1.1", modules{module("A2", 1)}, nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inv := &policyv1alpha1.ServerInventory{Differences: c.differences, Report: &policyv1alpha1.ProbeReport{AgentVersion: c.version,
				Data: policyv1alpha1.ProbeData{Memory: c.modules, Problems: c.problems}}}
			got := FaultyParts(Reported{Known: c.known, Now: faultsNow, Inventory: inv})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestFaultyPartsAreSortedBoundedAndStay(t *testing.T) {
	var many []redfish.HealthPart
	for _, name := range []string{"b", "a", "c", "a"} {
		many = append(many, redfish.HealthPart{Name: name, Hardware: true})
	}
	in := Reported{Now: faultsNow, Spoke: true, Critical: true, Parts: many}
	first := FaultyParts(in)
	if len(first) != 3 || first[0].Name != "a" || first[2].Name != "c" {
		t.Errorf("%+v", first)
	}
	in.Known, in.Now = first, faultsNow.Add(time.Hour)
	if diff := cmp.Diff(first, FaultyParts(in)); diff != "" {
		t.Errorf("a second look changes them:\n%s", diff)
	}
}
