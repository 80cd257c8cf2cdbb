// SPDX-License-Identifier: Apache-2.0

// Package selection decides which servers a claim may have, and which of them it gets first. It has two halves:
//
//   - Eligible is the hard contract, in Go: no policy can loosen it.
//   - Policy is the part that a bundle writes in Rego (package metalaw.selection): allow, reject and score.
//
// The package is pure. Time is a fact of the input, ties are broken by name, and the same input gives the same result.
package selection
