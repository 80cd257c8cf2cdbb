// SPDX-License-Identifier: Apache-2.0

// Package overview answers what an operator asks of a fleet at one look: what is not well, where each machine is, why
// claims wait, what governs, what happened, what is held back, and which maintenances wait. It is pure.
package overview

import (
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// patience is how long a server may try again, or an object may be without status, before a person is needed.
const patience = 10 * time.Minute

// Input is what was read of a cluster.
type Input struct {
	Now          time.Time
	Servers      []v1alpha1.Server
	BMCs         []v1alpha1.BMC
	Claims       []v1alpha1.ServerClaim
	Maintenances []v1alpha1.ServerMaintenance
	Revisions    []policyv1alpha1.PolicyRevision
	// Control is the FleetControl; nil if there is none.
	Control *policyv1alpha1.FleetControl
	// Leases are those of the manager's namespace.
	Leases []coordinationv1.Lease
	// Unread is what could not be read; nothing is concluded from its absence.
	Unread []Unread
}

// Unread is a resource that could not be read, and why.
type Unread struct {
	Resource string `json:"resource"`
	Why      string `json:"why"`
}

// Resources by which Unread names what is missing.
const (
	Servers      = "servers"
	BMCs         = "bmcs"
	Claims       = "serverclaims"
	Maintenances = "servermaintenances"
	Revisions    = "policyrevisions"
	Controls     = "fleetcontrols"
	Leases       = "leases"
)

// Verdict is the answer in one word.
type Verdict string

const (
	// Well says that nothing needs a person.
	Well Verdict = "Well"
	// NeedsPerson says that a person has to act.
	NeedsPerson Verdict = "NeedsPerson"
	// Unknown says that not everything could be read, and that what was read is well.
	Unknown Verdict = "Unknown"
)

// Answers are the answers, in the order in which an operator asks.
type Answers struct {
	At      time.Time `json:"at"`
	Verdict Verdict   `json:"verdict"`
	// Person is what needs a person, in a few words each.
	Person []string `json:"needsPerson"`
	Unread []Unread `json:"unread,omitempty"`

	NotWell     []Trouble   `json:"notWell"`
	Where       Where       `json:"where"`
	Claims      ClaimAnswer `json:"claims"`
	Policy      Policy      `json:"policy"`
	Happened    Happened    `json:"happened"`
	Held        Held        `json:"held"`
	Maintenance Waits       `json:"maintenance"`
}

// Of answers all questions.
func Of(in Input) Answers {
	servers := make(map[string]*v1alpha1.Server, len(in.Servers))
	for i := range in.Servers {
		servers[in.Servers[i].Name] = &in.Servers[i]
	}
	a := Answers{At: in.Now.UTC(), Unread: in.Unread}
	a.NotWell = notWell(in)
	a.Where = whereOf(in.Servers, a.NotWell)
	a.Claims = claimsOf(in.Claims, servers, in.Now)
	a.NotWell = ordered(append(a.NotWell, a.Claims.troubles()...))
	a.Policy = policyOf(in.Revisions, in.Servers)
	a.Happened = happenedOf(in.Servers, in.Now)
	a.Held = heldOf(in)
	a.Maintenance = waitsOf(in.Maintenances, in.Servers, servers)
	a.Person = personOf(in, &a)
	switch {
	case len(a.Person) > 0:
		a.Verdict = NeedsPerson
	case len(in.Unread) > 0:
		a.Verdict = Unknown
	default:
		a.Verdict = Well
	}
	return a
}

func (in *Input) unread(resource string) bool {
	for _, u := range in.Unread {
		if u.Resource == resource {
			return true
		}
	}
	return false
}

// personOf lists what needs a person, what concerns the whole fleet first.
func personOf(in Input, a *Answers) []string {
	person := []string{}
	add := func(is bool, words string) {
		if is {
			person = append(person, words)
		}
	}
	add(!in.unread(Leases) && !a.Held.Running.Leading, "no manager leads")
	add(a.Held.Breaker != nil && a.Held.Breaker.Tripped, "the breaker has tripped")
	add(!in.unread(Revisions) && a.Policy.InForce == "", "no policy revision is in force")
	for i := range a.Policy.Revisions {
		r := &a.Policy.Revisions[i]
		add(r.Needs != "", "policy revision "+r.Name+" "+r.Needs)
	}
	counts := map[string]int{}
	for i := range a.NotWell {
		if a.NotWell[i].NeedsPerson {
			counts[a.NotWell[i].Kind]++
		}
	}
	for _, w := range a.Maintenance.Waiting {
		if w.NeedsPerson {
			counts["maintenance"]++
		}
	}
	for _, d := range a.Maintenance.Decommissions {
		if d.NeedsPerson {
			counts["decommission"]++
		}
	}
	for _, kind := range []struct{ key, one, many string }{{kindServer, "1 server", "servers"}, {kindBMC, "1 BMC",
		"BMCs"},
		{kindClaim, "1 claim", "claims"}, {"maintenance", "1 maintenance", "maintenances"},
		{"decommission", "1 decommission", "decommissions"}} {
		switch n := counts[kind.key]; n {
		case 0:
		case 1:
			person = append(person, kind.one)
		default:
			person = append(person, strconv.Itoa(n)+" "+kind.many)
		}
	}
	return person
}
