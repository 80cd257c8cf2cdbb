// SPDX-License-Identifier: Apache-2.0

// Package stepped shows tests the time of a machine whose wall clock was set, while its monotonic clock ran on. No product
// code imports it.
package stepped

import (
	"time"
	"unsafe"
)

// The layout of a time with a monotonic reading: a flag, 33 bits of seconds, 30 bits of nanoseconds.
const (
	monotonic  = 1 << 63
	secondBits = 30
)

// Wall is a time whose wall clock shows more by whole seconds. Its monotonic reading stays, which time.Time.Add moves as well.
func Wall(t time.Time, by time.Duration) time.Time {
	wall := (*uint64)(unsafe.Pointer(&t)) //nolint:gosec // Package time offers no other way to tell the two clocks apart.
	if *wall&monotonic == 0 {
		return t.Add(by)
	}
	*wall += uint64(by/time.Second) << secondBits // a step back wraps around, as it is meant to
	return t
}
