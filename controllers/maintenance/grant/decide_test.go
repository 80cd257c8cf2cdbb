// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/engine/maintenance"
)

var noon = time.Date(2026, time.November, 27, 12, 0, 0, 0, time.UTC)

// free has no limits, so that a case shows its own.
func free() *maintenance.Policy {
	return &maintenance.Policy{Expected: time.Hour, EnforcedNotice: 15 * time.Minute}
}

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "ops", Name: name}
}

// wants is a maintenance of server s1 that was created at noon, changed as a case says.
func wants(name string, changes ...func(*Maintenance)) Maintenance {
	m := Maintenance{NamespacedName: named(name), UID: types.UID(name), Server: "s1", Created: noon}
	for _, change := range changes {
		change(&m)
	}
	return m
}

func on(server string) func(*Maintenance)    { return func(m *Maintenance) { m.Server = server } }
func priority(p int32) func(*Maintenance)    { return func(m *Maintenance) { m.Priority = p } }
func enforced(m *Maintenance)                { m.Enforced = true }
func boots(m *Maintenance)                   { m.Boots = true }
func ends(m *Maintenance)                    { m.Ends = true }
func failed(m *Maintenance)                  { m.Failed = true }
func grouped(name string) func(*Maintenance) { return func(m *Maintenance) { m.Group = name } }
func asked(ago time.Duration) func(*Maintenance) {
	return func(m *Maintenance) { m.Asked, m.AskedAt = "claim", noon.Add(-ago) }
}
func runs(ago time.Duration) func(*Maintenance) {
	return func(m *Maintenance) { m.GrantedAt = noon.Add(-ago) }
}
func older(by time.Duration) func(*Maintenance) {
	return func(m *Maintenance) { m.Created = noon.Add(-by) }
}
func expects(d time.Duration) func(*Maintenance) { return func(m *Maintenance) { m.Expected = d } }
func refused(reason string) func(*Maintenance) {
	return func(m *Maintenance) { m.Refused = Answer{reason, "it may not"} }
}
func serverWith(changes ...func(*Server)) *Server {
	s := &Server{}
	for _, change := range changes {
		change(s)
	}
	return s
}

func labelled(labels map[string]string) func(*Server) { return func(s *Server) { s.Labels = labels } }
func down(s *Server)                                  { s.Down = true }
func inRack(rack string) func(*Server)                { return func(s *Server) { s.Rack = rack } }
func held(name string) func(*Server) {
	return func(s *Server) {
		holder := named(name)
		s.Holder, s.HolderUID = &holder, types.UID(name)
	}
}

func heldByOthers(s *Server) {
	held("theirs")(s)
	s.HolderUID = ""
}

func claimed(changes ...func(*Claim)) func(*Server) {
	return func(s *Server) {
		s.Claim = &Claim{UID: "claim", NamespacedName: types.NamespacedName{Namespace: "team", Name: "web"}}
		for _, change := range changes {
			change(s.Claim)
		}
	}
}

func approved(c *Claim) { c.Approved = true }
func drained(c *Claim)  { c.DrainRequired = true }

// said is a grant in short: its reason, where it is set: the server it follows, asks, and the time from noon after which it may change.
func said(g Grant) string {
	words := []string{g.Maintenance.Name, g.Reason}
	if g.Granted != (g.Reason == "ServerGranted") {
		words = append(words, "GRANTED AND NOT")
	}
	if g.Follows != "" {
		words = append(words, "follows "+string(g.Follows))
	}
	if g.Asks {
		words = append(words, "asks")
	}
	if !g.After.IsZero() {
		words = append(words, "after "+length(g.After.Sub(noon)))
	}
	return strings.Join(words, " ")
}

func saidOf(grants []Grant) string {
	list := make([]string, len(grants))
	for i, g := range grants {
		list[i] = said(g)
	}
	return strings.Join(list, ", ")
}

// asking is one case: the maintenances of some servers, and what is said of those that wait.
type asking struct {
	name    string
	policy  *maintenance.Policy
	servers map[string]*Server
	wants   []Maintenance
	budgets []Budget
	waits   bool
	want    string
	// message is a part of the first answer's.
	message string
}

