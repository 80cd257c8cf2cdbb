// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"testing"

	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

func TestEveryCodeOfMetalawPassesSomehow(t *testing.T) {
	all := append(selection.Codes(), placement.Codes()...)
	for _, c := range all {
		if _, known := passing[c.Code]; !known {
			t.Errorf("it is not said how %q passes", c.Code)
		}
	}
	if len(passing) != len(all) {
		t.Errorf("%d codes pass, and there are %d", len(passing), len(all))
	}
}

func TestCountsAreAddedByCode(t *testing.T) {
	got := sum(map[string]int{"taint": 2, "gang": 1}, map[string]int{"taint": 3, "spread": 4})
	if len(got) != 3 || got["taint"] != 5 || got["gang"] != 1 || got["spread"] != 4 {
		t.Error(got)
	}
}
