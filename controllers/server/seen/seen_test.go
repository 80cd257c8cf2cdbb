// SPDX-License-Identifier: Apache-2.0

package seen_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/seen"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/policies"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const (
	minute = time.Minute
	year   = 365 * 24 * time.Hour
)

// at is a moment some minutes after noon, of ten hours and as many minutes in counted time, by a wall clock that is ahead.
func at(minutes int, ahead time.Duration) policies.Instant {
	passed := time.Duration(minutes) * minute
	return policies.Instant{Now: noon.Add(passed + ahead), Counted: counted.Time(10*time.Hour + passed)}
}

func TestWhenARecordWasMade(t *testing.T) {
	ten := metav1.Duration{Duration: 10 * time.Hour}
	for name, c := range map[string]struct {
		recorded time.Duration // after noon, by the clock of the process that made the record
		counted  metav1.Duration
		looks    []policies.Instant
		want     time.Duration // before the last look
	}{
		"by its counted time, whatever the clocks say": {year, ten, []policies.Instant{at(3, -time.Hour)}, 3 * minute},
		"also after a step":                            {0, ten, []policies.Instant{at(1, 0), at(3, year)}, 3 * minute},
		"by its time where it has no other":            {0, metav1.Duration{}, []policies.Instant{at(3, 0)}, 3 * minute},
		"no later than it was first seen":              {year, metav1.Duration{}, []policies.Instant{at(1, 0), at(3, 0)}, 2 * minute},
		"which a step does not change":                 {year, metav1.Duration{}, []policies.Instant{at(1, 0), at(3, -time.Hour)}, 2 * minute},
	} {
		t.Run(name, func(t *testing.T) {
			var r seen.Records
			var got time.Duration
			for _, now := range c.looks {
				got = now.Now.Sub(r.RecordedAt(seen.Power, "id", metav1.NewMicroTime(noon.Add(c.recorded)), c.counted, now))
			}
			if got != c.want {
				t.Errorf("it was made %s ago, want %s", got, c.want)
			}
		})
	}
}

func TestAWordOfAWipeIsHeardWhenItIsFirstSeen(t *testing.T) {
	said := func(after time.Duration, state policyv1alpha1.WipeState) *policyv1alpha1.ServerInventory {
		return &policyv1alpha1.ServerInventory{Wipe: &policyv1alpha1.WipeReport{Entry: 7, State: state, UpdatedAt: metav1.NewMicroTime(noon.Add(after))}}
	}
	var r seen.Records
	first, second := said(-year, policyv1alpha1.WipeRunning), said(0, policyv1alpha1.WipeRunning)
	heard := r.WipeHeard(first, at(1, 0))
	if !heard.Equal(noon.Add(minute)) {
		t.Errorf("at first: %s", heard)
	}
	if got := r.WipeHeard(first, at(3, 0)); !got.Equal(heard) {
		t.Errorf("again: %s", got)
	}
	if got := seen.HeardAgain(first, first, heard, noon.Add(4*minute)); !got.Equal(heard) {
		t.Errorf("read past the cache, the same: %s", got)
	}
	if got := seen.HeardAgain(first, second, heard, noon.Add(4*minute)); !got.Equal(noon.Add(4 * minute)) {
		t.Errorf("read past the cache, another: %s", got)
	}
	if got := r.WipeHeard(second, at(5, 0)); !got.Equal(noon.Add(5 * minute)) {
		t.Errorf("another word: %s", got)
	}
	for _, none := range []*policyv1alpha1.ServerInventory{nil, {}, said(0, policyv1alpha1.WipeVerified)} {
		if got := r.WipeHeard(none, at(6, 0)); !got.IsZero() {
			t.Errorf("where none runs: %s", got)
		}
	}
}
