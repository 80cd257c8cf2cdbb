// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// oracle is a policy that says by heart which servers it might ever allow, and remembers about which it was asked.
type oracle struct {
	byName
	asked []string
	// says is what it says of a server by its name; of others it says that it might.
	says map[string]selection.Attainment
}

func (o *oracle) Attain(_ context.Context, _ selection.Claim, all []*selection.PreparedCandidate, _ selection.Fleet) ([]selection.Attainment, error) {
	each := make([]selection.Attainment, len(all))
	for i, c := range all {
		o.asked = append(o.asked, c.Name())
		is, told := o.says[c.Name()]
		if !told {
			is = selection.Attained
		}
		each[i] = is
	}
	return each, nil
}

func (o *oracle) Attainable(context.Context, selection.Claim, []*selection.PreparedCandidate, selection.Fleet) ([]*selection.PreparedCandidate, error) {
	panic("nobody asks for that")
}

func (o *oracle) TurnsAwayForGood() bool { return true }

// Asks tells claims apart by their name.
func (o *oracle) Asks(c selection.Claim) string { return c.Name }

func TestWhatAPolicyMightEverAllowIsAskedOnce(t *testing.T) {
	rack := func(rack string) func(*v1alpha1.Server) { return labelled(policies.RackMetadata, rack) }
	spread := placed("spread: {key: rack, claims: {matchLabels: {app: web}}}")
	for name, c := range map[string]struct {
		says map[string]selection.Attainment
		// change happens between the two times that the places are asked for.
		change func(*view)
		claim  func(*v1alpha1.ServerClaim)
		// asked are the servers that it is asked about the second time, and places what comes of that.
		asked, places string
	}{
		"nothing has changed":              {nil, func(*view) {}, nil, "", "r1 r2 r3"},
		"it turns one away":                {map[string]selection.Attainment{"b": selection.TurnedAway}, func(*view) {}, nil, "", "r1 r3"},
		"its rules fail for one":           {map[string]selection.Attainment{"b": selection.Unsure}, func(*view) {}, nil, "b", "r1 r2 r3"},
		"another revision":                 {nil, func(v *view) { v.revision = engine.Revision{Name: "next"} }, nil, "a b c", "r1 r2 r3"},
		"a claim that asks something else": {nil, func(*view) {}, func(c *v1alpha1.ServerClaim) { c.Name = "other" }, "a b c", "r1 r2 r3"},
		"a server has another label": {nil, func(v *view) { v.fleet.Saw(aServer("b", rack("r2"), labelled("k", "v"), at("2"))) }, nil,
			"b", "r1 r2 r3"},
		"a server has another inventory": {nil, func(v *view) {
			v.fleet.SawInventory(&policyv1alpha1.ServerInventory{Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: "uuid-b"},
				Report: &policyv1alpha1.ProbeReport{Data: policyv1alpha1.ProbeData{CPU: []policyv1alpha1.CPU{{TotalCores: 8}}}}})
		}, nil, "b", "r1 r2 r3"},
		"another server has taken the place of one": {nil, func(v *view) {
			v.fleet.Gone("b")
			v.fleet.Saw(aServer("d", rack("r4")))
		}, nil, "d", "r1 r3 r4"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &oracle{says: c.says}
			v := newView(fleetOf(aServer("a", rack("r1")), aServer("b", rack("r2")), aServer("c", rack("r3"))), o, engine.Revision{Name: "first"})
			v.placesOf(t.Context(), askedBy(aClaim("c", spread)))
			o.asked = nil
			clear(v.places)
			c.change(v)
			claim := aClaim("c", spread)
			if c.claim != nil {
				c.claim(claim)
			}
			var racks []string
			for place := range v.placesOf(t.Context(), askedBy(claim)) {
				racks = append(racks, place)
			}
			slices.Sort(o.asked)
			slices.Sort(racks)
			if got := strings.Join(o.asked, " "); got != c.asked {
				t.Errorf("it was asked about %q, want %q", got, c.asked)
			}
			if got := strings.Join(racks, " "); got != c.places {
				t.Errorf("places %q, want %q", got, c.places)
			}
		})
	}
}

func TestPlacesAreThoseOfTheClaim(t *testing.T) {
	o := &oracle{}
	v := newView(fleetOf(aServer("a", labelled(policies.RackMetadata, "r1"))), o, engine.Revision{})
	for _, name := range []string{"one", "two", "one"} {
		v.placesOf(t.Context(), askedBy(aClaim(name, placed("spread: {key: rack, claims: {matchLabels: {app: web}}}"))))
	}
	if got := strings.Join(o.asked, " "); got != "a a" {
		t.Errorf("it was asked about %q, want once for each of two questions", got)
	}
}

func TestNoMoreIsRememberedThanThereIsRoomFor(t *testing.T) {
	a, revision := &attainments{}, engine.Revision{}
	const servers, questions = mostAttained / 8, 12
	for i := range questions {
		each := a.of(revision, fmt.Sprint(i), servers)
		each[0] = attainmentOf(selection.Attained, 1)
		if len(a.known) > 8 || a.known[fmt.Sprint(i)] == nil {
			t.Fatalf("after %d questions %d are remembered", i+1, len(a.known))
		}
	}
	if len(a.known) != 8 {
		t.Errorf("%d questions are remembered, want 8: no more are forgotten than must be", len(a.known))
	}
}
