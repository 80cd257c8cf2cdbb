// SPDX-License-Identifier: Apache-2.0

// Package lists works on lists of objects, which are too large to be copied one by one.
package lists

// Map is what one makes of each element.
func Map[T, U any](all []T, one func(*T) U) []U {
	made := make([]U, len(all))
	for i := range all {
		made[i] = one(&all[i])
	}
	return made
}

// Find is the first element that is wanted; nil where there is none.
func Find[T any](all []T, wanted func(*T) bool) *T {
	for i := range all {
		if wanted(&all[i]) {
			return &all[i]
		}
	}
	return nil
}
