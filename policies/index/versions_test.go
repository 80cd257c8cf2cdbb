// SPDX-License-Identifier: Apache-2.0

package index

import (
	"testing"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestOnlyALaterVersionReplacesWhatIsKnown(t *testing.T) {
	for _, c := range []struct {
		name     string
		came     []func(*v1alpha1.Server)
		saw      bool // from the watch, or else in the answer to a write
		replaces bool
	}{
		{name: "a later version from the watch", saw: true, came: []func(*v1alpha1.Server){at("101")}, replaces: true},
		{name: "the same version from the watch", saw: true, came: []func(*v1alpha1.Server){at("100")}},
		{name: "an older version from the watch", saw: true, came: []func(*v1alpha1.Server){at("99")}},
		{name: "an older version with fewer digits", saw: true, came: []func(*v1alpha1.Server){at("9")}},
		{name: "a version from the watch that cannot be compared", saw: true, came: []func(*v1alpha1.Server){at("x")}, replaces: true},
		{name: "a server made anew whose version is lower", saw: true, came: []func(*v1alpha1.Server){at("99"), ofUID("another")}, replaces: true},
		{name: "a later version in an answer", came: []func(*v1alpha1.Server){at("101")}, replaces: true},
		{name: "the same version in an answer", came: []func(*v1alpha1.Server){at("100")}},
		{name: "an answer that comes after a later version was seen", came: []func(*v1alpha1.Server){at("99")}},
		{name: "an answer about the server that had the name before", came: []func(*v1alpha1.Server){at("101"), ofUID("another")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := fleetOf(aServer("a", at("100")))
			known, came := x.Get("a"), aServer("a", append(c.came, writtenFor("c", "uid-c"))...)
			if !c.saw {
				x.Wrote(came)
			} else if change := x.Saw(came); change.Matters() != c.replaces {
				t.Errorf("it matters: %t, want %t", change.Matters(), c.replaces)
			}
			if replaced := x.Get("a") != known; replaced != c.replaces {
				t.Errorf("replaced: %t, want %t", replaced, c.replaces)
			}
			if held := len(x.HeldBy(ClaimKey{Namespace: "ns", Name: "c"})) == 1; held != c.replaces {
				t.Errorf("held by the claim: %t, want %t", held, c.replaces)
			}
		})
	}
}
