// SPDX-License-Identifier: Apache-2.0

// Package fleet holds back what the people who run the fleet do not allow at present: by freezes, budgets, a breaker, and
// by running only to observe.
package fleet

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/freeze"
)

// Verdict says whether something may be done now.
type Verdict struct {
	Allowed bool
	// Of is the action that is held back.
	Of Action
	// Reason is one word, for the condition: see the reasons of condition Withheld. Message says what holds the action
	// back.
	Reason, Message string
	// Again is when to ask again; 0 where a change of the FleetControl will tell.
	Again time.Duration
}

var allowed = Verdict{Allowed: true}

// askAgain is how long a machine waits for a budget before it asks again, where nothing tells when there will be room.
const askAgain = 15 * time.Second

// Gate is asked before anything is done to a machine. It is safe for concurrent use.
type Gate struct {
	// Client reads the cache, Reader past it.
	Client, Reader client.Reader
	// Interval is the least time between the beginnings of two uncached reads of the FleetControl.
	Interval time.Duration
	// ObserveOnly holds everything back.
	ObserveOnly bool
	Now         func() time.Time

	counters counters
	fresh    sharedRead
	// complete says that the counters know every server; nil for a gate that is asked about no other.
	complete func() bool
	// tripped tells the controller that the breaker has to be recorded as tripped.
	tripped func()
	// latched is a trip that the store is not known to show. It is under the lock of the counters.
	latched *policyv1alpha1.BreakerTrip
}

// Control is the FleetControl as the cache has it; nil where there is none.
func (g *Gate) Control(ctx context.Context) (*policyv1alpha1.FleetControl, error) {
	return control(ctx, g.Client)
}

func control(ctx context.Context, from client.Reader) (*policyv1alpha1.FleetControl, error) {
	c := &policyv1alpha1.FleetControl{}
	err := from.Get(ctx, types.NamespacedName{Name: policyv1alpha1.FleetControlName}, c)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return c, nil
}

// HoldOn is what keeps actions back on an object with these labels, as the cache has it.
func (g *Gate) HoldOn(ctx context.Context, labels map[string]string) (freeze.Hold, error) {
	if g.ObserveOnly {
		return freeze.Hold{Level: policyv1alpha1.FreezeAll, Reason: v1alpha1.ReasonObserveOnly}, nil
	}
	c, err := g.Control(ctx)
	if err != nil || c == nil {
		return freeze.Hold{}, err
	}
	g.counters.mu.Lock()
	g.latch(c)
	g.counters.mu.Unlock()
	return freeze.On(c, labels, g.Now()), nil
}

// Permit says whether an action on a server is allowed now, by the FleetControl as the cache has it. What is allowed and
// counted by a budget counts from this call on, before any write records it. An error permits nothing. Recheck comes
// between this and the effect.
func (g *Gate) Permit(ctx context.Context, server *v1alpha1.Server, action Action) (Verdict, error) {
	return g.ask(ctx, g.Control, server, []Action{action}, g.spend)
}

// Recheck says whether actions that were permitted are still not held back, by a freeze or by the breaker. It waits for an
// uncached read of the FleetControl that begins after this call, and an error permits nothing. It does not ask the budgets,
// which count the actions already: if the cache lags behind what was read, they counted by a former spec, and nothing is allowed.
func (g *Gate) Recheck(ctx context.Context, server *v1alpha1.Server, actions ...Action) (Verdict, error) {
	if !slices.ContainsFunc(actions, Action.Uncached) {
		return g.Look(ctx, server, actions...)
	}
	var fresh *policyv1alpha1.FleetControl
	verdict, err := g.ask(ctx, func(ctx context.Context) (_ *policyv1alpha1.FleetControl, err error) {
		fresh, err = g.fresh.get(ctx, g.Reader, g.Interval)
		return fresh, err
	}, server, actions, unspent)
	if err != nil || !verdict.Allowed {
		return verdict, err
	}
	cached, err := g.Control(ctx)
	if err != nil {
		return Verdict{}, fmt.Errorf("read FleetControl %s: %w", policyv1alpha1.FleetControlName, err)
	}
	if editionOf(cached) != editionOf(fresh) {
		return Verdict{Of: actions[0], Reason: v1alpha1.ReasonStarting, Again: time.Second,
			Message: "the manager does not see the last change of FleetControl yet, so its budgets are not asked"}, nil
	}
	return allowed, nil
}

// Look is the last look right before an effect: Recheck without a wait, by the FleetControl as the cache has it. A freeze
// that the cache shows stops each effect that has not begun, however long ago it was rechecked.
func (g *Gate) Look(ctx context.Context, server *v1alpha1.Server, actions ...Action) (Verdict, error) {
	return g.ask(ctx, g.Control, server, actions, unspent)
}

// further is what an action is held against besides freezes and the breaker.
type further func(*controlCounter, *v1alpha1.Server, Action, time.Time) Verdict

func unspent(*controlCounter, *v1alpha1.Server, Action, time.Time) Verdict { return allowed }

