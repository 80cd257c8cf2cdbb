// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/metalaw/metalaw/engine/maintenance"
)

// anySnapshot draws a small fleet in which much happens at once.
func anySnapshot(t *rapid.T) Snapshot {
	some := func(name string) bool { return rapid.IntRange(0, 3).Draw(t, name) == 0 }
	s := Snapshot{Now: noon, Policy: anyPolicy(t), Servers: map[string]*Server{}, ClaimsWait: some("claims wait")}
	servers := rapid.IntRange(1, 6).Draw(t, "servers")
	for i := range servers {
		one := serverWith(inRack(fmt.Sprint(i % 2)))
		one.Labels = map[string]string{"canary": fmt.Sprint(some("canary"))}
		one.Down = some("down")
		if some("unready") {
			one.Unready = "it is"
		}
		if some("frozen") {
			one.Frozen = "a freeze"
		}
		if !some("unclaimed") {
			one.Claim = &Claim{UID: types.UID(fmt.Sprintf("claim-%d", i)), NamespacedName: types.NamespacedName{Namespace: fmt.Sprint("team-", i%2), Name: "c"},
				Approved: rapid.Bool().Draw(t, "approved"), DrainRequired: some("drain")}
		}
		if some("foreign") {
			heldByOthers(one)
		}
		s.Servers[fmt.Sprint("s", i)] = one
	}
	for i := range rapid.IntRange(0, 12).Draw(t, "maintenances") {
		s.Maintenances = append(s.Maintenances, anyMaintenance(t, &s, i, some))
	}
	if some("budget") {
		most := rapid.IntRange(0, 2).Draw(t, "budget most")
		s.Budgets = []Budget{{Name: "b", Covers: func(map[string]string) bool { return true }, Most: func(int) int { return most }}}
	}
	return s
}

func anyPolicy(t *rapid.T) *maintenance.Policy {
	p := policy()
	p.PerClaim, p.AfterRelease = rapid.Bool().Draw(t, "per claim"), rapid.Bool().Draw(t, "after release")
	p.EnforcedNotice = rapid.SampledFrom([]time.Duration{0, 15 * time.Minute}).Draw(t, "notice")
	for i, per := range []string{"", maintenance.PerRack, maintenance.PerNamespace} {
		if most := rapid.IntRange(0, 3).Draw(t, "most"); most > 0 {
			limit(maintenance.Limit{Name: fmt.Sprint("l", i), Per: per, Most: maintenance.Amount{Number: most}})(p)
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "waves") == 0 {
		canaries(p)
	}
	return p
}

func anyMaintenance(t *rapid.T, s *Snapshot, i int, some func(string) bool) Maintenance {
	m := wants(fmt.Sprint("m", i), on(fmt.Sprint("s", rapid.IntRange(0, len(s.Servers)).Draw(t, "server"))),
		priority(rapid.Int32Range(0, 1).Draw(t, "priority")), older(time.Duration(rapid.IntRange(0, 2).Draw(t, "age"))*time.Second))
	m.Enforced, m.Boots = rapid.Bool().Draw(t, "enforced"), some("boots")
	m.Failed, m.Ends = some("failed") && some("really"), some("ends") && some("really")
	if some("grouped") {
		m.Group = rapid.SampledFrom([]string{"g", "h"}).Draw(t, "group")
	}
	if some("refused") && some("really") {
		m.Refused = Answer{"NotPermitted", "it may not"}
	}
	of := s.Servers[m.Server]
	if of == nil {
		return m
	}
	if of.Claim != nil && rapid.Bool().Draw(t, "asked") {
		m.Asked, m.AskedAt = of.Claim.UID, noon.Add(-time.Duration(rapid.IntRange(1, 30).Draw(t, "asked ago"))*time.Minute)
	}
	if of.Holder == nil && some("holds") {
		name := m.NamespacedName
		of.Holder, of.HolderUID, m.GrantedAt, m.Refused, m.Ends = &name, m.UID, noon.Add(-time.Minute), Answer{}, rapid.Bool().Draw(t, "holder ends")
	}
	return m
}

func TestGrantsHoldTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySnapshot(t)
		grants := Decide(s)
		granted := map[string]Grant{}
		for _, g := range grants {
			if !g.Granted {
				continue
			}
			if _, twice := granted[g.Server]; twice {
				t.Fatalf("server %s is granted twice", g.Server)
			}
			granted[g.Server] = g
			checkHolder(t, &s, g)
			checkConsent(t, &s, g)
		}
		checkLimits(t, &s, granted)
		checkGroups(t, &s, grants)
	})
}

