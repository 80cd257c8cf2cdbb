// SPDX-License-Identifier: Apache-2.0

// Package counted holds time that no step of a wall clock changes: it grows by the monotonic clocks of managers, and each
// leader continues from what the former one stored. It reads no clock itself.
package counted

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Time is a moment in counted time. The zero Time is not known.
type Time time.Duration

// least is where counting begins, so that no moment is the zero Time.
const least = Time(time.Second)

// longest is the latest moment that is believed: a century.
const longest = 100 * 365 * 24 * time.Hour

// precision is how exactly a moment is stored.
const precision = time.Millisecond

// Parse reads a moment as String writes it; any other text tells none.
func Parse(text string) Time {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > longest {
		return 0
	}
	return Time(d)
}

// From is the moment that a field of an object holds.
func From(d metav1.Duration) Time {
	if d.Duration <= 0 || d.Duration > longest {
		return 0
	}
	return Time(d.Duration)
}

// String is the moment as an annotation holds it.
func (t Time) String() string { return t.stored().String() }

// Stored is the moment as a field of an object holds it.
func (t Time) Stored() metav1.Duration { return metav1.Duration{Duration: t.stored()} }

// stored rounds up, so that no age is longer than it is.
func (t Time) stored() time.Duration {
	return (time.Duration(t) + precision - 1).Truncate(precision)
}

// Since is how long ago a moment was; false where that is not known. A moment in the future was stored under a count that
// is lost, and tells nothing, except within the precision of what is stored.
func (t Time) Since(at Time) (time.Duration, bool) {
	age := time.Duration(t - at)
	if t == 0 || at == 0 || age <= -precision {
		return 0, false
	}
	return max(0, age), true
}

// Moment is a recorded time on the scale of a wall clock that shows now at the counted time t. Where counted time does not
// tell, it is the time as it was recorded.
func (t Time) Moment(now time.Time, at Time, recorded time.Time) time.Time {
	if age, ok := t.Since(at); ok {
		return now.Add(-age)
	}
	return recorded
}
