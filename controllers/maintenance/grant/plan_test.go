// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/engine/maintenance"
)

func TestWhenMaintenancesWouldBeGranted(t *testing.T) {
	one := limit(maintenance.Limit{Name: "fleet", Most: maintenance.Amount{Number: 1}})
	for name, c := range map[string]struct {
		policy  *maintenance.Policy
		servers map[string]*Server
		wants   []Maintenance
		// want is a line for each, with the time from noon on.
		want string
	}{
		"at once":                     {free(), map[string]*Server{"s1": serverWith()}, []Maintenance{wants("a")}, "a 0s"},
		"one after the other":         {policy(one), map[string]*Server{"s1": serverWith(), "s2": serverWith()}, []Maintenance{wants("a"), wants("b", on("s2"))}, "a 0s\nb 1h"},
		"the next of the same server": {free(), map[string]*Server{"s1": serverWith()}, []Maintenance{wants("a"), wants("b")}, "a 0s\nb 1h"},
		"once a window opens": {policy(window("night", 22, 2*time.Hour)), map[string]*Server{"s1": serverWith()}, []Maintenance{wants("a")},
			"a 10h night"},
		"in the window of the next night": {policy(one, window("night", 22, 2*time.Hour)),
			map[string]*Server{"s1": serverWith(), "s2": serverWith(), "s3": serverWith()},
			[]Maintenance{wants("a"), wants("b", on("s2")), wants("c", on("s3"))}, "a 10h night\nb 11h night\nc 34h night"},
		"after the first wave and its pause": {policy(canaries), map[string]*Server{"s1": serverWith(canary), "s2": serverWith()},
			[]Maintenance{wants("a"), wants("b", on("s2"))}, "a 0s canary\nb 2h"},
		"as soon as the holder approves": {free(), map[string]*Server{"s1": serverWith(claimed())}, []Maintenance{wants("a")}, "a 0s asks"},
		"once the notice is over":        {free(), map[string]*Server{"s1": serverWith(claimed())}, []Maintenance{wants("a", enforced)}, "a 15m asks"},
		"after those that exist where it is in a file only": {policy(one), map[string]*Server{"s1": serverWith(), "s2": serverWith()},
			[]Maintenance{wants("a", func(m *Maintenance) { m.UID, m.Created = "", time.Time{} }), wants("b", on("s2"), older(time.Hour))}, "b 0s\na 1h"},
		"after what runs": {free(), map[string]*Server{"s1": serverWith(held("run"), down)},
			[]Maintenance{wants("run", runs(20*time.Minute)), wants("a")}, "a 40m"},
		"never after what is overdue": {free(), map[string]*Server{"s1": serverWith(held("run"))}, []Maintenance{wants("run", runs(2*time.Hour)), wants("a")},
			"a never: ServerHeld"},
		"never in a window that is too short": {policy(window("night", 22, time.Minute)), map[string]*Server{"s1": serverWith()}, []Maintenance{wants("a")},
			"a never: WindowTooShort"},
		"never within the horizon": {free(), map[string]*Server{"s1": serverWith()}, []Maintenance{wants("a", expects(100*time.Hour)), wants("b")},
			"a 0s\nb never: ServerHeld"},
		"never while another program holds the server": {free(), map[string]*Server{"s1": serverWith(heldByOthers)}, []Maintenance{wants("a")}, "a never: ServerHeld"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Snapshot{Now: noon, Policy: c.policy, Servers: c.servers, Maintenances: c.wants}
			var lines []string
			for _, p := range Plan(s, 72*time.Hour) {
				words := []string{p.Maintenance.Name}
				if p.At.IsZero() {
					words = append(words, "never:", p.Reason)
				} else {
					words = append(words, length(p.At.Sub(noon)), p.Window, p.Wave)
				}
				if p.Asks {
					words = append(words, "asks")
				}
				lines = append(lines, strings.Join(strings.Fields(strings.Join(words, " ")), " "))
			}
			if diff := cmp.Diff(c.want, strings.Join(lines, "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAPlanChangesNothing(t *testing.T) {
	s := Snapshot{Now: noon, Policy: free(), Servers: map[string]*Server{"s1": serverWith(claimed())}, Maintenances: []Maintenance{wants("a"), wants("b")}}
	Plan(s, 24*time.Hour)
	if of := s.Servers["s1"]; of.Holder != nil || of.Claim.Approved || s.Maintenances[0].Asked != "" {
		t.Errorf("%+v %+v", of, s.Maintenances[0])
	}
}

func TestAPlanGrantsAWholeFleetInTheEnd(t *testing.T) {
	plan := Plan(fleet(200), 31*24*time.Hour)
	granted := 0
	for _, p := range plan {
		if !p.At.IsZero() {
			granted++
		}
	}
	if granted != 200 {
		t.Errorf("%d of %d are granted; the last says %s", granted, len(plan), plan[len(plan)-1].Message)
	}
}

func TestADecisionAllocatesLittle(t *testing.T) {
	s := fleet(1000)
	if got := testing.AllocsPerRun(3, func() { decide(s, false) }); got > 10*1000 {
		t.Errorf("%.0f allocations for 1,000 maintenances", got)
	}
	if got := testing.AllocsPerRun(3, func() { Decide(s) }); got > 25*1000 {
		t.Errorf("%.0f allocations for 1,000 maintenances with everything that they wait for", got)
	}
}

// fleet has so many servers in racks of 40, a maintenance of each, waves of 50, a window of each night and the default limits.
func fleet(n int) Snapshot {
	p := maintenance.Default()
	window("night", 22, 8*time.Hour)(p)
	s := Snapshot{Now: noon.Add(11 * time.Hour), Policy: p, Servers: map[string]*Server{}}
	for i := range n {
		name := fmt.Sprintf("s%04d", i)
		labels := map[string]string{"wave": fmt.Sprint(i / 50), "topology.kubernetes.io/zone": fmt.Sprint(i % 3), "model": "x"}
		server := serverWith(labelled(labels), inRack(fmt.Sprint(i%25)))
		server.Facts.Health = "OK"
		s.Servers[name] = server
		s.Maintenances = append(s.Maintenances, wants(fmt.Sprintf("m%04d", i), on(name), older(time.Duration(i%7)*time.Second)))
	}
	for i := range (n + 49) / 50 {
		p.Waves = append(p.Waves, maintenance.Wave{Name: fmt.Sprintf("wave-%d", i), MatchLabels: maintenance.Selector{"wave": fmt.Sprint(i)}})
	}
	pre(`server.health != "Critical"`, time.Minute)(p)
	return s
}

func BenchmarkPlan(b *testing.B) {
	s := fleet(1000)
	for b.Loop() {
		Plan(s, 31*24*time.Hour)
	}
}

func BenchmarkDecide(b *testing.B) {
	for name, changes := range map[string]func(*Snapshot){
		"WavesOf50": func(*Snapshot) {},
		"AllAtOnce": func(s *Snapshot) {
			s.Policy.Waves = nil
			s.Policy.Limits = []maintenance.Limit{{Name: "fleet", Most: maintenance.Amount{Percent: 50}}, {Name: "racks", Per: "rack", Most: maintenance.Amount{Number: 20}}}
		},
		"WindowClosed": func(s *Snapshot) { s.Now, s.Policy.Waves = noon, nil },
	} {
		b.Run(name, func(b *testing.B) {
			s := fleet(1000)
			changes(&s)
			b.ReportAllocs()
			for b.Loop() {
				Decide(s)
			}
		})
	}
}
