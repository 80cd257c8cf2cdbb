// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/maintenance/grant"
	"github.com/metalaw/metalaw/controllers/maintenance/hold"
	"github.com/metalaw/metalaw/controllers/trigger"
	"github.com/metalaw/metalaw/engine/maintenance"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/internal/stored"
	"github.com/metalaw/metalaw/policies"
)

// pass is one look at all maintenances.
type pass struct{}

const (
	// gather is how long a change waits for others, so that many changes at once cost few passes.
	gather = 50 * time.Millisecond
	// longest bounds a pass; what is left over is done in the next one, after what became more urgent.
	longest = time.Second
	// quiet is how long a maintenance that waits for others says the same, whichever of them it waits for.
	quiet = 10 * time.Minute
	// recheck is when everything is looked at again that nothing told of.
	recheck = 5 * time.Minute
)

// written is what this manager wrote last, for as long as a cache does not show it: limits count what was granted a moment
// ago, and no write is made twice.
type written struct {
	maintenances stored.Written[*v1alpha1.ServerMaintenance]
	servers      stored.Written[*v1alpha1.Server]
	claims       stored.Written[*v1alpha1.ServerClaim]
	// boots are the boot configurations that were deleted, by the maintenance that they were of.
	boots map[types.UID]types.UID
}

// scheduler grants maintenances and carries them out, one pass after the other.
type scheduler struct {
	client client.Client
	// live reads past the cache.
	live     client.Reader
	gate     *fleet.Gate
	recorder events.EventRecorder
	// policy is what the bundle in force says, and why nothing may be granted under it.
	policy    func() (*maintenance.Policy, string)
	planOnly  bool
	namespace string
	now       func() time.Time
	counts    *counted.Clock
	passes    trigger.TypedSource[pass]
	// idle says that no maintenance is there, so that only what concerns one is worth a pass.
	idle atomic.Bool

	makers  makers
	written written
	// consent is when this cluster first ran with a manager that grants; zero until it is known.
	consent time.Time
	// handed is when this process handed a server to a maintenance, and answered when it last said why one waits.
	handed, answered map[types.UID]time.Time
}

// Reconcile is one pass.
func (s *scheduler) Reconcile(ctx context.Context, _ pass) (reconcile.Result, error) {
	if err := s.agree(ctx); err != nil {
		return reconcile.Result{}, err
	}
	v, err := s.see(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	names := v.concerned()
	s.forget(v)
	s.idle.Store(len(names) == 0)
	if len(names) == 0 {
		return reconcile.Result{}, nil
	}
	answers := s.decide(v)
	r := &round{scheduler: s, view: v, answers: answers, until: s.now().Add(longest)}
	r.due(v.thaws())
	r.serve(ctx, names)
	r.due(s.makers.again())
	again := max(r.again.Sub(s.now()), gather)
	if r.again.IsZero() {
		again = recheck
	}
	if err := errors.Join(r.failed, ctx.Err()); err != nil {
		s.passes.AddAfter(pass{}, again) // what others wait for does not wait for the end of the error
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: min(again, recheck)}, nil
}

// agree finds out since when this cluster's manager grants maintenances.
func (s *scheduler) agree(ctx context.Context) (err error) {
	if s.planOnly || !s.consent.IsZero() {
		return nil
	}
	s.consent, err = consentAt(ctx, s.live, s.client, s.namespace, s.now())
	return err
}

// forget drops what is remembered of maintenances that are gone.
func (s *scheduler) forget(v *view) {
	s.makers.forget()
	known := make(map[types.UID]bool, len(v.maintenances))
	for _, m := range v.maintenances {
		known[m.UID] = true
	}
	gone := func(uid types.UID, _ time.Time) bool { return !known[uid] }
	maps.DeleteFunc(s.handed, gone)
	maps.DeleteFunc(s.answered, gone)
	maps.DeleteFunc(s.written.boots, func(uid, _ types.UID) bool { return !known[uid] })
}

// decide answers every maintenance that waits.
func (s *scheduler) decide(v *view) map[types.UID]*grant.Grant {
	grants := grant.Decide(v.snapshot(s.refused, s.makers.mayEnforce))
	answers := make(map[types.UID]*grant.Grant, len(grants))
	plans := false
	for i := range grants {
		g := &grants[i]
		if s.planOnly && g.Reason != v1alpha1.ReasonPlanOnly {
			planned(g, "The manager runs with --maintenance=plan.")
		}
		plans = plans || g.Reason == v1alpha1.ReasonPlanOnly && !s.planOnly
		answers[g.UID] = g
	}
	if plans {
		s.plan(v, answers)
	}
	return answers
}

// plan answers those that are planned only with what they would be answered else. The others are answered without them.
func (s *scheduler) plan(v *view, answers map[types.UID]*grant.Grant) {
	without := func(m *v1alpha1.ServerMaintenance) grant.Answer {
		if a := s.refused(m); a.Reason != v1alpha1.ReasonPlanOnly {
			return a
		}
		return grant.Answer{}
	}
	grants := grant.Decide(v.snapshot(without, s.makers.mayEnforce))
	for i := range grants {
		if g := answers[grants[i].UID]; g != nil && g.Reason == v1alpha1.ReasonPlanOnly {
			planned(&grants[i], g.Message)
			answers[g.UID] = &grants[i]
		}
	}
}

// refused is why a maintenance may not be granted whatever its server does; empty where it may.
func (s *scheduler) refused(m *v1alpha1.ServerMaintenance) grant.Answer {
	switch {
	case m.Annotations[v1alpha1.PlanOnlyAnnotation] == "true" && !s.planOnly:
		return grant.Answer{Reason: v1alpha1.ReasonPlanOnly, Message: fmt.Sprintf(
			"Annotation %s has it planned only; remove it to have it granted.", v1alpha1.PlanOnlyAnnotation)}
	case s.planOnly:
		return grant.Answer{} // all are planned only, and each says what it would be answered
	case !adopted(m, s.consent):
		return grant.Answer{Reason: v1alpha1.ReasonNotAdopted, Message: fmt.Sprintf(
			"It is older than the manager's consent to grant maintenances. Annotate it %s=true to have it granted, or delete it.",
			v1alpha1.AdoptAnnotation)}
	}
	return s.makers.refused(m)
}

// round is what is done in one pass.
type round struct {
	*scheduler
	*view
	answers map[types.UID]*grant.Grant
	until   time.Time
	// again is when the next pass is due; zero where nothing tells.
	again  time.Time
	failed error
}

// due remembers when another pass is due.
func (r *round) due(at time.Time) {
	if !at.IsZero() && (r.again.IsZero() || at.Before(r.again)) {
		r.again = at
	}
}

// serve does what is due for each server. Those whose machine waits for it come first.
func (r *round) serve(ctx context.Context, names []string) {
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(r.rank(a), r.rank(b)) })
	for _, name := range names {
		if ctx.Err() != nil {
			return
		}
		if now := r.now(); now.After(r.until) {
			r.due(now)
			return
		}
		if err := r.serveOne(ctx, name); err != nil {
			r.failed = errors.Join(r.failed, fmt.Errorf("server %s: %w", name, err))
		}
	}
}

