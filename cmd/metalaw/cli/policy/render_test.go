// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"github.com/metalaw/metalaw/engine/lifecycle"
	"github.com/metalaw/metalaw/engine/lifecycle/render"
	"github.com/metalaw/metalaw/policies"
)

func TestServersInStatesThatAreNotDrawnAreTold(t *testing.T) {
	files, err := policies.Shipped("default")
	if err != nil {
		t.Fatal(err)
	}
	l, found, err := lifecycle.Compile("lifecycle.yaml", files["lifecycle.yaml"], policies.Vocabulary())
	if err != nil || l == nil {
		t.Fatal(err, found)
	}
	for name, c := range map[string]struct {
		counts render.Counts
		want   string
	}{
		"nothing is counted":          {nil, ""},
		"all are in states it has":    {render.Counts{"Available": 3}, ""},
		"some are in a state of old":  {render.Counts{"Available": 3, "BurnIn": 2, "Adrift": 1}, "1 server in Adrift, 2 servers in BurnIn"},
		"some have not been told yet": {render.Counts{"": 2}, "2 servers without a state"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := undrawn(l, c.counts); got != c.want {
				t.Errorf("%q", got)
			}
		})
	}
}
