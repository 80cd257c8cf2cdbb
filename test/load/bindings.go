// SPDX-License-Identifier: Apache-2.0

package main

// bindings counts how often two had what only one may have. It is told of every change that the API server shows, so
// that a double binding counts even where it was undone at once.
type bindings struct {
	// ofServer is the claim that each server names, ofClaim the server that each claim names.
	ofServer, ofClaim map[string]string
	// byClaim counts the servers that name a claim, byServer the claims that name a server.
	byClaim, byServer map[string]int
	// doubles counts: a second claim that names a server, a second server that names a claim, and a server that went
	// from one claim to another without being free between.
	doubles int
}

func newBindings() *bindings {
	return &bindings{ofServer: map[string]string{}, ofClaim: map[string]string{}, byClaim: map[string]int{}, byServer: map[string]int{}}
}

// serverNames notes the claim that a server names; empty is none. A repeated call changes nothing.
func (b *bindings) serverNames(server, claim string) {
	if former := b.ofServer[server]; former != "" && claim != "" && former != claim {
		b.doubles++
	}
	b.note(b.ofServer, b.byClaim, server, claim)
}

// claimNames notes the server that a claim names; empty is none. A repeated call changes nothing.
func (b *bindings) claimNames(claim, server string) { b.note(b.ofClaim, b.byServer, claim, server) }

func (b *bindings) note(of map[string]string, by map[string]int, from, to string) {
	former := of[from]
	if former == to {
		return
	}
	if former != "" {
		delete(of, from)
		by[former]--
	}
	if to == "" {
		return
	}
	of[from] = to
	by[to]++
	if by[to] > 1 {
		b.doubles++
	}
}
