// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "testing"

func TestADiskIsRemoteOnlyWhereEachWayToItIs(t *testing.T) {
	for name, c := range map[string]struct {
		transport string
		want      bool
	}{
		"iSCSI":                         {"iscsi", true},
		"Fibre Channel":                 {"fc", true},
		"NVMe over TCP":                 {"nvme/tcp", true},
		"NVMe over two networks":        {"nvme/tcp+rdma", true},
		"NVMe on PCIe":                  {"nvme/pcie", false},
		"NVMe on PCIe and over TCP":     {"nvme/pcie+tcp", false},
		"SATA":                          {"sata", false},
		"a transport that is not known": {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&BlockDevice{Transport: c.transport}).Remote(); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
