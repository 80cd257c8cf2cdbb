// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"fmt"
	"slices"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

// refusals says why the machines behind a BMC may not be exercised; none where they may. Every Server must be spare: known, free,
// cordoned, off and without data.
func refusals(servers []metalv1alpha1.Server) []string {
	if len(servers) == 0 {
		return []string{"no Server belongs to the BMC, so nothing proves that its machine is spare"}
	}
	var why []string
	for i := range servers {
		s := &servers[i]
		no := func(format string, args ...any) { why = append(why, "Server "+s.Name+" "+fmt.Sprintf(format, args...)) }
		if ref := s.Spec.ServerClaimRef; ref != nil {
			no("is claimed by %s/%s", ref.Namespace, ref.Name)
		}
		if !s.Spec.Unclaimable {
			no("is not cordoned; cordon it: metalaw server cordon %s", s.Name)
		}
		if ref := s.Spec.ServerMaintenanceRef; ref != nil {
			no("is handed to maintenance %s/%s", ref.Namespace, ref.Name)
		}
		switch {
		case s.Status.Lifecycle == nil:
			no("has no lifecycle yet, so it may hold data")
		case slices.Contains(s.Status.Lifecycle.Marks, metalv1alpha1.MarkDirty):
			no("may hold data (mark Dirty)")
		case s.Status.State != metalv1alpha1.StateAvailable:
			no("is %s, not Available", s.Status.State)
		}
		if s.Status.PowerState != metalv1alpha1.PowerStateOff {
			no("is not Off (%s)", s.Status.PowerState)
		}
	}
	return why
}
