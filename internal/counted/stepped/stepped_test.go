// SPDX-License-Identifier: Apache-2.0

package stepped_test

import (
	"testing"
	"time"

	"github.com/metalaw/metalaw/internal/counted/stepped"
)

func TestAStepMovesTheWallClockAlone(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour, 365 * 24 * time.Hour, -365 * 24 * time.Hour, 0} {
		now := time.Now()
		set := stepped.Wall(now, by)
		if got := set.Sub(now); got != 0 {
			t.Errorf("%s: the monotonic clock moved by %s", by, got)
		}
		if got := set.Round(0).Sub(now.Round(0)); got != by {
			t.Errorf("%s: the wall clock moved by %s", by, got)
		}
		if got := stepped.Wall(now.Round(0), by).Sub(now.Round(0)); got != by {
			t.Errorf("%s: without a monotonic reading %s", by, got)
		}
	}
}
