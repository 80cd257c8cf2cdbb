// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"testing"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestOnlyALaterVersionOfAClaimIsTakenIn(t *testing.T) {
	version := func(v string, more ...func(*v1alpha1.ServerClaim)) *v1alpha1.ServerClaim {
		return aClaim("c", append(more, func(c *v1alpha1.ServerClaim) { c.ResourceVersion, c.Labels = v, map[string]string{"version": v} })...)
	}
	ended := func(c *v1alpha1.ServerClaim) { c.DeletionTimestamp = &c.CreationTimestamp }
	for _, c := range []struct {
		name         string
		known        *v1alpha1.ServerClaim // from the watch, before
		came         *v1alpha1.ServerClaim
		wrote        bool // in the answer to a write, or else from the watch
		label        string
		open, matter bool
	}{
		{name: "a later version from the watch", known: version("100"), came: version("101"), label: "101", open: true, matter: true},
		{name: "the same version from the watch", known: version("100"), came: version("100"), label: "100", open: true},
		{name: "an older version from the watch", known: version("100"), came: version("99"), label: "100", open: true},
		{name: "a later version in an answer", known: version("100"), came: version("101"), wrote: true, label: "101", open: true},
		{name: "an older version in an answer", known: version("100"), came: version("99"), wrote: true, label: "100", open: true},
		{name: "an end in an answer", known: version("100"), came: version("101", ended), wrote: true, label: "101"},
		{name: "an older version, from before the claim ended", known: version("100", ended), came: version("99"), label: "100"},
		{name: "an older answer, from before the claim ended", known: version("100", ended), came: version("99"), wrote: true, label: "100"},
		{name: "an answer about a claim that is gone", came: version("101"), wrote: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPending()
			if c.known != nil {
				p.saw(c.known, epoch)
				for _, w := range p.claims {
					w.due = false
				}
			}
			if c.wrote {
				p.wrote(c.came)
			} else if matter := p.saw(c.came, epoch); matter != c.matter {
				t.Errorf("it matters: %t, want %t", matter, c.matter)
			}
			if open := p.isOpen("uid-c"); open != c.open {
				t.Errorf("the claim is open: %t, want %t", open, c.open)
			}
			if w := p.claims["uid-c"]; w != nil && w.claim.Labels["version"] != c.label {
				t.Errorf("the claim is served by version %s, want %s", w.claim.Labels["version"], c.label)
			}
			for _, n := range p.ofNamespace("ns") {
				if got := n.claim.Labels["version"]; got != c.label {
					t.Errorf("others see version %s, want %s", got, c.label)
				}
			}
		})
	}
}
