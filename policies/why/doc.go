// SPDX-License-Identifier: Apache-2.0

// Package why says which servers one claim could have now, and of all others why not. It is pure: what goes in are the
// objects as somebody read them and the instant, and the same objects give the same answer.
//
// The answer is the scheduler's, taken apart: a server that Judge says fits is one that the scheduler would take, in the same
// order; the counts by code are those of the claim's condition Bound. The files:
//
//   - fleet.go: the objects, and what a binding changes about them;
//   - judge.go: the answer;
//   - gang.go, search.go, match.go: the answers for claims that get servers together;
//   - short.go: what members are told for whom there are too few;
//   - kept.go: which servers may be kept free for a gang that waits;
//   - near.go: which of the servers that do not fit come nearest.
package why
