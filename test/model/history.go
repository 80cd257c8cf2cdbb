// SPDX-License-Identifier: Apache-2.0

package model

import "time"

// seen is one version of something, from the moment at which it became known.
type seen[T any] struct {
	at     time.Time
	object T
	gone   bool
}

// history is every version of one thing, oldest first.
type history[T any] []seen[T]

// put appends a version.
func (h *history[T]) put(at time.Time, object T) { *h = append(*h, seen[T]{at: at, object: object}) }

// end appends that the thing is gone.
func (h *history[T]) end(at time.Time) { *h = append(*h, seen[T]{at: at, gone: true}) }

// throughout says that something held at the beginning of a time and in every version until its end. It does not hold of
// what is gone, or was not yet there.
func (h history[T]) throughout(from, to time.Time, holds func(T) bool) bool {
	known := false
	for i, v := range h {
		if v.at.After(to) {
			break
		}
		if i+1 < len(h) && !h[i+1].at.After(from) {
			continue // replaced before the time began
		}
		if v.gone || !holds(v.object) {
			return false
		}
		known = known || !v.at.After(from)
	}
	return known
}

// ever says that something held in some version of a time.
func (h history[T]) ever(from, to time.Time, holds func(T) bool) bool {
	for i, v := range h {
		if v.at.After(to) {
			break
		}
		if i+1 < len(h) && !h[i+1].at.After(from) {
			continue
		}
		if !v.gone && holds(v.object) {
			return true
		}
	}
	return false
}

// last is the present version; false where the thing is gone.
func (h history[T]) last() (object T, there bool) {
	if len(h) == 0 || h[len(h)-1].gone {
		return object, false
	}
	return h[len(h)-1].object, true
}

// at is the version at a moment; false where there was none.
func (h history[T]) at(moment time.Time) (object T, there bool) {
	for _, v := range h {
		if v.at.After(moment) {
			break
		}
		object, there = v.object, !v.gone
	}
	return object, there
}
