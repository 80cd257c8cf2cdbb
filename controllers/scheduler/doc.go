// SPDX-License-Identifier: Apache-2.0

// Package scheduler gives servers to claims. It is one loop on the leader: it walks the pending claims in order and binds
// them one by one, so that what one claim was given the next one sees as taken at once.
//
// A binding is two writes, first on the Server (spec.serverClaimRef and the claim's UID), then on the claim
// (spec.serverRef). Whatever happens between them is completed or undone from what is written. The files:
//
//   - index (a package of its own), pending.go: what is known, kept from the watches and from our own writes, newest version
//     wins;
//   - relation.go, decide.go, verdict.go: pure: what to do for a claim, and the words for why not;
//   - neighbours.go, placed.go: the claims of a namespace, and what a claim's placement makes of the servers and of them;
//   - bind.go, settle.go: the writes;
//   - gang.go, gangwrite.go: gangs, which get servers for all their members or for none;
//   - patience.go: spaces the writes that come to nothing;
//   - guard.go: keeps a claim's deletion and its binding apart;
//   - scheduler.go, setup.go, metrics.go: the loop and its wiring.
package scheduler