// find is the maintenance of a UID.
func find(s *Snapshot, uid types.UID) *Maintenance {
	for i := range s.Maintenances {
		if s.Maintenances[i].UID == uid {
			return &s.Maintenances[i]
		}
	}
	return nil
}

func checkHolder(t *rapid.T, s *Snapshot, g Grant) {
	of := s.Servers[g.Server]
	switch {
	case of.Unready != "" || of.Frozen != "":
		t.Fatalf("%s is granted a server that is %s%s", g.UID, of.Unready, of.Frozen)
	case of.Holder == nil && g.Follows != "", of.Holder != nil && (g.Follows != of.HolderUID || of.HolderUID == "" || !find(s, of.HolderUID).Ends):
		t.Fatalf("%s is granted the server of %v", g.UID, of.Holder)
	}
}

func checkConsent(t *rapid.T, s *Snapshot, g Grant) {
	claim, m := s.Servers[g.Server].Claim, find(s, g.UID)
	if claim == nil {
		return
	}
	asked := m.Asked == claim.UID
	word := claim.Approved && (asked || s.Policy.PerClaim)
	told := s.Policy.EnforcedNotice == 0 || (asked && !m.AskedAt.Add(s.Policy.EnforcedNotice).After(s.Now))
	if !word && (!m.Enforced || m.Boots || claim.DrainRequired || !told) || g.Claim != claim.UID {
		t.Fatalf("%s is granted without consent", g.UID)
	}
}

func checkLimits(t *rapid.T, s *Snapshot, granted map[string]Grant) {
	for _, l := range s.Policy.Limits {
		before, after := map[string]int{}, map[string]int{}
		for name, of := range s.Servers {
			place := map[string]string{"": "all", maintenance.PerRack: of.Rack}[l.Per]
			if l.Per == maintenance.PerNamespace && of.Claim != nil {
				place = of.Claim.Namespace
			}
			if place == "" {
				continue
			}
			if of.Down || of.Holder != nil {
				before[place]++
				after[place]++
			} else if _, is := granted[name]; is {
				after[place]++
			}
		}
		for place, n := range after {
			if n > max(l.Most.Number, before[place]) {
				t.Fatalf("%d servers of %s %s are down, and %s allows %d", n, l.Per, place, l.Name, l.Most.Number)
			}
		}
	}
}

func checkGroups(t *rapid.T, s *Snapshot, grants []Grant) {
	got, of := map[string]int{}, map[string]int{}
	for _, g := range grants {
		group := find(s, g.UID).Group
		if of[group]++; g.Granted {
			got[group]++
		}
	}
	for _, group := range []string{"g", "h"} {
		if got[group] != 0 && got[group] != of[group] {
			t.Fatalf("%d of the %d of group %s are granted", got[group], of[group], group)
		}
	}
}

func TestGrantsDoNotDependOnTheOrderOfTheInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySnapshot(t)
		want := saidOf(Decide(s))
		s.Maintenances = rapid.Permutation(s.Maintenances).Draw(t, "order")
		if got := saidOf(Decide(s)); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	})
}

func TestOnceAllIsGrantedNothingMoreIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySnapshot(t)
		if len(s.Policy.Waves) > 0 { // where one follows another, a wave may be over by that
			s.Policy.Waves = nil
		}
		for _, g := range Decide(s) {
			if !g.Granted {
				continue
			}
			name := g.Maintenance
			s.Servers[g.Server].Holder, s.Servers[g.Server].HolderUID = &name, g.UID
			s.Maintenances = slices.DeleteFunc(s.Maintenances, func(m Maintenance) bool { return m.UID == g.Follows })
		}
		for _, g := range Decide(s) {
			if g.Granted {
				t.Fatalf("%s is granted only now", said(g))
			}
		}
	})
}
