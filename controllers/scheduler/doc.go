// SPDX-License-Identifier: Apache-2.0

// Package scheduler gives servers to claims. It is one loop on the leader: a cycle walks the pending claims in order and decides on
// one after the other. A server that one claim gets is taken for the next claim at once. Workers write the decisions meanwhile.
//
// A binding is two writes, first on the Server (spec.serverClaimRef and the claim's UID), then on the claim
// (spec.serverRef). Whatever happens between them is completed or undone from what is written. The files:
//
//   - pending.go, namespace.go, classes.go, spread.go: the queue of claims, and which of them a change wakes;
//   - scheduler.go, setup.go, cycle.go, gang.go, rules.go: the loop, and what it does for a claim or a gang;
//   - bind.go, workers.go, guard.go: the writes, side by side;
//   - undo.go, uncertain.go, backoff.go: what is taken back, what is uncertain, and how long to wait;
//   - message.go, verdict.go, metrics.go: conditions, Events and metrics.
//
// Package engine/claims/solve decides which server a claim gets. Package informer keeps the index of the fleet.
package scheduler
