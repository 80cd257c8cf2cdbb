// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// Outage is a time in which no manager was running. The zero Outage never was.
type Outage struct {
	From, Until time.Time
}

// overlap is how much of the time between two instants lies in the outage.
func (o Outage) overlap(from, until time.Time) time.Duration {
	if o.From.After(from) {
		from = o.From
	}
	if o.Until.Before(until) {
		until = o.Until
	}
	return max(0, until.Sub(from))
}

// shortOutage is what a manager's restart may take without being written into every waiting server's clock.
const shortOutage = 10 * time.Second

// CountedTime is how long a server has been in its present entry, without the time in which no deadline may run: while
// the manager was down, and while something outside held the server back (held, with the reason in one word).
//
// It returns the clock to be stored as well; nil where the stored one still serves, so that a server which nothing held
// back costs no write.
func CountedTime(l *v1alpha1.LifecycleStatus, now time.Time, outage Outage, held bool, reason string) (time.Duration, *v1alpha1.DeadlineClock) {
	clock := v1alpha1.DeadlineClock{AsOf: l.EnteredAt}
	if l.Clock != nil {
		clock = *l.Clock
	}
	counted := clock.Counted.Duration
	missed := outage.overlap(clock.AsOf.Time, now)
	if !clock.Held {
		counted += max(0, now.Sub(clock.AsOf.Time)-missed)
	}
	if !held {
		reason = ""
	}
	if held == clock.Held && reason == clock.Reason && (missed < shortOutage || clock.Held) {
		return counted, nil
	}
	return counted, &v1alpha1.DeadlineClock{
		Counted: metav1.Duration{Duration: counted},
		AsOf:    metav1.NewMicroTime(now),
		Held:    held,
		Reason:  reason,
	}
}
