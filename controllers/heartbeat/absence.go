// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"encoding/json"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// absencesAnnotation on the lease lists the times in which no manager was running.
	absencesAnnotation = "policy.metalaw.dev/absences"
	// longestGap is the longest time between two heartbeats that counts as running: one may be late.
	longestGap = 2 * interval
	// maxAbsences bounds the list; the oldest are forgotten first.
	maxAbsences = 32
)

// absence is a time between two heartbeats that lie too far apart: no manager was running, or it stood still.
type absence struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// Absent is how much of the time between two instants no manager was running, over all that the lease remembers, so that
// what was observed only before and after is not taken for observed in between. The first call asks as Outage does.
func (h *Heartbeat) Absent(from, until time.Time) time.Duration {
	h.Outage()
	h.mu.Lock()
	defer h.mu.Unlock()
	var sum time.Duration
	for _, a := range h.absences {
		sum += a.overlap(from, until)
	}
	if !h.beaten.IsZero() && until.Sub(h.beaten) > longestGap { // this process stood still, and has not noted it yet
		sum += absence{h.beaten, until}.overlap(from, until)
	}
	return sum
}

func (a absence) overlap(from, until time.Time) time.Duration {
	if a.From.After(from) {
		from = a.From
	}
	if a.Until.Before(until) {
		until = a.Until
	}
	return max(0, until.Sub(from))
}

// note brings the list of absences up to date in a lease that is renewed at an instant, before it is.
func (h *Heartbeat) note(lease *coordinationv1.Lease, now time.Time) {
	var list []absence
	if text := lease.Annotations[absencesAnnotation]; text != "" {
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			logf.Log.WithName("heartbeat").Error(err, "the list of former absences cannot be read; it begins anew")
			list = nil
		}
	}
	if last := lease.Spec.RenewTime; last != nil && now.Sub(last.Time) > longestGap {
		list = append(list, absence{last.UTC(), now.UTC()})
		list = list[max(0, len(list)-maxAbsences):]
		if text, err := json.Marshal(list); err == nil {
			metav1.SetMetaDataAnnotation(&lease.ObjectMeta, absencesAnnotation, string(text))
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.absences = list
}
