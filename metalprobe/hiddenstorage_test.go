// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

const withHidden = `
bus/pci/devices/0000:00:05.0/vendor: 0x1000
bus/pci/devices/0000:00:05.0/device: 0x0012
bus/pci/devices/0000:00:05.0/class: 0x010000
bus/pci/devices/0000:00:06.0/vendor: 0x1000
bus/pci/devices/0000:00:06.0/device: 0x005d
bus/pci/devices/0000:00:06.0/class: 0x010400
bus/pci/devices/0000:00:06.0/uevent: DRIVER=megaraid_sas
bus/pci/devices/0000:00:07.0/vendor: 0x144d
bus/pci/devices/0000:00:07.0/device: 0xa80a
bus/pci/devices/0000:00:07.0/class: 0x010802
bus/pci/devices/0000:00:07.0/uevent: DRIVER=nvme
bus/pci/devices/0000:00:08.0/vendor: 0x144d
bus/pci/devices/0000:00:08.0/device: 0xa80a
bus/pci/devices/0000:00:08.0/class: 0x010802
bus/pci/devices/0000:00:08.0/uevent: DRIVER=nvme
bus/pci/slots/7/address: 0000:00:08
class/nvme/nvme0 -> ../../devices/pci0000:00/0000:00:07.0/nvme/nvme0
devices/pci0000:00/0000:00:07.0/nvme/nvme0/transport: pcie
devices/pci0000:00/0000:00:07.0/nvme/nvme0/state: live
block/nvme0n1 -> ../devices/pci0000:00/0000:00:07.0/nvme/nvme0/nvme0n1
devices/pci0000:00/0000:00:07.0/nvme/nvme0/nvme0n1/size: 2048
devices/pci0000:00/0000:00:07.0/nvme/nvme0/nvme0n1/nsid: 1
class/nvme/nvme1 -> ../../devices/pci0000:00/0000:00:08.0/nvme/nvme1
devices/pci0000:00/0000:00:08.0/nvme/nvme1/transport: pcie
devices/pci0000:00/0000:00:08.0/nvme/nvme1/state: live
devices/pci0000:00/0000:00:08.0/nvme/nvme1/serial: S1
devices/pci0000:00/0000:00:08.0/nvme/nvme1/model: PM9A3
block/sda -> ../devices/pci0000:00/0000:00:06.0/host0/target0:2:0/0:2:0:0/block/sda
devices/pci0000:00/0000:00:06.0/host0/target0:2:0/0:2:0:0/block/sda/size: `

