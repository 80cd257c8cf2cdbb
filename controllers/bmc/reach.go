// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

// silences knows which BMCs gave this process no answer when it asked them last.
type silences struct {
	mu sync.Mutex
	of map[string]bool
}

func (s *silences) note(bmc string, silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if silent {
		s.of[bmc] = true
	} else {
		delete(s.of, bmc)
	}
}

func (s *silences) has(bmc string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[bmc]
}

// silence says whether the BMC gave no answer of any kind. known is false where nothing new is known of that.
func (v *scope) silence() (silent, known bool) {
	switch {
	case v.targetErr != nil:
		return false, true // it is not asked, so nobody knows
	case !v.reading.Tried:
		return false, false
	}
	return redfish.Unanswered(v.reading.Err)
}

// recordUnreachable keeps the moment since when the BMC has given no answer, whatever else was wrong with it before. Ready
// cannot tell: it is False for other reasons as well, and keeps the time of the first.
func (v *scope) recordUnreachable() {
	silent, known := v.silence()
	switch {
	case !known:
	case silent:
		v.set(v1alpha1.ConditionUnreachable, true, v1alpha1.ReasonConnectionFailed, fmt.Sprintf("the BMC gives no answer of any kind; "+
			"once that has lasted %s, another BMC that shows its systems may take its Servers over", v.TakeOverAfter))
	default:
		meta.RemoveStatusCondition(&v.bmc.Status.Conditions, v1alpha1.ConditionUnreachable)
	}
}

// lostFor is how long a BMC has been seen to give no answer; 0 where it answers, or nobody asks. The time in which no
// manager was running does not count, and what another process saw has to be seen by this one before it counts in full.
func (s *subject) lostFor(b *v1alpha1.BMC, now time.Time) time.Duration {
	c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionUnreachable)
	if c == nil || c.Status != metav1.ConditionTrue || v1alpha1.Ignored(b) {
		return 0
	}
	since := c.LastTransitionTime.Time
	lost := now.Sub(since) - s.Absent(since, now)
	if !s.silences.has(b.Name) {
		lost = min(lost, s.TakeOverAfter-unconfirmed)
	}
	return max(lost, 1)
}

// unconfirmed is how soon to look again at a BMC that this process has not asked yet.
const unconfirmed = time.Second
