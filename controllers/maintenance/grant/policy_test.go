// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"fmt"
	"testing"
	"time"

	"github.com/metalaw/metalaw/engine/maintenance"
)

// policy is one without bounds, changed as a case says.
func policy(changes ...func(*maintenance.Policy)) *maintenance.Policy {
	p := free()
	for _, change := range changes {
		change(p)
	}
	return p
}

// window opens at an hour of UTC.
func window(name string, hour int, lasts time.Duration) func(*maintenance.Policy) {
	return func(p *maintenance.Policy) {
		w, err := maintenance.NewWindow(maintenance.Window{Name: name, Opens: fmt.Sprintf("0 %d * * *", hour), Zone: "UTC", Lasts: lasts})
		if err != nil {
			panic(err)
		}
		p.Windows = append(p.Windows, w)
	}
}

func limit(l maintenance.Limit) func(*maintenance.Policy) {
	return func(p *maintenance.Policy) { p.Limits = append(p.Limits, l) }
}

// canaries is a wave of the servers with label canary, before all others.
func canaries(p *maintenance.Policy) {
	p.Waves = []maintenance.Wave{{Name: "canary", MatchLabels: maintenance.Selector{"canary": "true"}, Pause: time.Hour}}
}

func pre(must string, within time.Duration) func(*maintenance.Policy) {
	condition, err := maintenance.Condition(must)
	if err != nil {
		panic(err)
	}
	return func(p *maintenance.Policy) {
		p.Pre = []maintenance.Check{{Name: "fit", Must: condition, Within: within}}
	}
}

func afterRelease(p *maintenance.Policy) { p.AfterRelease, p.ReleaseGrace = true, 5*time.Minute }

func releasedAgo(ago time.Duration) func(*Server) {
	return func(s *Server) { s.ReleasedAt = noon.Add(-ago) }
}
func endedAgo(ago time.Duration) func(*Server) { return func(s *Server) { s.EndedAt = noon.Add(-ago) } }
func canary(s *Server)                         { s.Labels = map[string]string{"canary": "true"} }
func critical(s *Server)                       { s.Facts.Health = "Critical" }

func TestWindows(t *testing.T) {
	day := policy(window("day", 11, 3*time.Hour))
	for _, c := range []asking{
		{name: "an open one is named", policy: day, servers: one(), wants: []Maintenance{wants("a")}, want: "a ServerGranted",
			message: "window day is open until 2026-11-27T14:00Z"},
		{name: "a closed one says when it opens", policy: policy(window("night", 22, 3*time.Hour)), servers: one(), wants: []Maintenance{wants("a")},
			want: "a WindowClosed after 10h", message: "Window night is closed and opens at 2026-11-27T22:00Z"},
		{name: "one that closes too soon says so", policy: day, servers: one(), wants: []Maintenance{wants("a", expects(150*time.Minute))},
			want: "a WindowTooShort after 23h", message: "takes 2h30m"},
		{name: "one that is never long enough grants nothing for ever", policy: day, servers: one(), wants: []Maintenance{wants("a", expects(4*time.Hour))},
			want: "a WindowTooShort", message: "never"},
		{name: "a tenant is asked ahead of the window", policy: policy(window("night", 22, 3*time.Hour)),
			servers: one(claimed()), wants: []Maintenance{wants("a")}, want: "a WaitsForApproval asks"},
		{name: "an expression that fails is no open window", policy: policy(window("day", 11, 3*time.Hour), func(p *maintenance.Policy) {
			p.Windows[0].When, _ = maintenance.Condition(`claim.labels["tier"] == "gold"`)
		}), servers: one(), wants: []Maintenance{wants("a")}, want: "a CheckFails", message: "Whether window day covers the server cannot be told"},
	} {
		c.try(t)
	}
}

