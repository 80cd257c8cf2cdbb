// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

type storage = policyv1alpha1.HiddenStorage

func TestWhatIsHiddenAndWhatIsExcused(t *testing.T) {
	function := storage{Source: "Agent", Address: "0000:03:00.0", PCIID: "1000:0014", Slot: "4", Reason: "no driver"}
	drive := storage{Source: "Agent", Address: "0000:05:00.0", PCIID: "144d:a80a", Name: "nvme1", Serial: "S5XXXXX1"}
	listed := func(drives ...policyv1alpha1.BMCDrive) *policyv1alpha1.BMCStorage {
		return &policyv1alpha1.BMCStorage{State: policyv1alpha1.BMCStorageListed, Drives: drives}
	}
	answers := func(a policyv1alpha1.AttestedHidden) []policyv1alpha1.AttestedHidden {
		a.By = "jane"
		return []policyv1alpha1.AttestedHidden{a}
	}
	for name, c := range map[string]struct {
		in Input
		// want is each as "words: by whom".
		want []string
	}{
		"nothing":    {Input{}, nil},
		"a function": {Input{Agent: []storage{function}}, []string{"function 0000:03:00.0 PCI 1000:0014 slot 4: "}},
		"a drive that the BMC lists": {Input{Storage: listed(policyv1alpha1.BMCDrive{Name: "Disk 2", Slot: "Bay 2", Serial: "S5XXXXX2"})},
			[]string{"drive Disk 2 slot Bay 2 serial S5XXXXX2 (the BMC lists it): "}},
		"a drive of which both know, once": {Input{Agent: []storage{drive}, Storage: listed(policyv1alpha1.BMCDrive{Slot: "Bay 1", Serial: "s5xxxxx1 "})},
			[]string{"function nvme1 function 0000:05:00.0 PCI 144d:a80a slot Bay 1 serial S5XXXXX1: "}},
		"none that the agent saw as a disk": {Input{Disks: []policyv1alpha1.CustodyDisk{{Name: "sda", Serial: "S5XXXXX2"}},
			Storage: listed(policyv1alpha1.BMCDrive{Serial: "S5XXXXX2"})}, nil},
		"excused by its function": {Input{Agent: []storage{function, drive}, Excused: []string{"1000:0014"}}, []string{
			"function 0000:03:00.0 PCI 1000:0014 slot 4: policy", "function nvme1 function 0000:05:00.0 PCI 144d:a80a serial S5XXXXX1: "}},
		"excused by its serial number": {Input{Agent: []storage{drive}, Excused: []string{"s5xxxxx1"}},
			[]string{"function nvme1 function 0000:05:00.0 PCI 144d:a80a serial S5XXXXX1: policy"}},
		"not excused by a name that is empty": {Input{Agent: []storage{{Source: "Agent", Name: "nvme1"}}, Excused: []string{""}},
			[]string{"function nvme1: "}},
		"excused by no agent": {Input{Agent: []storage{{Source: "BMC", Name: "nvme1", ExcusedBy: "policy"}}}, []string{"function nvme1: "}},
		"attested by its serial number, wherever it sits": {Input{Agent: []storage{drive},
			Attested: answers(policyv1alpha1.AttestedHidden{Serial: "S5XXXXX1", Address: "0000:06:00.0"})},
			[]string{"function nvme1 function 0000:05:00.0 PCI 144d:a80a serial S5XXXXX1: jane"}},
		"attested by its address": {Input{Agent: []storage{function},
			Attested: answers(policyv1alpha1.AttestedHidden{Address: "0000:03:00.0", PCIID: "1000:0014"})},
			[]string{"function 0000:03:00.0 PCI 1000:0014 slot 4: jane"}},
		"not attested where another function is at that address": {Input{Agent: []storage{function},
			Attested: answers(policyv1alpha1.AttestedHidden{Address: "0000:03:00.0", PCIID: "1000:0016"})},
			[]string{"function 0000:03:00.0 PCI 1000:0014 slot 4: "}},
		"not attested by nothing": {Input{Agent: []storage{{Source: "Agent"}}, Attested: answers(policyv1alpha1.AttestedHidden{})},
			[]string{"function : "}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, h := range Judge(c.in).All {
				got = append(got, Word(h)+": "+h.ExcusedBy)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMessageNamesAFewAndCountsTheRest(t *testing.T) {
	var many []storage
	for range 300 {
		many = append(many, storage{Source: "Agent", Name: strings.Repeat("ü", 200), Serial: strings.Repeat("s", 200), Slot: strings.Repeat("b", 200)})
	}
	if got := Failure(many); !strings.Contains(got, "and 296 more") || len([]rune(got)) > 1024 {
		t.Errorf("%d characters: %s", len([]rune(got)), got)
	}
	if got := Judge(Input{Agent: many}); len(got.All) != 256 {
		t.Errorf("%d are stored", len(got.All))
	}
}

func TestWhatIsKnownOfAMachineAtPresent(t *testing.T) {
	agent := []storage{{Source: "Agent", Name: "nvme1"}}
	drive := policyv1alpha1.BMCDrive{Name: "Disk 2", Serial: "S5XXXXX2"}
	reports := func(entry int64, all []storage) *policyv1alpha1.ProbeReport {
		return &policyv1alpha1.ProbeReport{Entry: entry, Data: policyv1alpha1.ProbeData{Hidden: all, HiddenKnown: true}}
	}
	bmc := func(entry int64, state policyv1alpha1.BMCStorageState) *policyv1alpha1.BMCStorage {
		return &policyv1alpha1.BMCStorage{Entry: entry, State: state, ListedBefore: true, Drives: []policyv1alpha1.BMCDrive{drive}}
	}
	for name, c := range map[string]struct {
		inv         *policyv1alpha1.ServerInventory
		last, entry string
	}{
		"nothing":                     {nil, "", ""},
		"no report":                   {&policyv1alpha1.ServerInventory{BMCStorage: bmc(4, "Listed")}, "", ""},
		"by the report of this entry": {&policyv1alpha1.ServerInventory{Report: reports(4, agent)}, "function nvme1", "function nvme1"},
		"by a former report":          {&policyv1alpha1.ServerInventory{Report: reports(3, agent)}, "function nvme1", ""},
		"a wipe that knows better": {&policyv1alpha1.ServerInventory{Report: reports(4, agent),
			Wipe: &policyv1alpha1.WipeReport{Entry: 4, HiddenKnown: true}}, "", "function nvme1"},
		"a wipe of a former agent": {&policyv1alpha1.ServerInventory{Report: reports(4, agent),
			Wipe: &policyv1alpha1.WipeReport{Entry: 4}}, "function nvme1", "function nvme1"},
		"by the BMC": {&policyv1alpha1.ServerInventory{Report: reports(4, nil), BMCStorage: bmc(4, "Listed")},
			"drive Disk 2 serial S5XXXXX2 (the BMC lists it)", "drive Disk 2 serial S5XXXXX2 (the BMC lists it)"},
		"by the BMC, which is not read now": {&policyv1alpha1.ServerInventory{Report: reports(4, nil), BMCStorage: bmc(4, "Unread")},
			"drive Disk 2 serial S5XXXXX2 (the BMC lists it)", ""},
		"by a list that is older than the report": {&policyv1alpha1.ServerInventory{Report: reports(4, nil), BMCStorage: bmc(3, "Listed")}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if last, entry := Words(Last(c.inv, nil).Open()), Words(InEntry(c.inv, 4, nil).Open()); last != c.last || entry != c.entry {
				t.Errorf("last %q, in the entry %q", last, entry)
			}
		})
	}
}

func TestABlankCheckWaitsForTheListOfTheBMC(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(noon.Add(d)) }
	wanted := func(d time.Duration) *metav1.MicroTime { w := at(d); return &w }
	for name, c := range map[string]struct {
		inv  *policyv1alpha1.ServerInventory
		want time.Duration
	}{
		"nothing was asked for":        {&policyv1alpha1.ServerInventory{}, 0},
		"it was asked for a while ago": {&policyv1alpha1.ServerInventory{BMCStorageWanted: wanted(-30 * time.Second)}, 90 * time.Second},
		"the time is over":             {&policyv1alpha1.ServerInventory{BMCStorageWanted: wanted(-2 * time.Minute)}, 0},
		"of a former entry":            {&policyv1alpha1.ServerInventory{BMCStorageWanted: wanted(-time.Hour)}, 0},
		"it was read since": {&policyv1alpha1.ServerInventory{BMCStorageWanted: wanted(-30 * time.Second),
			BMCStorage: &policyv1alpha1.BMCStorage{Entry: 4, State: policyv1alpha1.BMCStorageListed, ReadAt: at(-time.Second)}}, 0},
		"a part was not read": {&policyv1alpha1.ServerInventory{BMCStorageWanted: wanted(-30 * time.Second),
			BMCStorage: &policyv1alpha1.BMCStorage{Entry: 4, State: policyv1alpha1.BMCStorageUnread, ReadAt: at(-time.Second)}}, 90 * time.Second},
		"a BMC that listed drives before lists none": {&policyv1alpha1.ServerInventory{BMCStorageWanted: wanted(-3 * time.Minute),
			BMCStorage: &policyv1alpha1.BMCStorage{Entry: 4, State: policyv1alpha1.BMCStorageNotOffered, ListedBefore: true, ReadAt: at(-time.Second)}},
			10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := AwaitsList(c.inv, 4, noon.Add(-4*time.Minute), noon); got != c.want {
				t.Errorf("got %s", got)
			}
		})
	}
}
