// SPDX-License-Identifier: Apache-2.0

package counted_test

import (
	"testing"
	"time"

	"github.com/metalaw/metalaw/internal/counted"
)

const second = counted.Time(time.Second)

func TestAMomentIsStoredAndReadAgain(t *testing.T) {
	for _, at := range []counted.Time{second, 90*second + 5, 9_000 * 3600 * second} {
		if got := counted.Parse(at.String()); got < at || got >= at+counted.Time(time.Millisecond) {
			t.Errorf("%d is stored as %s and read as %d", at, at, got)
		}
		if got := counted.From(at.Stored()); got != counted.Parse(at.String()) {
			t.Errorf("%d: the field has %d", at, got)
		}
	}
	for _, text := range []string{"", "x", "-5s", "0s", "noGrace", "5", "NaN", "2000000h"} {
		if got := counted.Parse(text); got != 0 {
			t.Errorf("%q tells %s", text, got)
		}
	}
}

func TestAnAgeIsADifferenceOfCountedTimes(t *testing.T) {
	for name, c := range map[string]struct {
		now, at counted.Time
		age     time.Duration
		known   bool
	}{
		"of a record before":            {100 * second, 40 * second, time.Minute, true},
		"of one made just now":          {100 * second, 100*second + 5, 0, true},
		"of one that is ahead":          {100 * second, 101 * second, 0, false},
		"of one without a counted time": {100 * second, 0, 0, false},
		"where no count was read":       {0, 40 * second, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			if age, known := c.now.Since(c.at); age != c.age || known != c.known {
				t.Errorf("got %s, %v", age, known)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("1h2m3.004s")
	f.Add("noGrace")
	f.Fuzz(func(t *testing.T, text string) {
		if at := counted.Parse(text); at < 0 || at > 0 && counted.Parse(at.String()) < at {
			t.Errorf("%q tells %d, which is stored as %s", text, at, at)
		}
	})
}
