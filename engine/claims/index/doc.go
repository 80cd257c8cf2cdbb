// SPDX-License-Identifier: Apache-2.0

// Package index holds the fleet in memory in the form in which claims ask for it: which servers are free, which bear a
// label, which are written for a claim, and how many there are by place.
//
// It does no I/O. The files:
//
//   - index.go: the versions, and the counts that follow them;
//   - entry.go: one version of a server;
//   - assume.go: servers that count as claimed while their binding is being written;
//   - query.go: what can be asked;
//   - postings.go: the servers that bear a label.
package index
