// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/counted"
)

func TestCountedTime(t *testing.T) {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	clock := func(counted, asOf int, held bool) *v1alpha1.DeadlineClock {
		c := &v1alpha1.DeadlineClock{Counted: metav1.Duration{Duration: time.Duration(counted) * time.Minute},
			AsOf: metav1.NewMicroTime(at(asOf)), Held: held}
		if held {
			c.Reason = "BMCUnreachable"
		}
		return c
	}
	frozen := clock(20, 20, true)
	frozen.Reason = "Withheld"
	for name, c := range map[string]struct {
		clock   *v1alpha1.DeadlineClock
		now     int
		outage  Outage
		held    bool
		counted int
		write   *v1alpha1.DeadlineClock
	}{
		"counts from the entry and costs no write": {
			nil, 20, Outage{}, false, 20, nil},
		"leaves out the time in which no manager ran, and stores that": {
			nil, 60, Outage{From: at(10), Until: at(50)}, false, 20, clock(20, 60, false)},
		"leaves out an outage only once": {
			clock(20, 60, false), 65, Outage{From: at(10), Until: at(50)}, false, 25, nil},
		"is indifferent to an outage before the entry": {
			nil, 20, Outage{From: at(-90), Until: at(-30)}, false, 20, nil},
		"stops when something holds the server back": {
			nil, 20, Outage{}, true, 20, clock(20, 20, true)},
		"stands still while held": {
			clock(20, 20, true), 500, Outage{}, true, 20, nil},
		"tells what holds the server back by now": {
			frozen, 500, Outage{}, true, 20, clock(20, 500, true)},
		"goes on from where it stopped": {
			clock(20, 20, true), 500, Outage{}, false, 20, clock(20, 500, false)},
		"does not count a restart that was held all along twice": {
			clock(20, 20, true), 500, Outage{From: at(100), Until: at(400)}, true, 20, nil},
		"takes a quick restart into account without a write": {
			nil, 20, Outage{From: at(10), Until: at(10).Add(5 * time.Second)}, false, 19, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := &v1alpha1.LifecycleStatus{EnteredAt: metav1.NewMicroTime(noon), Clock: c.clock}
			counted, write := CountedTime(l, Instant{Now: at(c.now)}, c.outage, c.held, "BMCUnreachable")
			if got := int(counted / time.Minute); got != c.counted {
				t.Errorf("counted %d min, want %d", got, c.counted)
			}
			if (write == nil) != (c.write == nil) {
				t.Fatalf("write is %+v, want %+v", write, c.write)
			}
			if write != nil && (write.Counted != c.write.Counted || !write.AsOf.Equal(&c.write.AsOf) || write.Held != c.write.Held ||
				write.Reason != c.write.Reason) {
				t.Errorf("write is %+v, want %+v", write, c.write)
			}
		})
	}
}

func TestCountedTimeKnowsNoSteps(t *testing.T) {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	minutes := func(n int) metav1.Duration { return metav1.Duration{Duration: time.Duration(n) * time.Minute} }
	stored := func(total, asOf int, held bool) *v1alpha1.DeadlineClock {
		return &v1alpha1.DeadlineClock{Counted: minutes(total), AsOfCounted: minutes(asOf), Held: held}
	}
	const hour, year = time.Hour, 365 * 24 * time.Hour
	for name, c := range map[string]struct {
		entered int // in counted minutes; 0 by a former build
		clock   *v1alpha1.DeadlineClock
		wall    time.Duration
		now     int // in counted minutes; 0 is not known
		held    bool
		counted int
		write   *v1alpha1.DeadlineClock
	}{
		"counts from the entry and costs no write":    {100, nil, 20 * time.Minute, 120, false, 20, nil},
		"leaves out an outage without a write":        {100, nil, 8 * hour, 120, false, 20, nil},
		"is not longer after an hour forward":         {100, nil, hour, 101, false, 1, nil},
		"is not longer after a year forward":          {100, nil, year, 101, false, 1, nil},
		"goes on after an hour back":                  {100, nil, -hour, 120, false, 20, nil},
		"goes on after a year back":                   {100, nil, -year, 120, false, 20, nil},
		"goes on from a stored clock":                 {100, stored(5, 200, false), -year, 230, false, 35, nil},
		"stops where it is held":                      {100, nil, year, 120, true, 20, stored(20, 120, true)},
		"goes on once it is not":                      {100, stored(20, 120, true), -hour, 500, false, 20, stored(20, 500, false)},
		"waits until the count is read":               {100, stored(5, 200, false), year, 0, false, 5, nil},
		"begins to count an entry of a former build":  {0, nil, 7 * time.Minute, 500, false, 7, stored(7, 500, false)},
		"begins anew where the count is lost":         {100, stored(5, 200, false), year, 3, false, 5, stored(5, 3, false)},
		"counts by the wall what was never counted":   {0, nil, 7 * time.Minute, 0, false, 7, nil},
		"does not count an entry that is yet to come": {0, nil, -year, 0, false, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := &v1alpha1.LifecycleStatus{EnteredAt: metav1.NewMicroTime(noon), EnteredCounted: minutes(c.entered), Clock: c.clock}
			at := Instant{Now: noon.Add(c.wall), Counted: counted.From(minutes(c.now))}
			total, write := CountedTime(l, at, Outage{}, c.held, "BMCUnreachable")
			if got := int(total / time.Minute); got != c.counted {
				t.Errorf("counted %d min, want %d", got, c.counted)
			}
			switch {
			case (write == nil) != (c.write == nil):
				t.Errorf("write is %+v, want %+v", write, c.write)
			case write != nil && (write.Counted != c.write.Counted || write.AsOfCounted != c.write.AsOfCounted || write.Held != c.write.Held):
				t.Errorf("write is %+v, want %+v", write, c.write)
			}
		})
	}
}
