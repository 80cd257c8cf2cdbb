// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet/overview"
	"github.com/metalaw/metalaw/internal/running"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// busy are answers with something in each section.
func busy() *overview.Answers {
	beat := noon.Add(-time.Second)
	since := noon.Add(-72 * time.Hour)
	return &overview.Answers{At: noon, Verdict: overview.NeedsPerson, Person: []string{"the breaker has tripped", "1 server", "1 BMC"},
		NotWell: []overview.Trouble{
			{Kind: "BMC", Name: "b7", Cause: "Ready", Reason: "ConnectionFailed", Message: "no answer", Since: noon.Add(-14 * time.Minute), NeedsPerson: true},
			{Kind: "Server", Name: "s7", Cause: "BMCReachable", Reason: "ConnectionFailed", Behind: "b7", Since: noon, NeedsPerson: true},
			{Kind: "Server", Name: "s4", Cause: "Stalled", Reason: "WipeFailed", Message: "disk sda: I/O error", State: "Error", Since: noon.Add(-3 * time.Hour), NeedsPerson: true},
		},
		Where: overview.Where{Servers: 20, States: []overview.Count{{Name: "Available", Count: 19}, {Name: "Error", Count: 1}},
			Errors: []overview.Count{{Name: "WipeFailed", Count: 1}}, Power: []overview.Count{{Name: "Off", Count: 20}}, Claimed: 3, Cordoned: 1,
			Racks: []overview.Rack{{Name: "r1", Servers: 20, NeedPerson: 2, States: []overview.Count{{Name: "Available", Count: 19}, {Name: "Error", Count: 1}}}}},
		Claims: overview.ClaimAnswer{Claims: 4, Ready: 3, Unbound: 1, Waiting: make([]overview.ClaimWait, 1), Reasons: []overview.ClaimReason{{Reason: "NoneClaimable", Claims: 1,
			First: overview.ClaimWait{Namespace: "team", Name: "web", Message: "3 of 4 servers match", Since: noon.Add(-time.Hour)}}}},
		Policy: overview.Policy{InForce: "default-1.0.0", Revisions: []overview.Revision{
			{Name: "default-1.0.0", Stage: "Active", Since: &since, Servers: 18},
			{Name: "fleet-2.0.0", Stage: "Canary", Servers: 2, Canary: &policyv1alpha1.CanaryStatus{Percent: 10, Paused: true, Reason: "2 halts"}},
			{Name: "fleet-3.0.0", Stage: "Shadow", Shadow: &policyv1alpha1.ShadowStatus{Evaluated: 90, DifferencesTotal: 4,
				Differences: []policyv1alpha1.ShadowDifference{{State: "Available", ShadowRule: "Stop", Count: 4, LastServer: "s1"}}}}}},
		Happened: overview.Happened{Moves: 1, Rules: []overview.Count{{Name: "WipeFailed", Count: 1}}, Last: []overview.Event{
			{At: noon.Add(-time.Minute), Server: "s1", What: "retry", State: "Succeeded", By: "jo", Reason: "cable"},
			{At: noon.Add(-3 * time.Minute), Server: "s4", What: overview.Move, From: "Cleanup", To: "Error", Rule: "WipeFailed", Revision: "default-1.0.0"}}},
		Held: overview.Held{Breaker: &overview.Breaker{Tripped: true, Servers: 6, Of: 20, States: []string{"Error"}},
			Freezes:  []overview.Freeze{{Name: "f", Level: "All", By: "jo", Servers: 20, Reason: "INC-1"}},
			Budgets:  []overview.Budget{{Name: "wipes", Action: "Wipe", Used: 5, Max: 5, Exhausted: true}},
			Withheld: []overview.Count{{Name: "Frozen", Count: 2}},
			Running: running.State{Leading: true, BeatAt: &beat, Managers: []running.Manager{{Name: "a", Leads: true,
				Flags: &running.Flags{ObserveOnly: true}}}}},
		Maintenance: overview.Waits{Holding: []string{"s9"}, Waiting: []overview.Wait{{Namespace: "ops", Name: "bios", Server: "s2",
			Reason: "WaitsForApproval", For: "team/web", Since: noon.Add(-time.Hour), NeedsPerson: true}}},
	}
}

