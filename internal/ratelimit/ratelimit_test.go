// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"fmt"
	"testing"
	"time"
)

func TestTheSameIsToldOnceInAWhile(t *testing.T) {
	start := time.Unix(0, 0)
	teller := New(time.Minute, 2)
	for i, step := range []struct {
		key   string
		after time.Duration
		want  bool
	}{
		{"a", 0, true}, {"a", time.Second, false}, {"b", time.Second, true},
		{"c", 2 * time.Second, false}, // there is no room
		{"a", time.Minute, true}, {"c", time.Minute + time.Second, true},
	} {
		if got := teller.Due(step.key, start.Add(step.after)); got != step.want {
			t.Errorf("step %d: %s after %s: %t", i, step.key, step.after, got)
		}
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	teller := New(time.Minute, 100)
	for i := range 1000 {
		teller.Due(fmt.Sprint(i), time.Unix(int64(i), 0))
	}
	if len(teller.told) > 100 {
		t.Errorf("%d are remembered", len(teller.told))
	}
}