func TestWaves(t *testing.T) {
	two := func(first ...func(*Server)) map[string]*Server {
		return map[string]*Server{"s1": serverWith(append(first, canary)...), "s2": serverWith()}
	}
	for _, c := range []asking{
		{name: "the first goes first", policy: policy(canaries), servers: two(), wants: []Maintenance{wants("rest", on("s2"), older(time.Hour)), wants("a")},
			want: "rest WaveWaits, a ServerGranted", message: "Wave canary is not over"},
		{name: "the next waits while it runs", policy: policy(canaries), servers: two(held("a")),
			wants: []Maintenance{wants("rest", on("s2")), wants("a", runs(time.Minute))}, want: "rest WaveWaits"},
		{name: "and while one of it failed", policy: policy(canaries), servers: two(), wants: []Maintenance{wants("rest", on("s2")), wants("a", failed)}, want: "rest WaveWaits"},
		{name: "and for its pause", policy: policy(canaries), servers: two(endedAgo(20 * time.Minute)), wants: []Maintenance{wants("rest", on("s2"))},
			want: "rest WaveWaits after 40m", message: "its pause lasts until 2026-11-27T12:40Z"},
		{name: "and then begins", policy: policy(canaries), servers: two(endedAgo(time.Hour)), wants: []Maintenance{wants("rest", on("s2"))}, want: "rest ServerGranted"},
		{name: "an emergency does not wait for what is routine", policy: policy(canaries), servers: two(),
			wants: []Maintenance{wants("rest", on("s2"), priority(10)), wants("a")}, want: "rest ServerGranted, a ServerGranted"},
		{name: "nobody waits for one that may not be granted", policy: policy(canaries), servers: two(),
			wants: []Maintenance{wants("rest", on("s2")), wants("a", refused("NotAdopted"))}, want: "a NotAdopted, rest ServerGranted"},
		{name: "nobody of a later wave is asked", policy: policy(canaries),
			servers: map[string]*Server{"s1": serverWith(canary), "s2": serverWith(claimed())}, wants: []Maintenance{wants("a"), wants("rest", on("s2"))},
			want: "a ServerGranted, rest WaveWaits", message: "wave canary"},
	} {
		c.try(t)
	}
}

func TestLimits(t *testing.T) {
	fleet := limit(maintenance.Limit{Name: "fleet", Most: maintenance.Amount{Number: 1}})
	racks := limit(maintenance.Limit{Name: "racks", Per: maintenance.PerRack, Most: maintenance.Amount{Number: 1}})
	tenants := limit(maintenance.Limit{Name: "tenants", Per: maintenance.PerNamespace, Most: maintenance.Amount{Number: 1}})
	both := []Maintenance{wants("a"), wants("b", on("s2"))}
	pair := func(first, second *Server) map[string]*Server { return map[string]*Server{"s1": first, "s2": second} }
	for _, c := range []asking{
		{name: "one at a time", policy: policy(fleet), servers: pair(serverWith(), serverWith()), wants: both, want: "a ServerGranted, b LimitReached"},
		{name: "a server that is down for another cause counts", policy: policy(fleet), servers: pair(serverWith(), serverWith(down)), wants: both[:1],
			want: "a LimitReached", message: "The limit fleet lets 1 of 2 servers be down"},
		{name: "and does not count twice", policy: policy(fleet), servers: pair(serverWith(down), serverWith()), wants: both, want: "a ServerGranted, b LimitReached"},
		{name: "one in maintenance counts", policy: policy(fleet), servers: pair(serverWith(), serverWith(held("run"))),
			wants: append([]Maintenance{wants("run", on("s2"), runs(time.Minute))}, both[0]), want: "a LimitReached"},
		{name: "another in its place adds nothing", policy: policy(fleet), servers: pair(serverWith(), serverWith(held("run"))),
			wants: append([]Maintenance{wants("run", on("s2"), ends)}, both...), want: "a LimitReached, b ServerGranted follows run"},
		{name: "one of each rack", policy: policy(racks), servers: pair(serverWith(inRack("r1")), serverWith(inRack("r1"))), wants: both,
			want: "a ServerGranted, b LimitReached"},
		{name: "in two racks two", policy: policy(racks), servers: pair(serverWith(inRack("r1")), serverWith(inRack("r2"))), wants: both,
			want: "a ServerGranted, b ServerGranted"},
		{name: "the rack is named", policy: policy(racks), servers: pair(serverWith(inRack("r1")), serverWith(down, inRack("r1"))), wants: both[:1],
			want: "a LimitReached", message: "limit racks (rack r1) lets 1 of 2"},
		{name: "servers whose rack nobody named are in none", policy: policy(racks), servers: pair(serverWith(), serverWith()), wants: both,
			want: "a ServerGranted, b ServerGranted"},
		{name: "one of each namespace's claims", policy: policy(tenants), servers: pair(serverWith(claimed(approved)), serverWith(claimed(approved))),
			wants: []Maintenance{wants("a", asked(time.Hour)), wants("b", on("s2"), asked(time.Hour))}, want: "a ServerGranted, b LimitReached"},
		{name: "a limit is about the servers that it selects", policy: policy(limit(maintenance.Limit{Name: "gpu", MatchLabels: maintenance.Selector{"gpu": "yes"},
			Most: maintenance.Amount{Number: 1}})), servers: pair(serverWith(labelled(map[string]string{"gpu": "yes"}), down), serverWith()), wants: both[1:],
			want: "b ServerGranted"},
		{name: "the default is 2 % and at least one", policy: maintenance.Default(), servers: pair(serverWith(), serverWith()), wants: both,
			want: "a ServerGranted, b LimitReached"},
		{name: "of two servers the older maintenance goes first", policy: policy(fleet), servers: pair(serverWith(), serverWith()),
			wants: []Maintenance{both[0], wants("b", on("s2"), older(time.Minute))}, want: "b ServerGranted, a LimitReached"},
	} {
		c.try(t)
	}
}

