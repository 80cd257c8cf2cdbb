// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/drives"
	"github.com/metalaw/metalaw/internal/hidden"
)

// recordHidden names storage that no disk shows, as it is known at present, until it is gone or excused.
func (r *record) recordHidden() {
	w := r.Settings.Wipe
	fails := w.Hidden == bundle.HiddenFail
	if open := hidden.Last(r.Inventory, w.Excused).Open(); len(open) > 0 {
		follows := "A wipe erases the disks and names this in its record. "
		if fails {
			follows = "A wipe and a blank check fail for it. "
		}
		r.condition(v1alpha1.ConditionStorageHidden, metav1.ConditionTrue, v1alpha1.ReasonNotShown,
			"No disk shows it, and it may hold data: "+hidden.Words(open)+". "+follows+hidden.Remedy+".")
		return
	}
	if r.Inventory != nil && fails && r.Facts.Probe.Entry >= 0 {
		if why := drives.Withheld(r.Inventory.BMCStorage); why != "" {
			r.condition(v1alpha1.ConditionStorageHidden, metav1.ConditionTrue, v1alpha1.ReasonDrivesNotListed,
				"What drives the machine has is not known. "+why)
			return
		}
	}
	if names := hidden.Doubtful(r.Inventory); len(names) > 0 && w.Removable != bundle.RemovableErase {
		r.condition(v1alpha1.ConditionStorageHidden, metav1.ConditionTrue, v1alpha1.ReasonRemovableInDoubt,
			"How these removable disks are attached is not known: "+strings.Join(names, ", ")+". No wipe erases them "+
				"(wipe.removable: Leave). If they are fixed, name them in wipe.allowed, or promote wipe.removable: Erase.")
		return
	}
	r.drop(v1alpha1.ConditionStorageHidden)
}
