// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/drives"
	"github.com/metalaw/metalaw/internal/hidden"
)

// hiddenStorage names storage that no disk shows, as it is known at present, until it is gone or excused. Both are empty where there is
// none. inspected says that an agent has reported the disks.
func hiddenStorage(inventory *policyv1alpha1.ServerInventory, w bundle.Wipe, inspected bool) (reason, message string) {
	fails := w.Hidden == bundle.HiddenFail
	if open := hidden.Last(inventory, w.Excused).Open(); len(open) > 0 {
		follows := "A wipe erases the disks and names this in its record. "
		if fails {
			follows = "A wipe and a blank check fail for it. "
		}
		return v1alpha1.ReasonNotShown,
			"No disk shows it, and it may hold data: " + hidden.Words(open) + ". " + follows + hidden.Remedy + "."
	}
	if inventory != nil && fails && inspected {
		if why := drives.Withheld(inventory.BMCStorage); why != "" {
			return v1alpha1.ReasonDrivesNotListed, "What drives the machine has is not known. " + why
		}
	}
	if names := hidden.Doubtful(inventory); len(names) > 0 && w.Removable != bundle.RemovableErase {
		return v1alpha1.ReasonRemovableInDoubt,
			"How these removable disks are attached is not known: " + strings.Join(names, ", ") + ". No wipe erases them " +
				"(wipe.removable: Leave), and under Erase a wipe fails for them. Take them out, or name them in wipe.excused."
	}
	return "", ""
}
