// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// throughBMC are the standings that do not end before the BMC answers.
var throughBMC = map[string]bool{v1alpha1.ReasonReserving: true, v1alpha1.ReasonBooting: true,
	v1alpha1.ReasonPoweringOff: true, v1alpha1.ReasonPowerUnknown: true}

// behindBMC names the BMC that cannot be used as the cause, where a claim does not go on without it, and the way out.
func (f facts) behindBMC(s standing) standing {
	if s.ready || s.stalled || s.silent || f.server == nil || !throughBMC[s.reason] {
		return s
	}
	why := unreachable(f.server)
	if why == "" {
		return s
	}
	s.reason, s.unprepared = v1alpha1.ReasonBMCUnreachable, false
	if s.bound {
		s.message = fmt.Sprintf("The BMC of server %s cannot be used (%s), so nothing is done to the machine. The claim keeps its "+
			"server. To give up the server and what is on it, delete the claim.", f.server.Name, why)
		return s
	}
	s.message = fmt.Sprintf("The BMC of server %s cannot be used (%s). The server is reserved once it answers. The claim never "+
		"loses it by itself: for another server, delete the claim and make it anew.", f.server.Name, why)
	return s
}

// behindQuiet counts from when the BMC was found unusable: one that misses a single answer costs its claim no write.
func (f facts) behindQuiet(now time.Time) time.Duration {
	reach := meta.FindStatusCondition(f.server.Status.Conditions, v1alpha1.ConditionBMCReachable)
	if reach == nil || reach.Status != metav1.ConditionFalse {
		return 0
	}
	return left(reach.LastTransitionTime.Time, progressQuiet, now)
}
