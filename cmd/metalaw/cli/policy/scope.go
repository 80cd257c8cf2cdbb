// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/internal/canary"
)

// reach is whom a canary would govern at present.
type reach struct {
	scope             canary.Scope
	servers, matching int
	shared            []shared
}

// shared are the servers that another canary governs as well, or would.
type shared struct {
	revision, scope, ending string
	servers                 int
	// prevails says that the other one began later, so that it has them.
	prevails bool
}

// tellScope counts the servers in the scope of a canary, and warns where there are none, or where another canary has them as well.
// Whoever may not see servers can still ask for the canary.
func (r *rollout) tellScope(ctx context.Context, t *terminal.Terminal, c client.Client, q *request) error {
	var list v1alpha1.ServerList
	if err := c.List(ctx, &list); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		t.Notef("how many servers are in its scope is not known: %v", access.Explain(err, "list", access.Servers))
		return nil
	}
	t.Notef("%s", strings.TrimSuffix(r.reach(q, list.Items).String(), "\n"))
	return nil
}

// reach finds whom a canary would govern among servers. Of two canaries that would have a server that one has it which began later in its
// scope.
func (r *rollout) reach(q *request, servers []v1alpha1.Server) reach {
	scope := canary.Scope{Selector: q.servers, Percent: int32(q.percent)}
	mine := within(servers, scope, q.bundle)
	found := reach{scope: scope, servers: len(servers), matching: len(mine)}
	var began *policyv1alpha1.CanaryStatus // it governs in this scope already, and its time counts
	for i := range q.before {
		if one := &q.before[i]; q.concerns(one) && isCanary(one) && scopeOf(one) == scope {
			began = one.Status.Canary
		}
	}
	for i := range q.before {
		other := &q.before[i]
		if !isCanary(other) || isPaused(other) || q.concerns(other) {
			continue
		}
		if both := len(within(mine, scopeOf(other), other.Spec.Bundle)); both > 0 {
			found.shared = append(found.shared, shared{revision: other.Name, scope: scopeOf(other).String(), ending: r.ending(other), servers: both,
				prevails: began != nil && other.Status.Canary != nil && other.Status.Canary.Since.After(began.Since.Time)})
		}
	}
	return found
}

// within are the servers in a scope.
func within(servers []v1alpha1.Server, scope canary.Scope, bundle string) []v1alpha1.Server {
	matcher := scope.Matcher(bundle)
	return slices.DeleteFunc(slices.Clone(servers), func(s v1alpha1.Server) bool { return !matcher.Covers(s.Labels, s.Spec.SystemUUID) })
}

// String is the reach in lines.
func (f reach) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "in its scope (%s) are now %d of %s\n", f.scope, f.matching, terminal.Count(f.servers, "server"))
	if f.matching == 0 {
		b.WriteString("Warning: the canary governs nobody until a server comes into its scope; " +
			"look at the labels with `kubectl get servers --show-labels`\n")
	}
	for _, s := range f.shared {
		later := "this one"
		if s.prevails {
			later = "that one"
		}
		fmt.Fprintf(&b, "Warning: canary %s (%s) has %d of them in its scope as well, and %s, which began later, governs these. "+
			"To end that one: %s\n", s.revision, s.scope, s.servers, later, s.ending)
	}
	return b.String()
}