func (c asking) try(t *testing.T) {
	t.Helper()
	t.Run(c.name, func(t *testing.T) {
		if c.policy == nil {
			c.policy = free()
		}
		grants := Decide(Snapshot{Now: noon, Policy: c.policy, Servers: c.servers, Maintenances: c.wants, Budgets: c.budgets, ClaimsWait: c.waits})
		if got := saidOf(grants); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
		if len(grants) > 0 && !strings.Contains(grants[0].Message, c.message) {
			t.Errorf("the message is %q", grants[0].Message)
		}
		for _, g := range grants {
			if g.Message == "" || len(g.Message) > 200 {
				t.Errorf("the message of %s has %d bytes: %s", g.Maintenance, len(g.Message), g.Message)
			}
		}
	})
}

func one(changes ...func(*Server)) map[string]*Server {
	return map[string]*Server{"s1": serverWith(changes...)}
}

func TestWhoHoldsAServer(t *testing.T) {
	for _, c := range []asking{
		{name: "a server that nobody holds is granted", servers: one(), wants: []Maintenance{wants("a")}, want: "a ServerGranted"},
		{name: "one that is gone is not", servers: nil, wants: []Maintenance{wants("a")}, want: "a ServerNotReady", message: "no server s1"},
		{name: "the holder is not evicted by a higher priority", servers: one(held("run")),
			wants: []Maintenance{wants("run", runs(time.Minute)), wants("a", priority(1000), enforced)}, want: "a ServerHeld", message: "ops/run holds"},
		{name: "another program's holder is respected", servers: one(heldByOthers), wants: []Maintenance{wants("a")}, want: "a ServerHeld", message: "Another program"},
		{name: "so is one that bears our name", servers: one(heldByOthers), wants: []Maintenance{wants("theirs")}, want: "theirs ServerHeld",
			message: "clear spec.serverMaintenanceRef"},
		{name: "and one whose maintenance is gone", servers: one(held("gone")), wants: []Maintenance{wants("a")}, want: "a ServerHeld", message: "is gone"},
		{name: "and one of the same name that was made anew", servers: one(held("run")),
			wants: []Maintenance{wants("run", func(m *Maintenance) { m.UID = "new" })}, want: "run ServerHeld"},
		{name: "a holder that ends hands over", servers: one(held("run")), wants: []Maintenance{wants("run", ends), wants("a")}, want: "a ServerGranted follows run"},
		{name: "one that failed does not", servers: one(held("run")), wants: []Maintenance{wants("run", failed), wants("a")}, want: "a ServerHeld"},
		{name: "one that failed and ends does", servers: one(held("run")), wants: []Maintenance{wants("run", failed, ends), wants("a")}, want: "a ServerGranted follows run"},
		{name: "what failed or ends without a server is not answered", servers: one(), wants: []Maintenance{wants("f", failed), wants("e", ends), wants("a")},
			want: "a ServerGranted"},
		{name: "an erase that runs is not interrupted", servers: one(func(s *Server) { s.Unready = "it is being erased" }), wants: []Maintenance{wants("a")},
			want: "a ServerNotReady", message: "it is being erased"},
		{name: "a freeze holds back", servers: one(func(s *Server) { s.Frozen = "freeze audit, by bob" }), wants: []Maintenance{wants("a")}, want: "a Frozen",
			message: "freeze audit"},
		{name: "what is refused is told as it is", servers: one(), wants: []Maintenance{wants("a", refused("NotPermitted"))}, want: "a NotPermitted", message: "it may not"},
	} {
		c.try(t)
	}
}

func TestWhoGoesFirst(t *testing.T) {
	for _, c := range []asking{
		{name: "the higher priority", servers: one(), wants: []Maintenance{wants("a", older(time.Hour)), wants("b", priority(10))},
			want: "b ServerGranted, a MaintenanceAhead"},
		{name: "of equals the enforced", servers: one(), wants: []Maintenance{wants("a"), wants("b", enforced)}, want: "a MaintenanceAhead, b ServerGranted", message: "ops/b"},
		{name: "of those the older", servers: one(), wants: []Maintenance{wants("a"), wants("b", older(time.Second))}, want: "b ServerGranted, a MaintenanceAhead"},
		{name: "of those the first by name", servers: one(), wants: []Maintenance{wants("b"), wants("a")}, want: "a ServerGranted, b MaintenanceAhead"},
		{name: "one that may not be granted is not ahead", servers: one(), wants: []Maintenance{wants("a", priority(9), refused("NotAdopted")), wants("b")},
			want: "a NotAdopted, b ServerGranted"},
		{name: "one that waits for approval is", servers: one(claimed()), wants: []Maintenance{wants("a", priority(9)), wants("b", enforced)},
			want: "a WaitsForApproval asks, b MaintenanceAhead asks"},
	} {
		c.try(t)
	}
}

