// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/claim"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
)

// governing are the bundles that govern the chosen servers, by revision. One that cannot be read is absent: the manager
// decides then.
type governing map[string]*bundle.Bundle

// readGoverning reads them where the request depends on them.
func (r *run) readGoverning(ctx context.Context, servers []v1alpha1.Server) {
	if r.verb.operation != v1alpha1.OperationRetry {
		return
	}
	r.governing = governing{}
	for i := range servers {
		l := servers[i].Status.Lifecycle
		if l == nil || l.Revision == "" {
			continue
		}
		if _, known := r.governing[l.Revision]; known {
			continue
		}
		r.governing[l.Revision] = nil
		var revision policyv1alpha1.PolicyRevision
		if err := r.client.Get(ctx, types.NamespacedName{Name: l.Revision}, &revision); err != nil {
			continue
		}
		if b, err := claim.Compile(&revision); err == nil {
			r.governing[l.Revision] = b
		}
	}
}

// noRetry says that a server has nothing that could be retried, and where it could; empty if it has, or if that is not
// known.
func (g governing) noRetry(s *v1alpha1.Server) string {
	if s.Status.Lifecycle == nil || s.Status.State == "" {
		return ""
	}
	b := g[s.Status.Lifecycle.Revision]
	if b == nil || b.Lifecycle.Accepts(engine.State(s.Status.State), v1alpha1.OperationRetry) {
		return ""
	}
	var states []string
	for _, state := range b.Lifecycle.States() {
		if b.Lifecycle.Accepts(state, v1alpha1.OperationRetry) {
			states = append(states, string(state))
		}
	}
	return fmt.Sprintf("there is nothing to retry: it is in %s, and a server is retried in %s", s.Status.State,
		strings.Join(states, " or "))
}

// planned is the plan for a server, by what governs it too.
func (r *run) planned(s *v1alpha1.Server, claims holders) result {
	p := r.plan(s, claims)
	if why := r.governing.noRetry(s); why != "" && p.Outcome == outcomeAsked {
		p.Outcome, p.Message, p.idle = outcomeRefused, why, true
	}
	return p
}

// errNothingToRetry says that no server of a choice can be retried.
var errNothingToRetry = errors.New("nothing was asked: none of these servers has anything to retry")

// idle leaves out the servers of a choice that have nothing to retry, because a choice means those that have. If none
// has, that is an error.
func (r *run) idle(plans []result) error {
	if r.verb.operation != v1alpha1.OperationRetry || len(r.names) > 0 {
		return nil
	}
	retries := 0
	for i := range plans {
		switch {
		case plans[i].idle:
			plans[i].Outcome = outcomeUnchanged
		default:
			retries++
		}
	}
	if retries == 0 {
		r.report.nothing()
		return errNothingToRetry
	}
	return nil
}
