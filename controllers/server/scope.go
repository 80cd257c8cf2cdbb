// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/controllers/server/gates"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/controllers/server/plan"
	"github.com/metalaw/metalaw/controllers/server/proof"
	"github.com/metalaw/metalaw/controllers/server/said"
	"github.com/metalaw/metalaw/controllers/server/status"
	"github.com/metalaw/metalaw/controllers/server/storage"
	"github.com/metalaw/metalaw/controllers/trigger"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/internal/restored"
	"github.com/metalaw/metalaw/policies"
)

// subject implements loop.Subject for servers.
type subject struct {
	Options
	memory *memory
	pace   *pace
}

func newSubject(o Options) *subject {
	return &subject{Options: o, memory: &memory{servers: map[string]*plan.Memory{}}, pace: newPace(o.AdoptionRate)}
}

// memory is what this process remembers of servers.
type memory struct {
	mu      sync.Mutex
	servers map[string]*plan.Memory
}

// of is what is remembered of a server. No two reconciles of one server run at once, so it needs no lock of its own.
func (m *memory) of(name string) *plan.Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.servers[name]
	if !ok {
		r = &plan.Memory{}
		m.servers[name] = r
	}
	return r
}

func (m *memory) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.servers, name)
}

// scope is one server in one reconcile. What is seen of it goes through the gates and the plan; the executor carries
// out the acts; and plan.Record makes of the answers what is stored.
type scope struct {
	*Options
	server *v1alpha1.Server
	seen   *plan.Seen
	x      *executor
	pace   *pace
	// remembered is what this process goes on remembering.
	remembered *plan.Memory
	// governs is what governs the server, and heldBack says that a freeze or a budget holds it back.
	governs  rollout.Governance
	heldBack bool
	clock    *v1alpha1.DeadlineClock
	grants   rollout.Grants
	// gated is the decision that stands, and what holds the server back.
	gated    gates.Output
	recorded plan.Recorded
}

// Observe implements loop.Subject.
func (s *subject) Observe(ctx context.Context, server *v1alpha1.Server) (loop.Scope[*gates.Output], error) {
	s.Outage() // the first call takes the lease, from which counted time goes on
	v := s.scope(server)
	policies.SeeRelease(server, v.seen.CountedNow) // the write of this reconcile stores it
	if err := v.readObjects(ctx); err != nil {
		return nil, err
	}
	said.Return(server, v.seen.Inventory) // the first write of a new Server stores it
	v.readJobs()
	v.governs = rollout.Governs(v.question()) // nothing is granted yet
	v.seen.Bundle = v.governs.Bundle
	if err := v.readHardware(ctx); err != nil {
		return nil, err
	}
	hold, err := s.Gate.HoldOn(ctx, server.Labels)
	if err != nil {
		return nil, err
	}
	v.heldBack = restored.Waits(server, v.seen.Inventory) || hold.Destructive() ||
		meta.IsStatusConditionTrue(server.Status.Conditions, v1alpha1.ConditionWithheld)
	v.governBy(rollout.Governs(v.question())) // the BMC may have answered
	err = v.confirmByHand(ctx)
	return v, err
}

// scope begins to look at a server.
func (s *subject) scope(server *v1alpha1.Server) *scope {
	v := &scope{Options: &s.Options, server: server, pace: s.pace, remembered: s.memory.of(server.Name)}
	v.seen = &plan.Seen{
		Config: plan.Config{Namespace: s.Namespace, ProbeImage: s.ProbeImage, WipeImage: s.WipeImage, RegistryURL: s.RegistryURL,
			BootTarget: s.BootTarget, MediaURL: s.MediaURL, PowerGrace: s.PowerGrace, BootGrace: s.BootGrace},
		Observation: policies.Observation{Server: server, Now: s.Now(), CountedNow: s.Counted.Now()},
		Memory:      *v.remembered, ObserveOnly: s.Gate != nil && s.Gate.ObserveOnly}
	v.x = &executor{Options: &s.Options, server: server, seen: v.seen}
	if operations.Stands(server) {
		v.seen.NewID = string(uuid.NewUUID())
	}
	return v
}

// Decide implements loop.Scope. It is pure: settle gets what the decision wants from outside, before anything is applied.
func (v *scope) Decide() *gates.Output {
	began := v.Now()
	for v.gated = gates.Decide(v.gatesInput()); v.gated.Instead != nil; v.gated = gates.Decide(v.gatesInput()) {
		v.governBy(*v.gated.Instead)
	}
	if v.seen.Bundle != nil {
		v.Metrics.decisions.Observe(v.Now().Sub(began).Seconds())
	}
	return &v.gated
}