func TestBudgets(t *testing.T) {
	budget := Budget{Name: "b", Covers: func(map[string]string) bool { return true }, Most: func(int) int { return 1 }}
	perRow, none, others := budget, budget, budget
	perRow.Per = "row"
	none.Most = func(int) int { return 0 }
	others.Covers = func(labels map[string]string) bool { return labels["row"] == "9" }
	both := []Maintenance{wants("a"), wants("b", on("s2"))}
	rows := map[string]*Server{"s1": serverWith(labelled(map[string]string{"row": "1"})), "s2": serverWith(labelled(map[string]string{"row": "2"}))}
	for _, c := range []asking{
		{name: "it bounds servers in maintenance", servers: rows, budgets: []Budget{budget}, wants: both, want: "a ServerGranted, b LimitReached"},
		{name: "not those that are down", servers: map[string]*Server{"s1": serverWith(), "s2": serverWith(down)}, budgets: []Budget{budget}, wants: both[:1],
			want: "a ServerGranted"},
		{name: "one that is down counts once it is in maintenance", servers: map[string]*Server{"s1": serverWith(down), "s2": serverWith(down)},
			budgets: []Budget{budget}, wants: both, want: "a ServerGranted, b LimitReached"},
		{name: "each row has its own", servers: rows, budgets: []Budget{perRow}, wants: both, want: "a ServerGranted, b ServerGranted"},
		{name: "it may allow none", servers: rows, budgets: []Budget{none}, wants: both[:1], want: "a LimitReached", message: "budget b lets 0 of 2 servers"},
		{name: "it is about the servers that it selects", servers: rows, budgets: []Budget{others}, wants: both, want: "a ServerGranted, b ServerGranted"},
	} {
		c.try(t)
	}
}

func TestChecksAndStops(t *testing.T) {
	stop := func(failed, overdue int) func(*maintenance.Policy) {
		return func(p *maintenance.Policy) { p.Stop = maintenance.Stop{Failed: failed, Overdue: overdue} }
	}
	healthy := pre(`server.health != "Critical"`, 10*time.Minute)
	for _, c := range []asking{
		{name: "a check that holds lets it begin", policy: policy(healthy), servers: one(), wants: []Maintenance{wants("a")}, want: "a ServerGranted"},
		{name: "one that does not hold it back", policy: policy(healthy), servers: one(critical), wants: []Maintenance{wants("a")}, want: "a CheckFails",
			message: `Check fit: server.health != "Critical" does not hold`},
		{name: "one that cannot be evaluated too", policy: policy(pre(`server.labels["rack"] == "r1"`, 0)), servers: one(), wants: []Maintenance{wants("a")},
			want: "a CheckFails", message: "cannot be evaluated"},
		{name: "it reads the maintenance", policy: policy(pre(`maintenance.policy == "Enforced" && maintenance.priority == 7`, 0)), servers: one(),
			wants: []Maintenance{wants("a", enforced, priority(7))}, want: "a ServerGranted"},
		{name: "failures stop what is new", policy: policy(stop(1, 0)), servers: one(), wants: []Maintenance{wants("f", on("s2"), failed), wants("a")},
			want: "a Stopped", message: "At least 1 maintenances failed"},
		{name: "fewer do not", policy: policy(stop(2, 0)), servers: one(), wants: []Maintenance{wants("f", on("s2"), failed), wants("a")}, want: "a ServerGranted"},
		{name: "a failure that is given up does not", policy: policy(stop(1, 0)), servers: one(), wants: []Maintenance{wants("f", on("s2"), failed, ends), wants("a")},
			want: "a ServerGranted"},
		{name: "those that are overdue stop what is new", policy: policy(stop(0, 1)),
			servers: map[string]*Server{"s1": serverWith(), "s2": serverWith(held("o"))}, wants: []Maintenance{wants("o", on("s2"), runs(61*time.Minute)), wants("a")},
			want: "a Stopped", message: "longer than expected"},
		{name: "those that expect to take as long do not", policy: policy(stop(0, 1)),
			servers: map[string]*Server{"s1": serverWith(), "s2": serverWith(held("o"))},
			wants:   []Maintenance{wants("o", on("s2"), runs(61*time.Minute), expects(2*time.Hour)), wants("a")}, want: "a ServerGranted"},
		{name: "a released server is left to claims that wait", policy: policy(afterRelease), servers: one(releasedAgo(time.Minute)), wants: []Maintenance{wants("a")},
			waits: true, want: "a ReleaseGrace after 4m"},
		{name: "where none waits it is not", policy: policy(afterRelease), servers: one(releasedAgo(time.Minute)), wants: []Maintenance{wants("a")}, want: "a ServerGranted"},
		{name: "after the grace it is not", policy: policy(afterRelease), servers: one(releasedAgo(5 * time.Minute)), wants: []Maintenance{wants("a")}, waits: true,
			want: "a ServerGranted"},
	} {
		c.try(t)
	}
}

