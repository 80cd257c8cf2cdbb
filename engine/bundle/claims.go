// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"regexp"
	"time"

	"github.com/metalaw/metalaw/engine/internal/yamlpos"
)

// Claims is how claims are served.
type Claims struct {
	Priority Priority
	// OnUnsatisfiable is what becomes of a claim that no server of the fleet, in any state, could ever satisfy:
	// UnsatisfiableDeny, UnsatisfiableWarn or UnsatisfiableAllow.
	OnUnsatisfiable string
	// Quota is how many claims a namespace may have.
	Quota Quota
}

// The words of claims.onUnsatisfiable.
const (
	UnsatisfiableDeny  = "Deny"
	UnsatisfiableWarn  = "Warn"
	UnsatisfiableAllow = "Allow"
)

// Quota bounds the claims of a namespace that hold a server or ask for one.
type Quota struct {
	// Default holds for namespaces that Namespaces does not name; nil where they have no bound.
	Default *int
	// Namespaces are the bounds by namespace.
	Namespaces map[string]int
}

// Limit is how many claims a namespace may have; false where there is no bound.
func (q Quota) Limit(namespace string) (int, bool) {
	if limit, ok := q.Namespaces[namespace]; ok {
		return limit, true
	}
	if q.Default == nil {
		return 0, false
	}
	return *q.Default, true
}

// Exceeded says in words that a namespace whose claims have so many servers does not get so many more; empty where it may. More
// than one are the members of a gang, who get theirs together.
func (q Quota) Exceeded(namespace string, used, more int) string {
	limit, ok := q.Limit(namespace)
	if !ok || more == 0 || used+more <= limit {
		return ""
	}
	if limit == 0 {
		return "the quota of the namespace allows its claims no server; this one gets one once the quota is raised"
	}
	who := "this one gets a server"
	if more > 1 {
		who = fmt.Sprintf("the %d of its gang that have none get servers together", more)
	}
	return fmt.Sprintf("the claims of the namespace have %d of the %d servers that its quota allows; "+
		"%s once another has ended, or the quota is raised", used, limit, who)
}

// TooSmall says in words that a namespace never gets the servers of a whole gang of a size, even if claims end; empty
// where it may.
func (q Quota) TooSmall(namespace string, size int64) string {
	limit, ok := q.Limit(namespace)
	if !ok || size <= int64(limit) {
		return ""
	}
	return fmt.Sprintf("it takes %d servers, and the quota of the namespace allows its claims %d. "+
		"None of its members gets one until the quota is raised or the gang is smaller", size, limit)
}

// MaxQuota bounds a quota: it is more than any fleet has servers.
const MaxQuota = 1000000

// Priority is what becomes of the priority that a claim asks for.
type Priority struct {
	// Max is the most that a claim can have; what asks for more has that.
	Max int64
	// Namespaces are the most by namespace, instead of Max.
	Namespaces map[string]int64
	// Ageing is how long a claim waits for one point more; 0 where waiting counts only among equals.
	Ageing time.Duration
}

// MaxPriority bounds the priority of a claim in both directions, also if a bundle says more.
const MaxPriority = 1000

// defaultAgeing lets the least claim pass the highest after two weeks.
const defaultAgeing = 10 * time.Minute

// leastAgeing is how finely the creation of a claim is told.
const leastAgeing = time.Second

// Grant returns the priority that a claim of a namespace has which asks for one.
func (p Priority) Grant(namespace string, asked int64) int64 {
	most, ok := p.Namespaces[namespace]
	if !ok {
		most = p.Max
	}
	return min(asked, most)
}

// Aged is the priority of a claim that has waited for so long. It is not bounded, so that every claim is first at some time.
func (p Priority) Aged(priority int64, waited time.Duration) int64 {
	if p.Ageing <= 0 || waited <= 0 {
		return priority
	}
	return priority + int64(waited/p.Ageing)
}

func defaultClaims() Claims {
	return Claims{Priority: Priority{Max: MaxPriority, Ageing: defaultAgeing}, OnUnsatisfiable: UnsatisfiableWarn}
}

// namespaceName is the form of a namespace's name, of 63 characters at most.
var namespaceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// keys are what settings.claims may hold.
func (c *Claims) keys() []key {
	return []key{
		{"priority", mapping(
			key{"max", whole(&c.Priority.Max, -MaxPriority, MaxPriority)},
			key{"namespaces", byNamespace(&c.Priority.Namespaces, -MaxPriority, MaxPriority)},
			key{"ageing", c.Priority.readAgeing})},
		{"onUnsatisfiable", word(&c.OnUnsatisfiable, UnsatisfiableDeny, UnsatisfiableWarn, UnsatisfiableAllow)},
		{"quota", mapping(
			key{"default", func(f *yamlpos.File, k yamlpos.Field) {
				c.Quota.Default = new(int)
				whole(c.Quota.Default, 0, MaxQuota)(f, k)
			}},
			key{"namespaces", byNamespace(&c.Quota.Namespaces, 0, MaxQuota)})},
	}
}

func (p *Priority) readAgeing(f *yamlpos.File, k yamlpos.Field) {
	span(&p.Ageing, "10m")(f, k)
	if 0 < p.Ageing && p.Ageing < leastAgeing {
		f.Errorf(k.Value, "setting-duration", "", "write a duration of 1s or more, such as 10m; with 0s waiting counts only among equals",
			"ageing is %s, and claims are told apart by the second in which they were created", p.Ageing)
	}
}
