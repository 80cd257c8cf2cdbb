// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"testing"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// holding is a store in which one bundle is in force, held or not.
type holding struct {
	bundle *bundle.Bundle
	held   bool
}

func (h holding) Active() *bundle.Bundle { return h.bundle }

func (h holding) Held(name string) (string, bool) {
	return "a scenario fails", h.held && name == h.bundle.Revision.Name
}

func TestNothingIsBoundUnderARevisionThatIsHeld(t *testing.T) {
	shipped, err := policies.Default()
	if err != nil {
		t.Fatal(err)
	}
	if policy, revision := inForce(holding{shipped, true})(); policy != nil || revision.Name != shipped.Revision.Name {
		t.Errorf("policy %v of %s", policy, revision.Name)
	}
	if policy, _ := inForce(holding{shipped, false})(); policy == nil {
		t.Error("there is no policy under a revision that is not held")
	}
	inIts := *shipped // just before that is mended, as is asked whether it is held just after
	inIts.StandsIn = true
	if policy, _ := inForce(holding{&inIts, false})(); policy != nil {
		t.Error("what stands in for a revision that cannot be compiled chooses servers")
	}
}
