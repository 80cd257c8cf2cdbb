// SPDX-License-Identifier: Apache-2.0

// Package placement reads what a claim asks for beyond labels: a small YAML document in one annotation, with conditions in
// CEL over the facts of a server. It is pure: the same document, server and counts give the same answer.
//
// Whoever binds claims goes through these steps. All methods can be called on a nil Placement, which asks for nothing.
//
//  1. Parse (or a Cache) compiles the document. A document that does not parse asks for something that nobody knows: such a
//     claim is never bound.
//  2. Where there is a Spread, Places makes the counts from all servers that the selector matches, in whatever state. Each
//     other claim of the namespace for which Spread.Counts is true, bound or about to be, adds one at Spread.Place of its
//     server, if that place is among them.
//  3. Sort looks at the servers that selection.Eligible lets the claim have now, with these counts, and yields them by
//     alternative, and the others counted by code.
//  4. The policy of the bundle is asked about the first group; where it allows none of them, about the next. The first group
//     of which it allows any is the claim's, so that a later alternative is taken only when no earlier one can be had now.
//     Where Prefers, it is asked for its whole ranking and not only for the head.
//  5. The score of the policy and that of Sort are added; the highest is first, and names break ties.
//
// The counts change with every claim that is bound, also within a gang.
//
// A claim with a Gang is bound together with the others of that name in its namespace, or not at all: MusterOf says when
// they are all there. Each member goes through the steps in turn, with the servers of those before it taken and counted. Where
// one of them finds none, package matching looks for another way to serve them all, in which a member may also get a server of a
// later alternative. Where there is none, none is bound, and the servers that were found count under CodeGang.
package placement
