// SPDX-License-Identifier: Apache-2.0

// Package maintenance holds what a bundle says of maintenance: windows, limits, waves and checks. It is pure.
package maintenance

import (
	"fmt"
	"time"
)

// Policy is the setting maintenance of a bundle, compiled. It is immutable and safe for concurrent use.
type Policy struct {
	// AfterRelease holds back maintenances of a server that was released less than ReleaseGrace ago, while claims wait.
	AfterRelease bool
	// ReleaseGrace is the setting releaseGrace of the bundle.
	ReleaseGrace time.Duration
	// PerClaim has an approval cover every maintenance of the claim's server, also those that came later.
	PerClaim bool
	// EnforcedNotice is how long the holder of a claim is told before an enforced maintenance begins.
	EnforcedNotice time.Duration
	// Expected is how long a maintenance is expected to hold its server where it does not say.
	Expected time.Duration
	// Windows are when maintenances begin. A server that none covers is always open.
	Windows []Window
	// Limits bound how many servers are down. None bounds nothing.
	Limits []Limit
	// Waves go one after the other. A server that no wave selects is in the last one, which has no name.
	Waves []Wave
	// Pre hold a maintenance back, Post decide whether it ended well.
	Pre, Post []Check
	// Stop is what stops all new grants.
	Stop Stop
}

// The defaults of the setting.
const (
	DefaultNotice   = 15 * time.Minute
	DefaultExpected = time.Hour
)

// Default is the policy of a bundle that does not say: 2 % of the servers, one of each rack, one of each namespace's claims.
func Default() *Policy {
	return &Policy{EnforcedNotice: DefaultNotice, Expected: DefaultExpected, Limits: DefaultLimits()}
}

// DefaultLimits are those of a bundle that has none written.
func DefaultLimits() []Limit {
	return []Limit{
		{Name: "fleet", Most: Amount{Percent: 2}},
		{Name: "racks", Per: PerRack, Most: Amount{Number: 1}},
		{Name: "namespaces", Per: PerNamespace, Most: Amount{Number: 1}},
	}
}

// Selector covers a server that has all labels. An empty one covers every server.
type Selector map[string]string

// Matches says that a server with these labels is covered.
func (s Selector) Matches(labels map[string]string) bool {
	for key, want := range s {
		if have, ok := labels[key]; !ok || have != want {
			return false
		}
	}
	return true
}

// The words of per that are no label keys.
const (
	// PerRack is the rack that the metadata of the server names.
	PerRack = "rack"
	// PerZone and PerRegion are the topology labels of Kubernetes.
	PerZone   = "zone"
	PerRegion = "region"
	// PerNamespace is the namespace of the claim that holds the server.
	PerNamespace = "claim.namespace"
)

const (
	labelZone   = "topology.kubernetes.io/zone"
	labelRegion = "topology.kubernetes.io/region"
)

// Limit bounds how many of the servers that it covers are down at a time.
type Limit struct {
	Name        string
	MatchLabels Selector
	// Per divides the servers: PerRack, PerZone, PerRegion, PerNamespace or the key of a label. A server without a value is not covered.
	Per  string
	Most Amount
}

// Place is the part of the limit that a server counts for; false where the limit does not cover the server.
func (l *Limit) Place(labels map[string]string, rack, namespace string) (string, bool) {
	if !l.MatchLabels.Matches(labels) {
		return "", false
	}
	var place string
	switch l.Per {
	case "":
		return "", true
	case PerRack:
		place = rack
	case PerNamespace:
		place = namespace
	case PerZone:
		place = labels[labelZone]
	case PerRegion:
		place = labels[labelRegion]
	default:
		place = labels[l.Per]
	}
	return place, place != ""
}

// Amount is a number of servers, or a percentage of them.
type Amount struct{ Number, Percent int }

// Of is how many of so many servers that is. A percentage is rounded down, and is never less than one.
func (a Amount) Of(servers int) int {
	if a.Percent > 0 {
		return max(1, servers*a.Percent/100)
	}
	return a.Number
}

// String is as a bundle says it.
func (a Amount) String() string {
	if a.Percent > 0 {
		return fmt.Sprintf("%d%%", a.Percent)
	}
	return fmt.Sprint(a.Number)
}

// Wave is a part of the fleet. The waves after it wait until its maintenances are over, and for the pause.
type Wave struct {
	Name        string
	MatchLabels Selector
	Pause       time.Duration
}

// Wave is the index of the first wave that selects a server with these labels; len(Waves) where none does.
func (p *Policy) Wave(labels map[string]string) int {
	for i := range p.Waves {
		if p.Waves[i].MatchLabels.Matches(labels) {
			return i
		}
	}
	return len(p.Waves)
}

// Stop is how many maintenances may fail, or take longer than expected, until no further one is granted; 0 is no bound.
type Stop struct{ Failed, Overdue int }

// Check is a condition of a server.
type Check struct {
	Name string
	Must *Expression
	// Within is how long it may fail until the maintenance is Failed; 0 is for ever.
	Within time.Duration
}

// Failing is a check that does not hold, or that cannot be evaluated.
type Failing struct {
	Name string
	// Why is the expression, or what is wrong with its evaluation.
	Why string
	// Within is how long it may fail until the maintenance is Failed; 0 is for ever.
	Within time.Duration
}

// String names the check and says why it fails.
func (f Failing) String() string { return f.Name + ": " + f.Why }

// FailingPre are the pre checks that fail.
func (p *Policy) FailingPre(f *Facts) []Failing { return failing(p.Pre, f) }

// FailingPost are the post checks that fail.
func (p *Policy) FailingPost(f *Facts) []Failing { return failing(p.Post, f) }

func failing(checks []Check, f *Facts) []Failing {
	var list []Failing
	for i := range checks {
		c := &checks[i]
		switch holds, err := c.Must.Holds(f); {
		case err != nil:
			list = append(list, Failing{c.Name, "it cannot be evaluated: " + err.Error(), c.Within})
		case !holds:
			list = append(list, Failing{c.Name, c.Must.String() + " does not hold", c.Within})
		}
	}
	return list
}

// Takes is how long a maintenance is expected to hold its server that says so itself; 0 where it does not.
func (p *Policy) Takes(says time.Duration) time.Duration {
	if says > 0 {
		return says
	}
	return p.Expected
}
