// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"testing"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// The drives that the BMC lists are looked up at each end of a wipe, whether or not an inventory report of its entry is stored.
func TestTheDrivesOfTheBMCAreLookedUpWithoutAReport(t *testing.T) {
	lists := &policyv1alpha1.ServerInventory{BMCStorage: &policyv1alpha1.BMCStorage{State: policyv1alpha1.BMCStorageListed, Entry: 7,
		Drives: []policyv1alpha1.BMCDrive{{Name: "Disk 2", Serial: "S1234567"}}}}
	for name, c := range map[string]struct {
		wipe policyv1alpha1.WipeReport
		want int
	}{
		"one that the wipe did not see is hidden": {policyv1alpha1.WipeReport{Entry: 7}, 1},
		"one that it erased is not": {policyv1alpha1.WipeReport{Entry: 7,
			Disks: []policyv1alpha1.DiskWipe{{Path: "/dev/sda", Serial: "S1234567"}}}, 0},
		"one that it left alone is not": {policyv1alpha1.WipeReport{Entry: 7,
			Skipped: []policyv1alpha1.SkippedDisk{{Path: "/dev/sda", Serial: "S1234567"}}}, 0},
		"a list of another entry says nothing": {policyv1alpha1.WipeReport{Entry: 8}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := findings(lists, &c.wipe, Demands{}); len(got.All) != c.want {
				t.Errorf("got %+v", got.All)
			}
		})
	}
}
