// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"fmt"
	"strings"
	"testing"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

func TestFind(t *testing.T) {
	const at = "0000:03:00.0"
	function := func(id, class, driver string, disks int) Facts {
		vendor, device, _ := strings.Cut(id, ":")
		return Facts{Functions: []Function{{Address: at, Vendor: vendor, Device: device, Class: class, Driver: driver, Disks: disks, Slot: "2"}}}
	}
	nvme := func(c Controller) Facts {
		facts := function("144d:a80a", "010802", "nvme", 0)
		c.Name, c.Address, c.Model, c.Serial = "nvme1", at, "PM9A3", "S1"
		facts.Controllers = []Controller{c}
		return facts
	}
	for _, test := range []struct {
		name  string
		facts Facts
		// want is "name reason" of the one finding, as far as given; empty expects none.
		want string
	}{
		{"a SCSI adapter without a driver", function("1000:0012", "010000", "", 0), "SCSI controller no driver serves it"},
		{"a RAID adapter without a driver", function("1000:0060", "010400", "", 0), "RAID controller no driver serves it"},
		{"a SATA adapter without a driver", function("8086:2922", "010601", "", 0), "SATA controller no driver serves it"},
		{"an NVMe drive without a driver", function("144d:a80a", "010802", "", 0), "NVMe controller no driver serves it"},
		{"a storage controller of an unknown kind", function("1234:5678", "018000", "", 0), "storage controller no driver serves it"},
		{"an adapter that is kept for a guest", function("1000:0060", "010400", "vfio-pci", 0), "RAID controller the driver vfio-pci keeps it"},
		{"a network card without a driver", function("8086:1572", "020000", "", 0), ""},
		{"a function without a class", function("8086:1572", "", "", 0), ""},
		{"the storage function of a Chelsio T5", function("1425:5501", "010000", "", 0), ""},
		{"the storage function of a Chelsio T6", function("1425:6607", "010000", "", 0), ""},
		{"the management endpoint of a PCIe switch, without a driver", function("1000:00b2", "010700", "", 0), ""},
		{"the management endpoint of a PCIe switch, with mpt3sas", function("1000:00b2", "010700", "mpt3sas", 0), ""},
		{"an idle VMD that its driver serves", function("8086:201d", "010400", "vmd", 0), ""},
		{"a VMD without a driver", function("8086:28c0", "010400", "", 0), "RAID controller Intel VMD is on and no driver serves it"},
		{"the placeholder of a function behind VMD", function("8086:09ab", "010601", "", 0), ""},
		{"an AHCI controller with empty ports", function("8086:2922", "010601", "ahci", 0), ""},
		{"a plain SAS adapter with empty ports", function("1000:0097", "010700", "mpt3sas", 0), ""},
		{"a RAID adapter without a volume", function("1000:005d", "010400", "megaraid_sas", 0), "RAID controller its driver megaraid_sas shows no volume"},
		{"a RAID adapter with a volume", function("1000:005d", "010400", "megaraid_sas", 1), ""},
		{"a RAID adapter of mpi3mr without a volume", function("1000:00a5", "010400", "mpi3mr", 0), "RAID controller its driver mpi3mr shows no volume"},
		{"an NVMe drive that shows its namespace", nvme(Controller{State: "live", Active: []uint32{1}, Shown: []uint32{1}}), ""},
		{"an NVMe drive whose namespace is not shown", nvme(Controller{State: "live", Active: []uint32{1}}), "nvme1 the kernel shows no disk for its namespace 1:"},
		{"an NVMe drive that shows one of two namespaces", nvme(Controller{State: "live", Active: []uint32{1, 2}, Shown: []uint32{1}}),
			"nvme1 the kernel shows no disk for its namespace 2:"},
		{"an NVMe drive without a namespace", nvme(Controller{State: "live"}), ""},
		{"an NVMe drive that did not answer and shows nothing", nvme(Controller{State: "live", Unread: "timeout"}),
			"nvme1 the kernel shows no disk for it, and the drive did not say whether it has namespaces (timeout)"},
		{"an NVMe drive that did not answer and shows a disk", nvme(Controller{State: "live", Unread: "timeout", Shown: []uint32{1}}), ""},
		{"an NVMe controller that is dead", nvme(Controller{State: "dead", Shown: []uint32{1}}), `nvme1 the controller is in state "dead"`},
		{"an NVMe controller for administration alone", nvme(Controller{State: "live", Kind: "admin", Unread: "timeout"}), ""},
		{"an NVMe driver without a controller", function("144d:a80a", "010802", "nvme", 0), "NVMe controller its driver shows no NVMe controller"},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := Find(test.facts)
			if test.want == "" {
				if len(found) > 0 {
					t.Fatalf("found %+v", found)
				}
				return
			}
			if len(found) != 1 {
				t.Fatalf("found %d of it: %+v", len(found), found)
			}
			s := found[0]
			if got := s.Name + " " + s.Reason; !strings.HasPrefix(got, test.want) {
				t.Errorf("got %q, want it to begin with %q", got, test.want)
			}
			f := test.facts.Functions[0]
			if s.Source != policyv1alpha1.HiddenByAgent || s.Address != at || s.PCIID != f.Vendor+":"+f.Device || s.Slot != "2" || s.ExcusedBy != "" {
				t.Errorf("it is not named well: %+v", s)
			}
			if len(test.facts.Controllers) > 0 && (s.Serial != "S1" || s.Model != "PM9A3") {
				t.Errorf("the drive is not named: %+v", s)
			}
		})
	}
}

func TestEachHarmlessFunctionHasASource(t *testing.T) {
	for _, known := range harmless {
		if known.source == "" || known.why == "" {
			t.Errorf("%s:%s has no source", known.vendor, known.device)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add("1000", "005d", "010400", "megaraid_sas", "nvme1", "live", uint32(1), "")
	f.Fuzz(func(t *testing.T, vendor, device, class, driver, name, state string, nsid uint32, unread string) {
		facts := Facts{Functions: []Function{{Vendor: vendor, Device: device, Class: class, Driver: driver}},
			Controllers: []Controller{{Name: name, State: state, Active: []uint32{nsid}, Unread: unread}}}
		if found := Find(facts); len(found) > 2 || fmt.Sprint(Find(facts)) != fmt.Sprint(found) {
			t.Errorf("found %+v", found)
		}
	})
}
