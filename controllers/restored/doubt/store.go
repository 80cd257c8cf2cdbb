// SPDX-License-Identifier: Apache-2.0

package doubt

import "strconv"

// lowerThanBefore is how many answers in a row must be lower before the store counts as restored.
const lowerThanBefore = 2

// Store is what a process remembers of the resource versions of its consistent lists. The zero Store remembers none.
type Store struct {
	// Highest is the highest that was heard, and Heard the last one.
	Highest, Heard uint64
	// lower is how many in a row were lower.
	lower int
}

// Hear takes in the resource version of a consistent list. Text that is no number says nothing.
func (s Store) Hear(version string) Store {
	n, err := strconv.ParseUint(version, 10, 64)
	switch {
	case err != nil || n == 0:
	case n < s.Highest:
		s.Heard = n
		s.lower++
	default:
		s.Heard, s.Highest, s.lower = n, n, 0
	}
	return s
}

// Restored says that the store went back: it was restored from a snapshot.
func (s Store) Restored() bool { return s.lower >= lowerThanBefore }

// Known is the store as it is, once a freeze tells that it went back.
func (s Store) Known() Store { return Store{Highest: s.Heard, Heard: s.Heard} }
