// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"testing"

	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/policies/index"
)

func TestHoweverManyPlacementsThereWereOnlySoManyAreRemembered(t *testing.T) {
	fleet := index.New()
	fleet.Saw(aServer("s"))
	j := newJudgements()
	for n := range 2*mostTexts + 1 {
		p, found := placement.Parse("placement", fmt.Sprintf("where: server.name != 'm%d'\n", n))
		if p == nil {
			t.Fatal(found)
		}
		if !j.judge(j.of(p), fleet.Get("s")).accepted() {
			t.Fatal(n)
		}
		if len(j.texts) > mostTexts {
			t.Fatalf("%d are remembered after %d", len(j.texts), n+1)
		}
	}
}
