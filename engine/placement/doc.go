// SPDX-License-Identifier: Apache-2.0

// Package placement reads what a claim asks for beyond labels: a small YAML document in one annotation, with conditions in
// CEL over the facts of a server. It is pure: the same document, server and counts give the same answer. All methods can be called on a
// nil Placement, which asks for nothing.
//
// Parse (or a Cache) compiles the document. A claim whose document does not parse is never bound. Judge says of a server that
// selection.Eligible lets the claim have whether the placement accepts it, in which alternative, and with which score. Spread says where
// one more claim may go. Package solve puts these together with the policy of the bundle, and serves a Gang as a whole.
package placement
