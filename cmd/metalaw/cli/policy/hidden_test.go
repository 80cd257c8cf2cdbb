// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/hidden"
	"github.com/metalaw/metalaw/policies"
)

func TestWhatAPromotionSaysOfHiddenStorage(t *testing.T) {
	for want, f := range map[string]hidden.Fleet{
		"wipe.hidden: Fail would stop 0 servers, and of 0 it is not known":                            {},
		"wipe.hidden: Fail would stop 0 servers, and of 2 it is not known":                            {Unknown: []string{"a", "b"}},
		"wipe.hidden: Fail would stop 1 server, and of 1 it is not known: a (nvme1)":                  {Stops: []string{"a (nvme1)"}, Unknown: []string{"b"}},
		"wipe.hidden: Fail would stop 6 servers, and of 0 it is not known: a; b; c; d; e; and 1 more": {Stops: []string{"a", "b", "c", "d", "e", "f"}},
	} {
		if got := hiddenWords(f); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestWhetherABundleFailsForHiddenStorage(t *testing.T) {
	shipped, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		t.Fatal(err)
	}
	former, err := policies.Former()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files bundle.Files
		fails bool
	}{
		"the shipped one does":               {shipped, true},
		"a former one does not":              {former["default-1.0.0-9e2d2d5d15"], false},
		"one that is not whole is not known": {nil, false},
		"one that does not compile, neither": {bundle.Files{"bundle.yaml": []byte("no")}, false},
	} {
		if wipe, _ := wipeOf(c.files); (wipe.Hidden == bundle.HiddenFail) != c.fails {
			t.Errorf("%s: %q", name, wipe.Hidden)
		}
	}
}
