// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/redfish"
)

// canary is a bundle that governs as one, which has a place for the server or none. It writes down how the server was seen to fare.
type canary struct {
	*rules
	governs *bundle.Bundle
	place   bool
	asked   int
	saw     []string
}

func (c *canary) Governing(*v1alpha1.Server) *bundle.Bundle { return c.governs }

func (c *canary) Admit(_ *v1alpha1.Server, b *bundle.Bundle) bool {
	c.asked++
	return c.place && b == c.governs
}

func (c *canary) Saw(s *v1alpha1.Server, rests bool) {
	text := "new"
	if s.Status.Lifecycle != nil {
		text = lifecycleText(s)
	}
	if rests {
		text += " rests"
	}
	if len(c.saw) == 0 || c.saw[len(c.saw)-1] != text {
		c.saw = append(c.saw, text)
	}
}

func TestAServerComesUnderACanaryInItsTurn(t *testing.T) {
	good, err := defaultBundle()
	if err != nil {
		t.Fatal(err)
	}
	next, bad := variant(t, "2.1.0"), halting(t)
	rests := func() *v1alpha1.Server { return serverIn(v1alpha1.StateAvailable, pinnedTo(good)) }
	halts := func() *v1alpha1.Server { return serverIn(v1alpha1.StateCleanup, toWipe, pinnedTo(bad)) }
	begins := func() *v1alpha1.Server {
		return serverIn("", func(s *v1alpha1.Server) { s.Status.Lifecycle = nil })
	}
	loses := func() *v1alpha1.Server { return serverIn(v1alpha1.StateAvailable, pinnedTo(variant(t, "9.0.0"))) }
	silent := func(m *machine) { m.silent = errDown }
	stranger := func(m *machine) { m.shows.Identity.UUID = "1a2b3c4d-0000-0000-0000-000000000002" }
	answers := func(*machine) {}
	for name, c := range map[string]struct {
		server func() *v1alpha1.Server
		place  bool
		change func(*machine)
		want   string
		asks   bool
	}{
		"at rest, where there is a place":                         {rests, true, answers, "Available 7 default-2.1.0", true},
		"not at rest while there is none":                         {rests, false, answers, "Available 7 default", true},
		"not while its BMC does not answer, and takes no place":   {rests, true, silent, "Available 7 default", false},
		"not while another machine answers":                       {rests, true, stranger, "Available 7 default", false},
		"from a halt":                                             {halts, true, answers, "Cleanup 8 default-2.1.0", true},
		"from a halt to what is in force while there is no place": {halts, false, answers, "Cleanup 8 default", true},
		"from a revision that is lost to what is in force":        {loses, false, answers, "Available 8 default", true},
		"also where its BMC is silent":                            {loses, true, silent, "Available 8 default", false},
		"as a new one":                                            {begins, true, answers, "Discovery 1 default-2.1.0", true},
		"else as a new one under what is in force":                {begins, false, answers, "Discovery 1 default", true},
		"as a new one whose BMC is silent under what is in force": {begins, true, silent, "Initial 1 default", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOff)
				c.change(m)
				w := inWorld(t, m, c.server(), dirtyInventory(&policyv1alpha1.Holder{Namespace: "shop", Name: "web", UID: "uid-web"}))
				if c.server().Status.Lifecycle == nil {
					w = inWorld(t, m, c.server())
				}
				fakes := &canary{governs: next, place: c.place, rules: &rules{target: good, pinned: map[string]*bundle.Bundle{
					good.Revision.Name: good, next.Revision.Name: next, bad.Revision.Name: bad}}}
				w.manager.Bundles, w.manager.Probation = fakes, fakes
				w.manager.run(time.Minute)
				if got := lifecycleText(w.server()); got != c.want || (fakes.asked > 0) != c.asks {
					t.Errorf("it is %s, and asked %d times for a place", got, fakes.asked)
				}
			})
		})
	}
}

func TestAServerThatWhatIsInForceHaltsWaitsForItsTurnUnderACanary(t *testing.T) {
	next, bad := variant(t, "2.1.0"), halting(t)
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateCleanup, toWipe, pinnedTo(bad)),
			dirtyInventory(&policyv1alpha1.Holder{Namespace: "shop", Name: "web", UID: "uid-web"}))
		fakes := &canary{governs: next, rules: &rules{target: bad, pinned: map[string]*bundle.Bundle{
			next.Revision.Name: next, bad.Revision.Name: bad}}}
		w.manager.Bundles, w.manager.Probation = fakes, fakes
		w.manager.run(time.Minute)
		if got := lifecycleText(w.server()); got != "Cleanup 7 default-2.0.0" || fakes.asked == 0 {
			t.Errorf("it is %s, and asked %d times for a place", got, fakes.asked)
		}
	})
}

func TestHowAServerIsSeenToFareUnderACanary(t *testing.T) {
	good, err := defaultBundle()
	if err != nil {
		t.Fatal(err)
	}
	failing := variant(t, "2.2.0", "{rule: ParkedAvailable, to: Parked,   when: parkAsked && poweredOff}",
		"{rule: ParkedAvailable, to: Parked,   when: parkAsked && poweredOff}\n    - {rule: Bad, to: Error, when: poweredOff && !held}")
	for name, c := range map[string]struct {
		next *bundle.Bundle
		age  time.Duration
		want []string
	}{
		"that leaves it at rest": {variant(t, "2.1.0"), 0, []string{"Available 7 default", "Available 7 default rests", "Available 7 default-2.1.0 rests"}},
		"that moves it on word which is fresh": {failing, 0, []string{"Available 7 default", "Available 7 default rests",
			"Error 8 default-2.2.0", "Error 8 default-2.2.0 rests"}},
		"that moves it once the word is fresh": {failing, time.Minute, []string{"Available 7 default", "Available 7 default rests",
			"Available 7 default-2.2.0", "Error 8 default-2.2.0", "Error 8 default-2.2.0 rests"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateAvailable, pinnedTo(good)))
				fakes := &canary{governs: good, place: true, rules: &rules{target: good, pinned: map[string]*bundle.Bundle{
					good.Revision.Name: good, c.next.Revision.Name: c.next}}}
				w.manager.Bundles, w.manager.Probation = fakes, fakes
				w.manager.run(5*time.Second + c.age)
				fakes.governs = c.next
				w.manager.run(5 * time.Second)
				if diff := cmp.Diff(c.want, fakes.saw); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		})
	}
}
