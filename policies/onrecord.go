// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"slices"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/bmcsystems"
)

// StatedInterface begins the name of an interface whose MAC address the annotation of the BMC gives, and no program
// read.
const StatedInterface = "by-annotation-"

// OnRecord sums up what a Server and an inventory know of the hardware of a machine. Either may be nil.
func OnRecord(s *v1alpha1.Server, inventory *policyv1alpha1.ServerInventory) bmcsystems.Record {
	var r bmcsystems.Record
	add := func(to *[]string, text string) {
		if text != "" && !slices.Contains(*to, text) {
			*to = append(*to, text)
		}
	}
	if s != nil {
		add(&r.SerialNumbers, s.Status.SerialNumber)
		for i := range s.Status.NetworkInterfaces {
			if nic := s.Status.NetworkInterfaces[i]; !strings.HasPrefix(nic.Name, StatedInterface) {
				add(&r.MACs, nic.MACAddress)
			}
		}
	}
	if inventory != nil && inventory.Report != nil && !ReportVoided(inventory) {
		add(&r.SerialNumbers, inventory.Report.Data.SystemInfo.SystemInformation.SerialNumber)
		for i := range inventory.Report.Data.NetworkInterfaces {
			add(&r.MACs, inventory.Report.Data.NetworkInterfaces[i].MACAddress)
		}
	}
	return r
}

// MayHoldData reports that a machine is held, or was not wiped since, as its Server or its inventory says. Either may be nil.
func MayHoldData(s *v1alpha1.Server, inventory *policyv1alpha1.ServerInventory) bool {
	if s != nil && (s.Spec.ServerClaimRef != nil || s.Status.Lifecycle != nil && slices.Contains(s.Status.Lifecycle.Marks, MarkDirty)) {
		return true
	}
	return inventory != nil && inventory.Custody != nil && slices.Contains(inventory.Custody.Marks, MarkDirty)
}
