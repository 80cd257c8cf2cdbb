// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// secret is what a tenant leaves on the drives.
const secret = "tenant secret: the recipe of the house"

// release ends claims: one server is wiped and offered again, one keeps its data until somebody says so.
func release(w *world) chapter {
	recycled, retained := &parting{world: w, claim: web}, &parting{world: w, claim: storage}
	return chapter{title: "Release", steps: []step{
		{name: "a tenant's data is on the drives of web's machine", do: recycled.leaveData},
		{name: "web is deleted: its server is powered off and goes to Cleanup", do: recycled.end, await: recycled.passes(v1alpha1.StateCleanup)},
		{name: "the wipe image erases and verifies every drive; the server is Available again", limit: fleetLimit, await: recycled.offered},
		{name: "the data is gone from the machine itself, and nothing remembers the tenant", await: recycled.clean},

		{name: "storage's server is to keep its data (reclaimPolicy Retain)", do: retained.retain},
		{name: "storage is deleted: its server is Released, off, and the data still there", do: retained.end, await: retained.kept},
		{name: "somebody clears the reference: it goes to Cleanup", do: retained.clearReference, await: retained.passes(v1alpha1.StateCleanup)},
		{name: "erased and verified, it is Available again", limit: fleetLimit, await: retained.offered},
		{name: "the data is gone, and nothing remembers the tenant", await: retained.clean},
		{name: "its reclaim policy is put back: what the next tenant leaves is wiped", do: retained.restore},
	}}
}

// parting is the end of one claim.
type parting struct {
	*world
	claim  string
	server string
	// policy is what becomes of the server after a claim, as it was before the story changed it.
	policy v1alpha1.ReclaimPolicy
	// entry is the lifecycle entry before the claim ended.
	entry int64
}

// leaveData writes as the tenant does, past everything that metalaw sees.
func (p *parting) leaveData(ctx context.Context) error {
	server, err := p.serverOf(ctx, p.claim)
	if err != nil {
		return err
	}
	p.server, p.entry = server.Name, server.Status.Lifecycle.Entry
	m, err := p.machines.of(ctx, server)
	if err != nil {
		return err
	}
	if err := p.machines.write(ctx, m, secret); err != nil {
		return err
	}
	m, err = p.machines.of(ctx, server)
	if err != nil {
		return err
	}
	if !m.holds(secret) {
		return fmt.Errorf("the data did not arrive: %s", m)
	}
	p.view.say(m.String())
	return nil
}

func (p *parting) end(ctx context.Context) error { return p.drop(ctx, p.claim) }

func (p *parting) retain(ctx context.Context) error {
	if err := p.leaveData(ctx); err != nil {
		return err
	}
	server, err := p.world.server(ctx, p.server)
	if err != nil {
		return err
	}
	p.policy = server.Spec.ReclaimPolicy
	return p.reclaim(ctx, v1alpha1.ReclaimPolicyRetain)
}

// restore gives the server the reclaim policy that it had; the next tenant's data is not to be kept.
func (p *parting) restore(ctx context.Context) error { return p.reclaim(ctx, p.policy) }

func (p *parting) reclaim(ctx context.Context, policy v1alpha1.ReclaimPolicy) error {
	fields := map[string]any{"reclaimPolicy": policy}
	if policy == "" {
		fields["reclaimPolicy"] = nil
	}
	return p.patchServer(ctx, p.server, map[string]any{"spec": fields})
}

func (p *parting) clearReference(ctx context.Context) error {
	return p.patchServer(ctx, p.server, map[string]any{"spec": map[string]any{"serverClaimRef": nil}})
}

// look reads the server and its machine.
func (p *parting) look(ctx context.Context) (*v1alpha1.Server, machine, error) {
	server, err := p.world.server(ctx, p.server)
	if err != nil {
		return nil, machine{}, err
	}
	m, err := p.machines.of(ctx, server)
	return server, m, err
}

// passes waits until the server was in a state since the claim ended; it may have moved on.
func (p *parting) passes(state v1alpha1.ServerState) func(context.Context) (sight, error) {
	return func(ctx context.Context) (sight, error) {
		server, m, err := p.look(ctx)
		if err != nil {
			return sight{}, err
		}
		passed := slices.ContainsFunc(server.Status.Lifecycle.History, func(move v1alpha1.LifecycleMove) bool {
			return move.To == state && move.Entry > p.entry
		})
		return sight{done: passed, seen: describe(server) + "; machine " + m.String()}, nil
	}
}

// offered waits until the server is Available; meanwhile the drives are being erased.
func (p *parting) offered(ctx context.Context) (sight, error) {
	server, m, err := p.look(ctx)
	if err != nil {
		return sight{}, err
	}
	if server.Status.State == v1alpha1.StateAvailable && !m.erased() {
		return sight{}, fmt.Errorf("the server is offered with data on it: %s", m)
	}
	return sight{
		done: server.Status.State == v1alpha1.StateAvailable && server.Status.PowerState == v1alpha1.PowerStateOff,
		seen: describe(server) + "; machine " + m.String(),
	}, nil
}

// kept waits until the server is Released with its data.
func (p *parting) kept(ctx context.Context) (sight, error) {
	server, m, err := p.look(ctx)
	if err != nil {
		return sight{}, err
	}
	if !m.holds(secret) {
		return sight{}, fmt.Errorf("the data that was to be kept is gone: %s", m)
	}
	done := server.Status.State == v1alpha1.StateReleased && m.Power == "Off"
	if done {
		p.entry = server.Status.Lifecycle.Entry
		p.view.say(m.String())
	}
	return sight{done: done, seen: describe(server) + "; machine " + m.String()}, nil
}

// clean waits until neither the drives nor any record know of the tenant.
func (p *parting) clean(ctx context.Context) (sight, error) {
	server, m, err := p.look(ctx)
	if err != nil {
		return sight{}, err
	}
	inventory := &policyv1alpha1.ServerInventory{}
	if err := p.watch.Get(ctx, client.ObjectKey{Name: server.Spec.SystemUUID}, inventory); err != nil {
		return sight{}, err
	}
	forgotten := inventory.Custody == nil || inventory.Custody.LastHolder == nil && !slices.Contains(inventory.Custody.Marks, v1alpha1.MarkDirty)
	verified := inventory.Wipe != nil && inventory.Wipe.State == policyv1alpha1.WipeVerified
	done := m.erased() && m.Power == "Off" && forgotten && verified && server.Spec.ServerClaimRef == nil &&
		server.Annotations[v1alpha1.ClaimUIDAnnotation] == "" && server.Annotations[v1alpha1.ReleasedClaimAnnotation] == ""
	if done {
		p.view.say(m.String())
		for _, d := range inventory.Wipe.Disks {
			p.view.say(fmt.Sprintf("wipe report, entry %d: %s %s, %s (method %s)", inventory.Wipe.Entry, d.Path, d.Serial, d.State, d.Method))
		}
	}
	return sight{done: done, seen: fmt.Sprintf("machine %s; custody %+v; %s", m, inventory.Custody, describe(server))}, nil
}
