// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// lostFor is how long a BMC has been seen to give no answer; 0 where it answers, or the manager does not ask it. The time in which no
// manager was running does not count, and what another process saw has to be seen by this one before it counts in full.
func (s *subject) lostFor(b *v1alpha1.BMC, now time.Time) time.Duration {
	c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionUnreachable)
	if c == nil || c.Status != metav1.ConditionTrue || v1alpha1.Ignored(b) {
		return 0
	}
	since := c.LastTransitionTime.Time
	lost := now.Sub(since) - s.Absent(since, now)
	if !s.silent.get(b.Name) {
		lost = min(lost, s.TakeOverAfter-unconfirmed)
	}
	return max(lost, 1)
}

// unconfirmed is how soon to look again at a BMC that this process has not asked yet.
const unconfirmed = time.Second
