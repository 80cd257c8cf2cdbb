// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/metalaw/metalaw/engine/maintenance"
)

// obstaclesOf are the reasons for which the first maintenance of a snapshot waits, with the servers that fill its limits.
func obstaclesOf(s Snapshot) string {
	var words []string
	for _, o := range Decide(s)[0].Obstacles {
		words = append(words, strings.Join(append([]string{o.Reason}, o.Servers...), " "))
	}
	return strings.Join(words, ", ")
}

func TestEverythingThatAMaintenanceWaitsForIsNamedAtOnce(t *testing.T) {
	fleet := limit(maintenance.Limit{Name: "fleet", Most: maintenance.Amount{Number: 1}})
	racks := limit(maintenance.Limit{Name: "racks", Per: maintenance.PerRack, Most: maintenance.Amount{Number: 1}})
	night := window("night", 22, 2*time.Hour)
	a := []Maintenance{wants("a")}
	checks := policy(pre(`server.health != "Critical"`, 0))
	checks.Pre = append(checks.Pre, policy(pre(`server.health == "OK"`, 0)).Pre...)
	for name, c := range map[string]struct {
		policy  *maintenance.Policy
		servers map[string]*Server
		wants   []Maintenance
		want    string
	}{
		"nothing":                      {free(), one(), a, ""},
		"a server that does not exist": {free(), map[string]*Server{}, a, "ServerNotReady"},
		"a holder, a window and a limit": {policy(fleet, night), map[string]*Server{"s1": serverWith(claimed()), "s2": serverWith(down)}, a,
			"WaitsForApproval, WindowClosed, LimitReached s2"},
		"two limits": {policy(fleet, racks), map[string]*Server{"s1": serverWith(inRack("r1")), "s2": serverWith(down, inRack("r1")),
			"s3": serverWith(down)}, a, "LimitReached s2 s3, LimitReached s2"},
		"two checks": {checks,
			map[string]*Server{"s1": serverWith(func(s *Server) { s.Facts.Health = "Critical" })}, a, "CheckFails, CheckFails"},
		"a freeze and an ended lease": {policy(night), map[string]*Server{"s1": serverWith(claimed(), func(s *Server) {
			s.Frozen, s.Unready = "a freeze", "it is Parked"
		})}, a, "ServerNotReady, Frozen, WaitsForApproval, WindowClosed"},
		"another maintenance and what comes after it": {policy(night), map[string]*Server{"s1": serverWith(heldByOthers, claimed())}, a,
			"ServerHeld, WaitsForApproval, WindowClosed"},
		"a server that is granted in the same moment": {policy(fleet), map[string]*Server{"s1": serverWith(), "s2": serverWith()},
			[]Maintenance{wants("b"), wants("a", on("s2"), older(time.Hour))}, ""},
	} {
		if got := obstaclesOf(Snapshot{Now: noon, Policy: c.policy, Servers: c.servers, Maintenances: c.wants}); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

func TestTheConditionNamesTheServersThatFillALimitAndTheReasonsBesides(t *testing.T) {
	s := Snapshot{Now: noon, Policy: policy(limit(maintenance.Limit{Name: "fleet", Most: maintenance.Amount{Number: 4}})),
		Servers: map[string]*Server{"s1": serverWith(claimed(approved))}, Maintenances: []Maintenance{wants("a", asked(time.Hour))}}
	for i := range 5 {
		s.Servers[fmt.Sprintf("n%d", i)] = serverWith(down)
	}
	window("night", 22, 2*time.Hour)(s.Policy)
	said := func() string { g := Decide(s)[0]; return g.Whole() }
	for _, want := range []string{
		"Window night is closed and opens at 2026-11-27T22:00Z. Also: LimitReached.",
		"The limit fleet lets 4 of 6 servers be down. The maintenance begins once one of these is back: n0, n1, n2 and 2 more.",
	} {
		if got := said(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		s.Now = noon.Add(10 * time.Hour)
	}
	s.Servers["s1"].Claim.Name, s.Servers["s1"].Claim.Approved, s.Now = strings.Repeat("long", 40), false, noon
	if got := said(); len(got) > maxMessage || !strings.HasSuffix(got, "... Also: WindowClosed, LimitReached.") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

func TestObstaclesChangeNoAnswerAndBeginWithIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySnapshot(t)
		short := decide(s, false)
		for i, g := range Decide(s) {
			if g.Granted != (len(g.Obstacles) == 0) || !g.Granted && g.Obstacles[0].Answer != g.Answer {
				t.Errorf("%s: %+v, obstacles %+v", g.Maintenance, g.Answer, g.Obstacles)
			}
			g.Obstacles, short[i].Obstacles = nil, nil
			if diff := cmp.Diff(short[i], g); diff != "" {
				t.Error(diff)
			}
		}
	})
}

func TestAPlanNamesWhatIsInTheWay(t *testing.T) {
	fleet := limit(maintenance.Limit{Name: "fleet", Most: maintenance.Amount{Number: 1}})
	s := Snapshot{Now: noon, Policy: policy(fleet, window("night", 22, 2*time.Hour)),
		Servers:      map[string]*Server{"s1": serverWith(claimed()), "s2": serverWith(down)},
		Maintenances: []Maintenance{wants("a"), wants("b", on("s2"))}}
	got := map[string]string{}
	for _, p := range Plan(s, 24*time.Hour) {
		for _, o := range p.Obstacles {
			got[p.Maintenance.Name] += o.Reason + " " + strings.Join(o.Servers, " ") + ";"
		}
	}
	want := map[string]string{"b": "WindowClosed ;", "a": "WaitsForApproval ;WindowClosed ;LimitReached s2;"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
