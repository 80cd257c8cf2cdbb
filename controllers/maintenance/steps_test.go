// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"testing"
	"time"

	"github.com/metalaw/metalaw/engine/maintenance"
	"github.com/metalaw/metalaw/internal/counted"
)

// leads has another manager come after the one that was, and continue from so much counted time.
func (w *world) leads(from time.Duration) {
	w.restart()
	start := w.at
	w.s.counts = counted.NewClock(start, func() time.Duration { return w.at.Sub(start) })
	w.s.counts.Continue(counted.Time(from))
}

func TestANoticeIsCountedWhateverTheClockOfTheNextManagerSays(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for name, step := range map[string]time.Duration{
		"an hour forward": time.Hour, "an hour back": -time.Hour, "a year forward": year, "a year back": -year, "none": 0,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, free(claimed), claim(), sm("a", enforced))
			w.policy = &maintenance.Policy{EnforcedNotice: 15 * time.Minute}
			w.leads(100 * time.Minute)
			w.rounds()
			w.is("a", "Pending WaitsForNotice")
			w.after(5 * time.Minute)
			w.at = w.at.Add(step)
			w.leads(105 * time.Minute)
			w.after(9 * time.Minute)
			w.is("a", "Pending WaitsForNotice")
			w.after(2 * time.Minute)
			w.rounds()
			w.is("a", "InMaintenance ServerGranted")
		})
	}
}
