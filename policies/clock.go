// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/counted"
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

// Instant is one moment by two clocks.
type Instant struct {
	// Now is the wall clock; Counted is zero where counted time is not known.
	Now     time.Time
	Counted counted.Time
}

// CountedTime is how long a server has been in its present entry, without the time in which no deadline may run: while
// the manager was down, and while something outside held the server back (held, with the reason in one word). Counted
// time leaves the first out by itself; outage is for entries and clocks of a build that stored none.
//
// It returns the clock to be stored as well; nil where the stored one still serves, so that a server which nothing held
// back costs no write.
func CountedTime(l *v1alpha1.LifecycleStatus, at Instant, outage Outage, held bool, reason string) (time.Duration, *v1alpha1.DeadlineClock) {
	clock := v1alpha1.DeadlineClock{AsOf: l.EnteredAt, AsOfCounted: l.EnteredCounted}
	if l.Clock != nil {
		clock = *l.Clock
	}
	passed, missed, anew := passedSince(&clock, at, outage)
	total := clock.Counted.Duration
	if !clock.Held {
		total += passed
	}
	if !held {
		reason = ""
	}
	if !anew && held == clock.Held && reason == clock.Reason && (missed < shortOutage || clock.Held) {
		return total, nil
	}
	return total, &v1alpha1.DeadlineClock{
		Counted:     metav1.Duration{Duration: total},
		AsOf:        metav1.NewMicroTime(at.Now),
		AsOfCounted: at.Counted.Stored(),
		Held:        held,
		Reason:      reason,
	}
}

// passedSince is how much time passed since a clock was stored, and how much of an outage that leaves out. A clock without
// a counted time, or with one that is lost, is stored anew.
func passedSince(clock *v1alpha1.DeadlineClock, at Instant, outage Outage) (passed, missed time.Duration, anew bool) {
	asOf := counted.From(clock.AsOfCounted)
	switch age, ok := at.Counted.Since(asOf); {
	case ok:
		return age, 0, false
	case asOf == 0:
		missed = outage.overlap(clock.AsOf.Time, at.Now)
		return max(0, at.Now.Sub(clock.AsOf.Time)-missed), missed, at.Counted != 0
	}
	return 0, 0, at.Counted != 0
}

// EstimatedClock is counted time as far as the records of a server and a wall clock tell it, for programs that do not lead. It is
// zero where no record has a counted time.
func EstimatedClock(s *v1alpha1.Server, now time.Time) counted.Time {
	var at counted.Time
	var recorded time.Time
	last := func(c metav1.Duration, t time.Time) {
		if known := counted.From(c); known > at {
			at, recorded = known, t
		}
	}
	if l := s.Status.Lifecycle; l != nil {
		last(l.EnteredCounted, l.EnteredAt.Time)
		if l.Clock != nil {
			last(l.Clock.AsOfCounted, l.Clock.AsOf.Time)
		}
		if l.Request != nil {
			last(l.Request.AskedCounted, l.Request.AskedAt.Time)
		}
	}
	if ended, err := time.Parse(time.RFC3339, s.Annotations[v1alpha1.ReleasedAtAnnotation]); err == nil {
		last(counted.Parse(s.Annotations[v1alpha1.ReleasedCountedAnnotation]).Stored(), ended)
	}
	if at == 0 {
		return 0
	}
	return at + counted.Time(max(0, now.Sub(recorded)))
}
