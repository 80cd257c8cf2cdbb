// SPDX-License-Identifier: Apache-2.0

// Package scheduler gives servers to claims. It is one loop on the leader: it walks the pending claims in order and decides on
// one after the other, so that what one claim was given the next one sees as taken at once. What was decided is written by a few
// workers side by side, while the loop goes on.
//
// A binding is two writes, first on the Server (spec.serverClaimRef and the claim's UID), then on the claim
// (spec.serverRef). Whatever happens between them is completed or undone from what is written. The files:
//
//   - index (a package of its own), pending.go, order.go: what is known, kept from the watches and from our own writes, newest
//     version wins; and in which order claims are served;
//   - classes.go, apart.go: which claims a change of a server wakes: those that it could satisfy, and those that keep apart from others;
//   - scheduler.go, run.go: a pass, and what becomes of what its workers write;
//   - relation.go, decide.go, choice.go, placed.go: what to do for a claim: the servers that it can have, what its placement and the
//     policy make of them;
//   - bind.go, side.go, settle.go, suspects.go: the writes, and what undoes those that no claim stands behind;
//   - neighbours.go: the claims of a namespace, to those that have to do with each other;
//   - gang.go: gangs, which get servers for all their members or for none. gangfind.go and gangmatch.go look for the servers (with
//     package engine/matching), gangwrite.go writes them, gangback.go completes or gives back what is written in part, gangkeep.go keeps
//     servers free for a gang that waits, gangshort.go has the words;
//   - verdict.go, words.go: the words for why not, and when they are brought up to date;
//   - patience.go: spaces the writes that come to nothing;
//   - guard.go: keeps a claim's deletion and its binding apart;
//   - feasible, feed (packages of their own): whether a claim could ever be satisfied, and what keeps the index up to date;
//   - setup.go, metrics.go: the wiring.
package scheduler
