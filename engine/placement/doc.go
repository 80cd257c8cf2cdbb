// SPDX-License-Identifier: Apache-2.0

// Package placement reads what a claim asks for beyond labels: a small YAML document in one annotation, with conditions in
// CEL over the facts of a server. It is pure: the same document, server and counts give the same answer.
//
// Whoever binds claims goes through these steps. All methods can be called on a nil Placement, which asks for nothing.
//
//  1. Parse (or a Cache) compiles the document. A document that does not parse asks for something that nobody knows: such a
//     claim is never bound.
//  2. Sort looks at the servers that selection.Eligible lets the claim have, with the counts of Spread, and yields them by
//     alternative, and the others counted by code.
//  3. The policy of the bundle is asked about the first group; where it allows none of them, about the next. The first group
//     of which it allows any is the claim's, so that a later alternative is taken only when no earlier one can be had now.
//  4. The score of the policy and that of Sort are added; the highest is first, and names break ties.
//
// Counts are by place, the value of Spread.Place. They have an entry, of 0 if need be, for each place where a server stands
// that the claim could ever have: one that its selector and Judge accept, in whatever state. The value is how many other
// claims are there for which Spread.Counts is true, bound or about to be. They must be made anew when a claim is bound,
// also within a gang.
//
// A claim with a Gang is bound together with the others of that name in its namespace, or not at all: MusterOf says when
// they are all there. Each member is sorted by its own placement, with those chosen before it in the counts.
package placement