// ask holds actions against freezes and the breaker, and then against what else there is to hold them against.
func (g *Gate) ask(ctx context.Context, from func(context.Context) (*policyv1alpha1.FleetControl, error), server *v1alpha1.Server,
	actions []Action, also further) (Verdict, error) {
	if g.ObserveOnly && len(actions) > 0 {
		return Verdict{Of: actions[0], Reason: v1alpha1.ReasonObserveOnly, Message: "the manager runs with --observe-only"}, nil
	}
	if !slices.ContainsFunc(actions, func(a Action) bool { return a != Record }) {
		return allowed, nil
	}
	c, err := from(ctx)
	if err != nil {
		return Verdict{}, fmt.Errorf("read FleetControl %s: %w", policyv1alpha1.FleetControlName, err)
	}
	if c == nil {
		return allowed, nil
	}
	if g.complete != nil && !g.complete() {
		return Verdict{Of: actions[0], Reason: v1alpha1.ReasonStarting, Message: "the manager has not seen every server yet", Again: time.Second}, nil
	}
	now := g.Now()
	g.counters.mu.Lock()
	defer g.counters.mu.Unlock()
	counts := g.judge(c, now)
	hold := freeze.On(c, server.Labels, now)
	for _, action := range actions {
		if v := holdBack(hold, action, now); !v.Allowed {
			return v, nil
		}
		if v := also(counts, server, action, now); !v.Allowed {
			v.Of = action
			return v, nil
		}
	}
	return allowed, nil
}

// holdBack says whether what is kept back on a server covers an action.
func holdBack(hold freeze.Hold, action Action, now time.Time) Verdict {
	if !action.HeldBy(hold.Level) {
		return allowed
	}
	v := Verdict{Of: action, Reason: hold.Reason, Message: hold.Message}
	if !hold.Until.IsZero() {
		v.Again = hold.Until.Sub(now)
	}
	return v
}

// judge has the breaker of a FleetControl trip where it must, and returns what the FleetControl counts. It is called with
// the lock of the counters held.
func (g *Gate) judge(c *policyv1alpha1.FleetControl, now time.Time) *controlCounter {
	counts := g.counters.counts(c)
	g.latch(c)
	if c.Spec.Breaker == nil || freeze.Tripped(c) {
		return counts
	}
	if trip := counts.breaker.trips(len(g.counters.machines), now); trip != nil {
		g.latched, c.Status.Trip = trip, trip.DeepCopy()
		if g.tripped != nil {
			g.tripped()
		}
	}
	return counts
}

// latch shows the trip in a FleetControl that was judged before and is not stored yet, so that the breaker does not open
// again as its window passes. The trip is kept until the store shows it, somebody acknowledges it, or the breaker is taken
// away. It is called with the lock of the counters held.
func (g *Gate) latch(c *policyv1alpha1.FleetControl) {
	if g.latched == nil {
		return
	}
	b, stored := c.Spec.Breaker, c.Status.Trip
	if b == nil || (b.AcknowledgedAt != nil && !b.AcknowledgedAt.Time.Before(g.latched.At.Time)) ||
		(stored != nil && !stored.At.Time.Before(g.latched.At.Time)) {
		g.latched = nil
		return
	}
	c.Status.Trip = g.latched.DeepCopy()
}

// spend asks the budgets, and counts what they allow.
func (g *Gate) spend(counts *controlCounter, server *v1alpha1.Server, action Action, now time.Time) Verdict {
	what := action.budgeted()
	if what == "" {
		return allowed
	}
	for _, a := range counts.budgets {
		if a.budget.Action != what || !a.covers(server.Labels) {
			continue
		}
		value := a.value(server.Labels)
		if used, free := a.use(value, server.Name, now); used >= a.limit(value) {
			v := exhausted(a, server.Labels, free)
			v.Again += g.counters.stagger(server)
			return v
		}
	}
	if server.Name != "" {
		g.counters.grant(server, what, now)
	}
	return allowed
}

func exhausted(a *account, labels map[string]string, free time.Duration) Verdict {
	b, where := a.budget, ""
	if b.Per != "" {
		where = fmt.Sprintf(" of %s=%s", b.Per, labels[b.Per])
	}
	if free == 0 || free > time.Minute {
		free = askAgain
	}
	// Every machine that waits shows this: a moment in it would be another text, and another write, with each that is let
	// through. So the moment is told by the command that is named.
	return Verdict{Reason: v1alpha1.ReasonBudgetExhausted, Again: free, Message: fmt.Sprintf(
		"budget %q%s allows %s %s %s, and as many are counted; metalaw fleet status says when there is room again",
		b.Name, where, machines(a.limit(a.value(labels))), inWords[b.Action], a.within())}
}

func machines(n int32) string {
	if n == 1 {
		return "1 machine"
	}
	return fmt.Sprintf("%d machines", n)
}

// lasting says that an action counts as long as it lasts, and not for the window of a budget.
func lasting(action policyv1alpha1.FleetAction) bool {
	return action == policyv1alpha1.ActionWipe || action == policyv1alpha1.ActionMaintenance
}

// within says for how long an action counts.
func (a *account) within() string {
	if lasting(a.budget.Action) {
		return "at a time"
	}
	return "within " + a.window.String()
}

var inWords = map[policyv1alpha1.FleetAction]string{
	policyv1alpha1.ActionWipe:        "being wiped",
	policyv1alpha1.ActionForcedOff:   "powered off by force",
	policyv1alpha1.ActionPowerCycle:  "restarted",
	policyv1alpha1.ActionPowerOn:     "switched on",
	policyv1alpha1.ActionMaintenance: "in maintenance",
}

// staggerEach is how much time each machine that waits for a budget adds to that over which all of them ask again: each
// asks past the cache, and as a rule few of them get what becomes free.
const staggerEach = 10 * time.Millisecond

// stagger is how much later than the others a server asks again for a budget: hardly later where few wait, and up to
// askAgain where many do. It is the same each time, so that the order in which they ask is not drawn anew. It is called
// with the lock held.
func (c *counters) stagger(s *v1alpha1.Server) time.Duration {
	over := min(time.Duration(c.withheld[v1alpha1.ReasonBudgetExhausted])*staggerEach, askAgain)
	if over <= 0 {
		return 0
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(cmp.Or(string(s.UID), s.Name))) // it never fails
	return time.Duration(sum.Sum64() % uint64(over))
}
