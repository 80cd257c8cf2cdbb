// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/gates"
	"github.com/metalaw/metalaw/internal/restored"
)

// recordDoubt says that the server is in doubt since the cluster's store was restored, and what it waits for.
func recordDoubt(r *record) {
	phase := restored.Of(r.s, r.Inventory)
	if phase == restored.None {
		r.drop(v1alpha1.ConditionRestoredDoubt)
		return
	}
	reason, message := v1alpha1.ReasonNotCompared, restored.Words(r.s.Name)
	if phase == restored.Inspection {
		reason, message = v1alpha1.ReasonInspects, "A user confirmed it. It is offered once its disks were read since then, and hold no data"
		if r.Gated.Gate == gates.RestoredDoubt {
			message = cmp.Or(r.Decision.Message, message)
		}
	}
	r.condition(v1alpha1.ConditionRestoredDoubt, metav1.ConditionTrue, reason, message)
}

// waitsInDoubt says that a user has to act before the server is inspected or goes on. A claim that has its server keeps it, and
// nothing is told to its tenant.
func waitsInDoubt(r *record) bool {
	return r.Gated.Gate == gates.RestoredDoubt && !r.Decision.Moves() && !r.Gated.Postponed && len(r.Decision.Effects) == 0 &&
		r.Decision.Rule == "" && r.s.Spec.ServerClaimRef == nil
}