func TestHowLongACheckMayFail(t *testing.T) {
	p := policy(pre(`server.health != "Critical"`, 10*time.Minute))
	p.Pre = append(p.Pre, maintenance.Check{Name: "later", Must: p.Pre[0].Must, Within: time.Minute}, maintenance.Check{Name: "ever", Must: p.Pre[0].Must})
	grants := Decide(Snapshot{Now: noon, Policy: p, Servers: one(critical), Maintenances: []Maintenance{wants("a")}})
	if grants[0].FailsAfter != time.Minute {
		t.Error(grants[0].FailsAfter)
	}
}

func TestGroups(t *testing.T) {
	g, h := grouped("g"), grouped("h")
	three := func(third ...func(*Server)) map[string]*Server {
		return map[string]*Server{"s1": serverWith(), "s2": serverWith(), "s3": serverWith(third...)}
	}
	two := limit(maintenance.Limit{Name: "two", Most: maintenance.Amount{Number: 2}})
	for _, c := range []asking{
		{name: "all together", servers: three(), wants: []Maintenance{wants("a", g), wants("b", g, on("s2")), wants("c", g, on("s3"))},
			want: "a ServerGranted, b ServerGranted, c ServerGranted"},
		{name: "or none", servers: three(heldByOthers), wants: []Maintenance{wants("a", g), wants("b", g, on("s2")), wants("c", g, on("s3"))},
			want: "a GroupWaits, b GroupWaits, c ServerHeld", message: "Group g waits for ops/c: ServerHeld"},
		{name: "a group that waits uses up no limit", policy: policy(two), servers: map[string]*Server{"s1": serverWith(), "s2": serverWith(heldByOthers),
			"s3": serverWith(), "s4": serverWith()}, wants: []Maintenance{wants("a", g), wants("b", g, on("s2")), wants("d", on("s3")), wants("e", on("s4"))},
			want: "a GroupWaits, b ServerHeld, d ServerGranted, e LimitReached"},
		{name: "what is granted counts as together", servers: three(held("c")), wants: []Maintenance{wants("a", g), wants("c", g, on("s3"), runs(time.Minute))},
			want: "a ServerGranted"},
		{name: "two groups do not wait for each other", servers: three(), wants: []Maintenance{wants("a", g), wants("b", g, on("s2"), priority(-5)),
			wants("x", h, older(time.Hour), priority(-2)), wants("y", h, on("s2"), priority(-1))},
			want: "a ServerGranted, y MaintenanceAhead, x MaintenanceAhead, b ServerGranted"},
		{name: "one of which a member may not be granted is not ahead", servers: three(),
			wants: []Maintenance{wants("a", g, priority(5)), wants("b", g, on("s2"), refused("NotPermitted")), wants("x")},
			want:  "a GroupWaits, b NotPermitted, x ServerGranted", message: "cannot be granted whole: ops/b may not be granted: NotPermitted"},
		{name: "nor is one with two of one server", servers: three(), wants: []Maintenance{wants("a", g), wants("b", g), wants("x", priority(-1))},
			want: "a GroupWaits, b GroupWaits, x ServerGranted", message: "second for server s1"},
	} {
		c.try(t)
	}
}
