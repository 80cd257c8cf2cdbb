// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

const (
	archive   = "archive"
	tolerant  = "tolerant"
	cordoned  = "cordoned"
	poolValue = "archive"
)

var archiveTaint = v1alpha1.Taint{Key: "dedicated", Value: "archive", Effect: v1alpha1.TaintEffectNoBind}

// operations is what somebody does to a fleet that runs.
func operations(w *world) chapter {
	o := &operator{world: w}
	return chapter{title: "Operate", steps: append(o.taints(), o.machines()...)}
}

// operator remembers which server it works on.
type operator struct {
	*world
	server string
	before machine
	writes int
}

// poolClaim asks for the one server that bears the pool's label.
func poolClaim(tolerations ...v1alpha1.Toleration) v1alpha1.ServerClaimSpec {
	return v1alpha1.ServerClaimSpec{
		Power: v1alpha1.PowerOff, Image: newImage, Tolerations: tolerations,
		ServerSelector: &metav1.LabelSelector{MatchLabels: map[string]string{poolLabel: poolValue}},
	}
}

func (o *operator) taints() []step {
	return []step{
		{
			name: "a taint keeps a claim away that does not tolerate it",
			do: func(ctx context.Context) error {
				if err := o.choose(ctx, "r2"); err != nil {
					return err
				}
				err := o.patchServer(ctx, o.server, map[string]any{
					"metadata": map[string]any{"labels": map[string]string{poolLabel: poolValue}},
					"spec":     map[string]any{"taints": []v1alpha1.Taint{archiveTaint}},
				})
				if err != nil {
					return err
				}
				return o.create(ctx, archive, poolClaim())
			},
			await: o.waits(archive, v1alpha1.ReasonNoneClaimable),
		},
		{
			name: "one that tolerates it gets the server",
			do: func(ctx context.Context) error {
				return o.create(ctx, tolerant, poolClaim(v1alpha1.Toleration{
					Key: archiveTaint.Key, Operator: v1alpha1.TolerationOpEqual, Value: archiveTaint.Value, Effect: archiveTaint.Effect,
				}))
			},
			await: o.bound(tolerant),
		},
		{name: "both claims are given up", do: o.dropBoth, await: o.rests},
		{
			name: "a cordoned server (unclaimable) takes no claim",
			do: func(ctx context.Context) error {
				if err := o.patchServer(ctx, o.server, map[string]any{"spec": map[string]any{"taints": nil, "unclaimable": true}}); err != nil {
					return err
				}
				return o.create(ctx, cordoned, poolClaim())
			},
			await: o.waits(cordoned, v1alpha1.ReasonNoneClaimable),
		},
		{
			name: "uncordoned, it is bound at once",
			do: func(ctx context.Context) error {
				return o.patchServer(ctx, o.server, map[string]any{"spec": map[string]any{"unclaimable": false}})
			},
			await: o.bound(cordoned),
		},
		{name: "the claim is given up", do: func(ctx context.Context) error { return o.drop(ctx, cordoned) }, await: o.rests},
	}
}

func (o *operator) machines() []step {
	return []step{
		{name: "park: the server is set aside", do: o.asks(v1alpha1.OperationPark), await: o.is(v1alpha1.StateParked)},
		{name: "unpark: it comes back", do: o.asks(v1alpha1.OperationUnpark), await: o.is(v1alpha1.StateAvailable)},
		{
			name: "its locator light blinks",
			do: func(ctx context.Context) error {
				return o.patchServer(ctx, o.server, map[string]any{"spec": map[string]any{"indicatorLED": v1alpha1.IndicatorLEDBlinking}})
			},
			await: o.lit("Blinking"),
		},
		{
			name: "and goes out",
			do: func(ctx context.Context) error {
				return o.patchServer(ctx, o.server, map[string]any{"spec": map[string]any{"indicatorLED": v1alpha1.IndicatorLEDOff}})
			},
			await: o.lit("Off"),
		},
		{name: "a boot order reaches the machine", do: o.orderBoots, await: o.bootsOrdered},
		{
			name:  "hard-restart-server on a server: its machine restarts, once",
			do:    o.restart(o.operateServer, v1alpha1.OperationHardRestartServer),
			await: o.restarted(v1alpha1.OperationHardRestartServer),
		},
		{
			name:  "power-cycle-server on the claim web: its tenant can do the same",
			do:    o.restart(o.operateClaim, v1alpha1.OperationPowerCycleServer),
			await: o.restarted(v1alpha1.OperationPowerCycleServer),
		},
	}
}

// choose picks a free server to work on.
func (o *operator) choose(ctx context.Context, rack string) error {
	server, err := o.free(ctx, rack)
	if err != nil {
		return err
	}
	o.server = server.Name
	return nil
}

