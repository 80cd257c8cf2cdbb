// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/restored"
)

// checkRestored lists the servers that are in doubt since the cluster's store was restored.
func checkRestored(v view) finding {
	const check = "restored servers"
	if v.maintenanceErr != nil {
		return unread(check, v.maintenanceErr)
	}
	var compare, inspect []string
	for i := range v.maintenance.servers {
		s := &v.maintenance.servers[i]
		switch {
		case !restored.Marked(s):
		case s.Annotations[metalv1alpha1.RestoredDoubtAnnotation] == restored.Inspect:
			inspect = append(inspect, s.Name)
		default:
			compare = append(compare, s.Name)
		}
	}
	switch {
	case len(compare) > 0:
		return finding{check, Warned, fmt.Sprintf("%d are in doubt since the cluster's store was restored, and are left as they are: %s",
			len(compare), list(compare)), "compare each with its machine, then: metalaw restored --confirm NAME"}
	case len(inspect) > 0:
		return finding{check, Warned, fmt.Sprintf("%d were confirmed after a restore, and their disks are still to be read: %s",
			len(inspect), list(inspect)), "their condition RestoredDoubt says what each waits for; the machine must be off"}
	}
	return finding{check, Passed, "none is in doubt", ""}
}
