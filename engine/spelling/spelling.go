// SPDX-License-Identifier: Apache-2.0

// Package spelling finds the word that an author meant.
package spelling

import "slices"

// tooFar is the distance from which two words have nothing to do with each other.
const tooFar = 4

// Distance is the number of letters that have to be added, taken away or exchanged to make one word of the other.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		previous := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := previous
			if a[i-1] != b[j-1] {
				cost = 1 + min(previous, row[j], row[j-1])
			}
			previous, row[j] = row[j], cost
		}
	}
	return row[len(b)]
}

// Nearest is the word that is most like another, the first in the alphabet of several; empty where none is like it. Words
// that differ in most of their letters are not alike.
func Nearest(word string, words []string) string {
	best, bestDistance := "", tooFar
	for _, candidate := range slices.Sorted(slices.Values(words)) {
		if d := Distance(word, candidate); d < bestDistance && 2*d <= max(len(word), len(candidate)) {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// Hint asks whether the nearest word was meant; otherwise is what it says where none is near.
func Hint(word string, words []string, otherwise string) string {
	if near := Nearest(word, words); near != "" {
		return "did you mean " + near + "?"
	}
	return otherwise
}
