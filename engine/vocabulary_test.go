// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"

	"github.com/metalaw/metalaw/engine"
)

func TestWhatIsMadeOfAVocabularyIsKeptOnlyOnceItIsSettled(t *testing.T) {
	open := &engine.Vocabulary{AgeFact: "lamp.age"}
	settled := &engine.Vocabulary{AgeFact: "lamp.age"}
	settled.Settle()
	copied := *settled
	for name, c := range map[string]struct {
		words *engine.Vocabulary
		want  string
	}{
		"one that may still change":                 {open, "lamp.burning"},
		"one that is settled":                       {settled, "lamp.age"},
		"a copy of a settled one, which may change": {&copied, "lamp.burning"},
	} {
		t.Run(name, func(t *testing.T) {
			age := func() (any, error) { return c.words.AgeFact, nil }
			if got, err := c.words.Made(age); got != "lamp.age" || err != nil {
				t.Fatalf("at first got %v, %v", got, err)
			}
			c.words.AgeFact = "lamp.burning"
			if got, err := c.words.Made(age); got != c.want || err != nil {
				t.Errorf("got %v, %v; want %s", got, err, c.want)
			}
		})
	}
}