// rank is 0 for a server that a maintenance has or gets, and 1 for others.
func (r *round) rank(name string) int {
	if hold.Granted(r.servers[name]) {
		return 0
	}
	for _, m := range r.of[name] {
		if a := r.answers[m.UID]; a != nil && a.Granted || hold.Ends(m) {
			return 0
		}
	}
	return 1
}

// mostSteps bounds what is done for one server in a pass.
const mostSteps = 1000

// serveOne carries out one step after the other until none is due.
func (r *round) serveOne(ctx context.Context, name string) error {
	l, err := r.look(ctx, name)
	if err != nil {
		return err
	}
	for range mostSteps {
		step := hold.Decide(l)
		if step.Kind == hold.None {
			r.due(step.Again)
			return nil
		}
		goesOn, err := r.carry(ctx, l, step)
		if err != nil {
			return err
		}
		if !goesOn {
			r.due(r.now().Add(conflictPause))
			return nil
		}
	}
	return fmt.Errorf("there is no end to what is due for it after %d writes", mostSteps)
}

// look gathers what there is to see of a server and its maintenances.
func (r *round) look(ctx context.Context, name string) (*hold.Look, error) {
	server := r.servers[name]
	l := &hold.Look{Now: r.at, Counted: r.clock.Now(), PlanOnly: r.planOnly, Server: server, Claim: r.claimOf(server)}
	held := false
	for _, m := range r.of[name] {
		one, err := r.maintenance(ctx, m, server)
		if err != nil {
			return nil, err
		}
		if hold.Holds(server, m) {
			held = true
			l.Settling = r.at.Before(r.handed[m.UID].Add(hold.SettleTime))
		}
		l.Maintenances = append(l.Maintenances, one)
	}
	if hold.Granted(server) && !held && !r.planOnly {
		gone, err := r.gone(ctx, server)
		if err != nil {
			return nil, err
		}
		l.Gone = gone
	}
	return l, nil
}

// maintenance gathers what belongs to one maintenance.
func (r *round) maintenance(ctx context.Context, m *v1alpha1.ServerMaintenance, server *v1alpha1.Server) (hold.Maintenance, error) {
	one := hold.Maintenance{ServerMaintenance: m, Answer: r.answers[m.UID], Quiet: r.at.Before(r.answered[m.UID].Add(quiet))}
	if r.setting != nil {
		one.Expected = r.setting.Takes(expected(m))
	}
	if m.Spec.ServerBootConfigurationTemplate != nil {
		boot := &v1alpha1.ServerBootConfiguration{}
		err := r.client.Get(ctx, client.ObjectKeyFromObject(m), boot)
		if client.IgnoreNotFound(err) != nil {
			return one, fmt.Errorf("boot configuration %s/%s: %w", m.Namespace, m.Name, err)
		}
		if err == nil && r.written.boots[m.UID] != boot.UID {
			one.Boot = boot
		}
	}
	if !m.DeletionTimestamp.IsZero() && m.Status.GrantedAt != nil && server != nil {
		one.After = after(r.setting, server, r.claimOf(server))
	}
	return one, nil
}

// after is a check of the policy that has to hold once a maintenance is over, and does not; nil where all hold. None counts before the
// server has left the state Maintenance.
func after(p *maintenance.Policy, s *v1alpha1.Server, claim *v1alpha1.ServerClaim) *hold.Check {
	if len(p.Post) == 0 {
		return nil
	}
	if s.Spec.ServerMaintenanceRef == nil && s.Status.State == v1alpha1.StateMaintenance {
		return &hold.Check{Message: "Its checks wait until the server has left the state Maintenance."}
	}
	facts := policies.GrantFacts(s, claim)
	failing := p.FailingPost(&facts)
	if len(failing) == 0 {
		return nil
	}
	return &hold.Check{Message: fmt.Sprintf("Check %s. The maintenance is over once it holds, or once annotation %s is on it.",
		failing[0], v1alpha1.AbortAnnotation), Within: failing[0].Within}
}
