// SPDX-License-Identifier: Apache-2.0

// Package index holds the fleet in memory in the form in which claims ask for it: which servers are free, which bear a
// label, which are written for a claim, and how many there are by place. The scheduler binds by it; admission and the
// command line answer from the same one whether a claim can be served at all.
//
// It does no I/O. What goes in are versions of servers, from a watch or from the answer to a write; an older version never
// replaces a newer one. The files:
//
//   - index.go: the versions, and the counts that follow them;
//   - entry.go: one version of a server, and what a change of it means to claims;
//   - assume.go: servers that count as claimed while their binding is being written;
//   - query.go: what can be asked;
//   - postings.go: the servers that bear a label.
package index