func TestConsent(t *testing.T) {
	perClaim, atOnce := free(), free()
	perClaim.PerClaim = true
	atOnce.EnforcedNotice = 0
	for _, c := range []asking{
		{name: "the holder is asked", servers: one(claimed()), wants: []Maintenance{wants("a")}, want: "a WaitsForApproval asks", message: "claim team/web"},
		{name: "once", servers: one(claimed()), wants: []Maintenance{wants("a", asked(time.Hour))}, want: "a WaitsForApproval"},
		{name: "an approval after that is consent", servers: one(claimed(approved)), wants: []Maintenance{wants("a", asked(time.Hour))}, want: "a ServerGranted",
			message: "claim team/web approved"},
		{name: "an approval from before is not", servers: one(claimed(approved)), wants: []Maintenance{wants("a")}, want: "a ApprovalOlder"},
		{name: "except where the policy says so", policy: perClaim, servers: one(claimed(approved)), wants: []Maintenance{wants("a")}, want: "a ServerGranted"},
		{name: "nor is the approval of a former claim", servers: one(claimed(approved, func(c *Claim) { c.UID = "next" })),
			wants: []Maintenance{wants("a", asked(time.Hour))}, want: "a ApprovalOlder"},
		{name: "an enforced one tells the holder", servers: one(claimed()), wants: []Maintenance{wants("a", enforced)}, want: "a WaitsForNotice asks", message: "15m"},
		{name: "and waits for its notice", servers: one(claimed()), wants: []Maintenance{wants("a", enforced, asked(5*time.Minute))},
			want: "a WaitsForNotice after 10m", message: "begins at 2026-11-27T12:10Z"},
		{name: "after which it begins", servers: one(claimed()), wants: []Maintenance{wants("a", enforced, asked(15*time.Minute))}, want: "a ServerGranted",
			message: "enforced on claim team/web"},
		{name: "or at once where there is no notice", policy: atOnce, servers: one(claimed()), wants: []Maintenance{wants("a", enforced)}, want: "a ServerGranted asks"},
		{name: "an approval, which may be about something else, does not shorten it", servers: one(claimed(approved)),
			wants: []Maintenance{wants("a", enforced, asked(time.Minute))}, want: "a WaitsForNotice after 14m"},
		{name: "except where the policy lets it cover all", policy: perClaim, servers: one(claimed(approved)),
			wants: []Maintenance{wants("a", enforced, asked(time.Minute))}, want: "a ServerGranted"},
		{name: "the holder is told also beside an older approval", servers: one(claimed(approved)), wants: []Maintenance{wants("a", enforced)}, want: "a WaitsForNotice asks"},
		{name: "with a boot it needs the approval too", servers: one(claimed()), wants: []Maintenance{wants("a", enforced, boots, asked(time.Hour))}, want: "a WaitsForApproval"},
		{name: "so it does where the claim is to be drained", servers: one(claimed(drained)), wants: []Maintenance{wants("a", enforced, asked(time.Hour))},
			want: "a WaitsForDrain"},
		{name: "which the approval says", servers: one(claimed(drained, approved)), wants: []Maintenance{wants("a", asked(time.Hour))}, want: "a ServerGranted"},
		{name: "nobody is asked under a freeze", servers: one(claimed(), func(s *Server) { s.Frozen = "f" }), wants: []Maintenance{wants("a")}, want: "a Frozen"},
		{name: "nor while another program holds the server", servers: one(claimed(), heldByOthers), wants: []Maintenance{wants("a")}, want: "a ServerHeld"},
		{name: "the next is asked while one runs", servers: one(claimed(), held("run")), wants: []Maintenance{wants("run", runs(time.Minute)), wants("a")},
			want: "a ServerHeld asks"},
		{name: "and needs its own approval", servers: one(claimed(approved), held("run")), wants: []Maintenance{wants("run", ends), wants("a")}, want: "a ApprovalOlder"},
	} {
		c.try(t)
	}
}

func TestWhatTheTenantConsentedToIsNamed(t *testing.T) {
	grants := Decide(Snapshot{Now: noon, Policy: free(), Servers: one(claimed(approved)), Maintenances: []Maintenance{wants("a", asked(time.Hour))}})
	if g := grants[0]; !g.Granted || g.Claim != "claim" || g.Server != "s1" || g.UID != "a" {
		t.Errorf("%+v", g)
	}
}