func TestTheScreenAnswersEachQuestion(t *testing.T) {
	want := `Needs a person: the breaker has tripped, 1 server, 1 BMC  (2026-03-01T12:00:00Z)
Not well     3 objects; the whole cause: metalaw explain server NAME, kubectl describe bmc NAME
  BMC ConnectionFailed                   1  14m     b7 (1 behind): no answer
  Server WipeFailed (Error)              1  3h      s4: disk sda: I/O error
Servers      20: Available 19, Error 1 (WipeFailed 1)
  power: Off 20; claimed 3, cordoned 1
  rack r1            20: Available 19, Error 1; 2 need a person
Claims       4: 3 ready, 1 wait; 1 have no server; metalaw explain claim NAME -n NAMESPACE
  NoneClaimable                          1  60m     team/web: 3 of 4 servers match
Policy       default-1.0.0 governs 18 of 20 servers, Active for 3d
  fleet-2.0.0 (Canary) governs 2 servers; 10 % of every server; 0 servers were halted under it and 0 entered Error; paused: 2 halts
  fleet-3.0.0 (Shadow) governs 0 servers
Shadow       fleet-3.0.0: 4 differences in 90 decisions
  in Available 4 times Stop instead of no move, last on s1
Happened     1 move in the last hour: WipeFailed 1
  60s   s1: retry Succeeded, asked for by jo: cable
  3m    s4: Cleanup to Error by WipeFailed of default-1.0.0
Held back    the breaker has tripped; 1 freeze; withheld: Frozen 2. Mode: observe-only, so that nothing is done to any machine; maintenance off
  breaker: 6 of 20 servers entered Error; metalaw unfreeze --breaker closes it
  freeze f (All) on 20 servers, by jo, until it is lifted: INC-1
  budget wipes: 5 of 5 Wipe; no room
Maintenance  1 wait, 1 server held: s9; metalaw explain maintenance NAME -n NAMESPACE
  WaitsForApproval                       1  60m     ops/bios (claim team/web)`
	if diff := cmp.Diff(strings.Split(want, "\n"), screen(busy(), 160)); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}

func TestTheScreenIsNotLargerForALargeFleet(t *testing.T) {
	a := busy()
	for i := range 20_000 {
		name := fmt.Sprintf("s%05d", i)
		a.NotWell = append(a.NotWell, overview.Trouble{Kind: "Server", Name: name, Reason: fmt.Sprintf("Reason%d", i%50), Since: noon})
		a.Where.Racks = append(a.Where.Racks, overview.Rack{Name: fmt.Sprintf("r%d", i)})
		a.Claims.Reasons = append(a.Claims.Reasons, overview.ClaimReason{Reason: name})
		a.Happened.Last = append(a.Happened.Last, overview.Event{Server: name, At: noon})
		a.Held.Freezes = append(a.Held.Freezes, overview.Freeze{Name: name})
		a.Maintenance.Waiting = append(a.Maintenance.Waiting, overview.Wait{Name: name, Reason: name})
		a.Maintenance.Holding = append(a.Maintenance.Holding, name)
		a.Unread = append(a.Unread, overview.Unread{Resource: name})
	}
	lines := screen(a, 80)
	if len(lines) > height {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if n := len([]rune(line)); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, section := range []string{"Not well", "Servers", "Claims", "Policy", "Shadow", "Happened", "Held back", "Maintenance"} {
		if !strings.Contains("\n"+strings.Join(lines, "\n"), "\n"+section) {
			t.Errorf("%s is missing", section)
		}
	}
}

func TestLinesAreSharedByTheirWeight(t *testing.T) {
	details := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint(i))
		}
		return all
	}
	for name, c := range map[string]struct {
		sections []section
		lines    int
		want     []string
	}{
		"all fit": {[]section{{"a", details(1), 1}, {"b", details(2), 0}}, 9, []string{"a", "0", "b", "0", "1"}},
		"the least of a later section goes before the rest of an earlier one": {[]section{{"a", details(5), 1}, {"b", details(1), 1}}, 5,
			[]string{"a", "0", "  ... and 4 more", "b", "0"}},
		"no line is left for details": {[]section{{"a", details(3), 1}, {"b", nil, 0}}, 2, []string{"a (3 lines more with -o yaml)", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, fit(c.sections, c.lines)); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
		})
	}
}

func TestTheModeOfTheManager(t *testing.T) {
	beat := noon.Add(-time.Hour)
	leads := func(flags *running.Flags) running.State {
		return running.State{Leading: true, BeatAt: &beat, Managers: []running.Manager{{Name: "a", Leads: true, Flags: flags}}}
	}
	for name, c := range map[string]struct {
		running running.State
		unread  []overview.Unread
		want    string
	}{
		"it only observes":            {leads(&running.Flags{ObserveOnly: true, Maintenance: "on"}), nil, "Mode: observe-only, so that nothing is done to any machine; maintenance on"},
		"it acts":                     {leads(&running.Flags{Maintenance: "plan"}), nil, "Mode: acts; maintenance plan"},
		"a former build":              {leads(nil), nil, "A manager leads; its build does not tell its mode"},
		"it went an hour ago":         {running.State{BeatAt: &beat}, nil, "No manager leads; the last one did 60m ago"},
		"none was there":              {running.State{}, nil, "No manager leads, and none ever did"},
		"the Leases may not be read ": {running.State{}, []overview.Unread{{Resource: overview.Leases}}, "The manager's mode is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mode(&overview.Answers{At: noon, Unread: c.unread, Held: overview.Held{Running: c.running}}); got != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
}