// Apply implements loop.Scope.
func (v *scope) Apply(ctx context.Context, _ *gates.Output) loop.Outcome {
	d := v.settle()
	if steps, ok := plan.Ahead(*v.seen, d); ok && v.x.carryOut(ctx, steps).Phase == loop.Done {
		d.Marks = append(d.Marks[:len(d.Marks):len(d.Marks)], policies.MarkDirty)
	}
	d, outcome := v.proven(ctx, d)
	if outcome.Settled() {
		outcome = v.applyEffects(ctx, d)
	}
	v.applyBesides(ctx, &outcome)
	v.x.wakeIn(v.Storage.Look(ctx, storage.Subject{Server: v.server, Inventory: v.seen.Inventory,
		Target: v.x.target, TargetErr: v.seen.BMC.Lacks, Want: v.seen.Want()}))
	outcome.Requests = v.x.requests
	v.record(d, outcome)
	outcome.Again = trigger.Earlier(d.WakeAfter, v.x.wake)
	if d.Moves() {
		outcome.Again = time.Millisecond // the state entered has effects of its own
	}
	outcome.MayWait = !v.recorded.Stays || v.seen.Facts.Claim.Binding
	outcome.Reports = []func(context.Context){v.report}
	return outcome
}

// proven keeps a server where it is whose move clears Dirty, until the store proves the wipe.
func (v *scope) proven(ctx context.Context, d engine.Decision) (engine.Decision, loop.Outcome) {
	if v.server.Status.Lifecycle == nil || !proof.Takes(d, v.settings()) {
		return d, loop.Outcome{}
	}
	return proof.Move(ctx, v.Reader, d, v.server.Status.Lifecycle.Entry, v.x.decided().inventoryNow)
}

// applyEffects makes the effects of a decision hold that neither moves nor halts, in order (order 8), up to one that waits
// for a safety rule.
func (v *scope) applyEffects(ctx context.Context, d engine.Decision) loop.Outcome {
	if d.Moves() || d.Halt != nil {
		return loop.Outcome{}
	}
	outcome := loop.InOrder(d.Effects, func(e engine.Effect) string { return e.Name }, func(e engine.Effect) loop.Progress {
		v.readJobs()
		return v.x.carryOut(ctx, plan.Effect(*v.seen, e))
	})
	if outcome.Settled() && d.Awaits != nil {
		v.readJobs()
		outcome.Effect, outcome.Progress = d.Awaits.Effect, v.x.carryOut(ctx, plan.Await(*v.seen, *d.Awaits))
	}
	return outcome
}

// applyBesides does what stands beside the effects. What fails of it is told if no effect has something to tell.
func (v *scope) applyBesides(ctx context.Context, outcome *loop.Outcome) {
	var failed []loop.Progress
	for _, steps := range plan.Besides(*v.seen) {
		failed = append(failed, v.x.carryOut(ctx, steps))
	}
	failed = append(failed, v.x.kept(said.Keep(ctx, v.Client, v.server, v.seen.Inventory, v.x.writeInventory)))
	for _, p := range failed {
		switch {
		case p.Phase != loop.Failed && p.Reason != lostRace: // it is done, or held back, or the next look does it
		case outcome.Settled():
			outcome.Effect, outcome.Progress = v1alpha1.OperationAttestDisk, p
		default:
			v.x.wakeIn(plan.FastestPoll)
		}
	}
}

// record has the server say what was decided and done.
func (v *scope) record(d engine.Decision, outcome loop.Outcome) {
	v.readJobs()
	a := v.x.answers
	a.Decision, a.Gated, a.Outcome, a.Governance, a.Clock = d, v.gated, outcome, v.governs, v.clock
	v.recorded = plan.Record(*v.seen, a)
	*v.server = *v.recorded.Server
	*v.remembered = v.recorded.Memory
	v.x.wakeIn(v.recorded.Wake)
	if v.recorded.Labels == nil {
		return
	}
	if v.pace.resting.AllowN(v.seen.Now, 1) {
		v.server.Labels = v.recorded.Labels
		return
	}
	v.x.wakeIn(nextTurn())
}

// Finalize implements loop.Scope. A server that holds data, or that a claim holds, goes only when an annotation says so;
// what must be remembered of the machine stays in its inventory.
func (v *scope) Finalize(ctx context.Context) loop.Progress {
	p := v.x.carryOut(ctx, plan.Finalize(*v.seen))
	if p.Phase == loop.Done {
		p = v.x.kept(said.Keep(ctx, v.Client, v.server, v.seen.Inventory, v.x.writeInventory))
	}
	if p.Phase != loop.Done {
		if p.Phase == loop.Failed && p.Err == nil { // the API server refuses it for good, and a person has to act
			status.SetCondition(v.server, v.seen.Now, v1alpha1.ConditionReady, metav1.ConditionFalse, p.Reason, p.Message)
		}
		return p
	}
	*v.remembered = plan.Memory{}
	v.Cache.Forget(v.server.Name)
	return loop.Holds()
}