func (o *operator) dropBoth(ctx context.Context) error {
	if err := o.drop(ctx, tolerant); err != nil {
		return err
	}
	return o.drop(ctx, archive)
}

// rests waits until the server is free again.
func (o *operator) rests(ctx context.Context) (sight, error) {
	server, err := o.world.server(ctx, o.server)
	if err != nil {
		return sight{}, err
	}
	return sight{done: server.Status.State == v1alpha1.StateAvailable && server.Spec.ServerClaimRef == nil, seen: describe(server)}, nil
}

func (o *operator) asks(operation string) func(context.Context) error {
	return func(ctx context.Context) error { return o.operate(ctx, o.server, operation) }
}

// is waits for a state, and for the end of the operation that led there.
func (o *operator) is(state v1alpha1.ServerState) func(context.Context) (sight, error) {
	return func(ctx context.Context) (sight, error) {
		server, err := o.world.server(ctx, o.server)
		if err != nil {
			return sight{}, err
		}
		done := stands(server.Status.Conditions, v1alpha1.ConditionOperationDone, metav1.ConditionTrue, string(v1alpha1.OperationSucceeded))
		return sight{
			done: done && server.Status.State == state,
			seen: describe(server) + "; " + condition(server.Status.Conditions, v1alpha1.ConditionOperationDone),
		}, nil
	}
}

// lit waits until the light on the machine is as asked.
func (o *operator) lit(light string) func(context.Context) (sight, error) {
	return func(ctx context.Context) (sight, error) {
		server, err := o.world.server(ctx, o.server)
		if err != nil {
			return sight{}, err
		}
		m, err := o.world.machines.of(ctx, server)
		return sight{done: m.LED == light, seen: m.Name + ": LED " + m.LED}, err
	}
}

func (o *operator) orderBoots(ctx context.Context) error {
	server, err := o.world.server(ctx, o.server)
	if err != nil {
		return err
	}
	if o.before, err = o.world.machines.of(ctx, server); err != nil {
		return err
	}
	if o.writes, err = o.bootOrderWrites(ctx); err != nil {
		return err
	}
	return o.patchServer(ctx, o.server, map[string]any{"spec": map[string]any{"bootOrder": []v1alpha1.BootOrder{
		{Name: "network", Priority: 1, Device: "Boot0002"}, {Name: "disk", Priority: 2, Device: "Boot0001"},
	}}})
}

func (o *operator) bootOrderWrites(ctx context.Context) (int, error) {
	return o.world.machines.bootOrderWrites(ctx, o.before)
}

func (o *operator) bootsOrdered(ctx context.Context) (sight, error) {
	n, err := o.bootOrderWrites(ctx)
	return sight{done: n == o.writes+1, seen: fmt.Sprintf("%d changes of the boot order at %s", n-o.writes, o.before.Name)}, err
}

// restart asks for a restart of web's machine, in one of two ways.
func (o *operator) restart(ask func(context.Context, *v1alpha1.Server, string) error, operation string) func(context.Context) error {
	return func(ctx context.Context) error {
		server, err := o.serverOf(ctx, web)
		if err != nil {
			return err
		}
		if o.before, err = o.world.machines.of(ctx, server); err != nil {
			return err
		}
		return ask(ctx, server, operation)
	}
}

func (o *operator) operateServer(ctx context.Context, server *v1alpha1.Server, operation string) error {
	return o.operate(ctx, server.Name, operation)
}

func (o *operator) operateClaim(ctx context.Context, _ *v1alpha1.Server, operation string) error {
	claim := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: web}}
	return o.patch(ctx, claim, annotated(operation))
}

// restarted waits until the operation has ended well and the machine has booted once more, and not twice.
func (o *operator) restarted(operation string) func(context.Context) (sight, error) {
	return func(ctx context.Context) (sight, error) {
		server, err := o.serverOf(ctx, web)
		if err != nil {
			return sight{}, err
		}
		m, err := o.world.machines.of(ctx, server)
		if err != nil {
			return sight{}, err
		}
		if m.Boots > o.before.Boots+1 {
			return sight{}, fmt.Errorf("the machine was restarted more than once: %s", m)
		}
		op := server.Status.Operation
		done := op != nil && op.Name == operation && op.State == v1alpha1.OperationSucceeded
		return sight{
			done: done && m.Boots == o.before.Boots+1 && server.Status.PowerState == v1alpha1.PowerStateOn,
			seen: fmt.Sprintf("%s; %s; %s", m, condition(server.Status.Conditions, v1alpha1.ConditionOperationDone), describe(server)),
		}, nil
	}
}
