// SPDX-License-Identifier: Apache-2.0

package explorer_test

import (
	"testing"
	"time"

	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/test/explorer"
)

func TestTheShippedBundlesBreakNothing(t *testing.T) {
	files, err := policies.Shipped("default")
	if err != nil {
		t.Fatal(err)
	}
	m, err := explorer.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	o := explorer.Quick
	o.Worlds, o.Disturbances = 3_000_000, 4
	began := time.Now()
	r := m.Explore(o)
	t.Logf("%d worlds, %d steps in %s, complete %t, %d states", r.Worlds, r.Steps, time.Since(began), r.Complete, len(r.States))
	for _, v := range r.Violations {
		t.Errorf("%s", v)
	}
}