func TestTheAgentReportsStorageThatNoDiskShows(t *testing.T) {
	for name, c := range map[string]struct {
		size string
		want []string
	}{
		"a volume is shown": {"2048", []string{"0000:00:05.0 1000:0012", "0000:00:08.0 144d:a80a nvme1 S1 slot 7"}},
		"the volume has no capacity": {"0", []string{"0000:00:05.0 1000:0012", "0000:00:06.0 1000:005d",
			"0000:00:08.0 144d:a80a nvme1 S1 slot 7"}},
	} {
		t.Run(name, func(t *testing.T) {
			host := sysfs(t, withHidden+c.size+"\n")
			host.Namespaces = func(string) (allocated, active []uint32, err error) { return nil, []uint32{1}, nil }
			data, err := host.Collect(t.Context())
			if err != nil || !data.HiddenKnown {
				t.Errorf("known %t, %v", data.HiddenKnown, err)
			}
			var got []string
			for _, s := range data.Hidden {
				word := s.Address + " " + s.PCIID
				if s.Serial != "" {
					word += " " + s.Name + " " + s.Serial + " slot " + s.Slot
				}
				got = append(got, word)
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if again, known := host.Hidden(t.Context()); !known || fmt.Sprint(again) != fmt.Sprint(data.Hidden) {
				t.Errorf("a wipe finds %v", again)
			}
		})
	}
}

func TestWithoutABusHiddenStorageIsNotKnown(t *testing.T) {
	if _, known := (&Host{Root: tree("")}).Hidden(t.Context()); known {
		t.Error("nothing was read, and hidden storage is known")
	}
}

func TestAWipeReportsWhatWasHiddenBeforeOrAfterIt(t *testing.T) {
	hidden := func(address string) policyv1alpha1.HiddenStorage {
		return policyv1alpha1.HiddenStorage{Source: policyv1alpha1.HiddenByAgent, Address: address, PCIID: "1000:0012", Reason: "no driver"}
	}
	type look struct {
		found []policyv1alpha1.HiddenStorage
		known bool
	}
	for name, c := range map[string]struct {
		looks []look
		want  string
		known bool
	}{
		"nothing":                      {[]look{{nil, true}, {nil, true}}, "", true},
		"the same before and after":    {[]look{{[]policyv1alpha1.HiddenStorage{hidden("a")}, true}, {[]policyv1alpha1.HiddenStorage{hidden("a")}, true}}, "a", true},
		"it appeared during the wipe":  {[]look{{[]policyv1alpha1.HiddenStorage{hidden("a")}, true}, {nil, true}}, "a", true},
		"it vanished during the wipe":  {[]look{{nil, true}, {[]policyv1alpha1.HiddenStorage{hidden("b")}, true}}, "b", true},
		"it was not known before":      {[]look{{nil, false}, {nil, true}}, "", false},
		"it was not known at the end":  {[]look{{nil, true}, {nil, false}}, "", false},
		"two of them, one after other": {[]look{{[]policyv1alpha1.HiddenStorage{hidden("a")}, true}, {[]policyv1alpha1.HiddenStorage{hidden("b")}, true}}, "a b", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				report, _ := wipeOf(t, &fakeRegistry{}, func(a *Agent) {
					a.Hidden = func(context.Context) ([]policyv1alpha1.HiddenStorage, bool) {
						n++
						return c.looks[n-1].found, c.looks[n-1].known
					}
				}, &fakeDisk{name: "sda"})
				var got []string
				for _, s := range report.Hidden {
					got = append(got, s.Address)
				}
				if strings.Join(got, " ") != c.want || report.HiddenKnown != c.known || report.State != policyv1alpha1.WipeVerified {
					t.Errorf("got %v, known %t, %s", got, report.HiddenKnown, report.State)
				}
			})
		})
	}
}

func TestAReportOfHiddenStorageIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		hidden policyv1alpha1.HiddenStorage
		want   string
	}{
		"an agent's":              {policyv1alpha1.HiddenStorage{Source: policyv1alpha1.HiddenByAgent, PCIID: "1000:0012"}, ""},
		"one of a BMC":            {policyv1alpha1.HiddenStorage{Source: policyv1alpha1.HiddenByBMC}, "source"},
		"one of an unknown":       {policyv1alpha1.HiddenStorage{Source: "Oracle"}, "source"},
		"one that excuses itself": {policyv1alpha1.HiddenStorage{Source: policyv1alpha1.HiddenByAgent, ExcusedBy: "policy"}, "excusedBy"},
		"a reason that is long":   {policyv1alpha1.HiddenStorage{Source: policyv1alpha1.HiddenByAgent, Reason: strings.Repeat("x", maxText+1)}, "reason"},
		"a negative size":         {policyv1alpha1.HiddenStorage{Source: policyv1alpha1.HiddenByAgent, SizeBytes: -1}, "sizeBytes"},
	} {
		t.Run(name, func(t *testing.T) {
			const uuid = "4c4c4544-0042-3510-8054-b7c04f4d4d32"
			probe := Report{SystemUUID: uuid, Data: Data{Hidden: []policyv1alpha1.HiddenStorage{c.hidden}}}
			wipe := WipeReport{SystemUUID: uuid, State: policyv1alpha1.WipeVerified, Hidden: []policyv1alpha1.HiddenStorage{c.hidden}}
			for _, err := range []error{probe.Validate(), wipe.Validate()} {
				if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v", err)
				}
			}
			if probe.Data.Trim(); errors.Join(probe.Validate()) != nil {
				t.Errorf("trimmed: %v", probe.Validate())
			}
		})
	}
}
