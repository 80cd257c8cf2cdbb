// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/hidden"
)

// HiddenOn is the storage that no disk shows and for which the machine may not be offered, where wipe.hidden says Fail.
func HiddenOn(o Observation) []policyv1alpha1.HiddenStorage {
	l := o.Server.Status.Lifecycle
	if o.Settings.Wipe.Hidden != bundle.HiddenFail || l == nil || o.Inventory == nil || o.Inventory.Report == nil ||
		!o.believes(o.Inventory.Report) {
		return nil
	}
	return hidden.InEntry(o.Inventory, l.Entry, o.Settings.Wipe.Excused).Open()
}

// FoundWords names what keeps a machine from being offered: its disks, and the storage that no disk shows.
func FoundWords(o Observation) []string {
	words := DataWords(DataOn(o))
	for _, h := range HiddenOn(o) {
		if len(words) < maxFound {
			words = append(words, hidden.Word(h)+" (no disk shows it)")
		}
	}
	return words
}

// ListAwaitedIn is how long the blank check may still wait for the drives that the BMC lists; 0 where it does not.
func ListAwaitedIn(o Observation) time.Duration {
	l, s := o.Server.Status.Lifecycle, o.Server.Spec
	if o.Settings.Wipe.Hidden != bundle.HiddenFail || l == nil || s.BMCRef == nil && s.BMC == nil {
		return 0
	}
	return hidden.AwaitsList(o.Inventory, l.Entry, l.EnteredAt.Time, o.Now)
}

// HiddenAlone says that nothing but hidden storage keeps a machine from being clean: its wipe erased each disk that
// the agent saw, or the blank check found no other data.
func HiddenAlone(o Observation) bool {
	l := o.Server.Status.Lifecycle
	if l == nil || o.Inventory == nil {
		return false
	}
	if w := o.Inventory.Wipe; w != nil && w.Entry == l.Entry {
		return w.State == policyv1alpha1.WipeFailed && w.FailedForHidden
	}
	return len(HiddenOn(o)) > 0 && len(DataOn(o)) == 0
}
