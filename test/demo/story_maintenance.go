// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// dimm is the maintenance of the demo.
const dimm = "replace-dimm"

// maintenance hands web's server to a technician with the consent of its holder, and takes another one out of service.
func maintenance(w *world) chapter {
	t := &technician{world: w}
	old := &operator{world: w}
	return chapter{title: "Maintain", steps: []step{
		{name: "a technician asks for web's server: its holder is asked, and web runs on", do: t.ask, await: t.waits},
		{name: "the holder approves: the server is in Maintenance, off as asked, and web keeps it", do: t.approve, await: t.has},
		{name: "the work is done and the maintenance is deleted: web runs again", do: t.end, await: t.back},
		{
			name: "a server is decommissioned: erased, off, never claimable",
			do: func(ctx context.Context) error {
				if err := old.choose(ctx, "r2"); err != nil {
					return err
				}
				return old.asksWhy(ctx, v1alpha1.OperationDecommission, "end of its warranty")
			},
			await: old.is(v1alpha1.StateDecommissioned),
		},
		{
			name: "it is recommissioned, inspected anew and uncordoned: Available again", limit: fleetLimit,
			do: func(ctx context.Context) error {
				return old.asksWhy(ctx, v1alpha1.OperationRecommission, "the warranty was extended")
			},
			await: old.is(v1alpha1.StateAvailable),
		},
		{name: "and claimable", do: func(ctx context.Context) error {
			return old.patchServer(ctx, old.server, map[string]any{"spec": map[string]any{"unclaimable": false}})
		}},
	}}
}

// asksWhy asks for an operation that needs a reason.
func (o *operator) asksWhy(ctx context.Context, operation, reason string) error {
	return o.patchServer(ctx, o.server, map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		v1alpha1.OperationAnnotation: operation, v1alpha1.OperationReasonAnnotation: reason}}})
}

// technician works on the machine of the claim web.
type technician struct {
	*world
	server string
	before machine
}

func (t *technician) object() *v1alpha1.ServerMaintenance {
	return &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: dimm}}
}

func (t *technician) ask(ctx context.Context) error {
	server, err := t.serverOf(ctx, web)
	if err != nil {
		return err
	}
	t.server = server.Name
	if t.before, err = t.machines.of(ctx, server); err != nil {
		return err
	}
	m := t.object()
	m.Annotations = map[string]string{v1alpha1.MaintenanceReasonAnnotation: "DIMM A1 reports errors"}
	m.Spec = v1alpha1.ServerMaintenanceSpec{Policy: v1alpha1.ServerMaintenancePolicyOwnerApproval, ServerPower: v1alpha1.PowerOff,
		LocatorLED: v1alpha1.IndicatorLEDBlinking}
	m.Spec.ServerRef.Name = t.server
	return t.client.Create(ctx, m)
}

// look reads the three objects that a maintenance is about, and the machine.
func (t *technician) look(ctx context.Context) (claim *v1alpha1.ServerClaim, server *v1alpha1.Server, now machine, err error) {
	if claim, err = t.claim(ctx, web); err != nil {
		return nil, nil, machine{}, err
	}
	if server, err = t.world.server(ctx, t.server); err != nil {
		return nil, nil, machine{}, err
	}
	now, err = t.machines.of(ctx, server)
	return claim, server, now, err
}

// waits says that the holder was asked and that nothing was done to the machine.
func (t *technician) waits(ctx context.Context) (sight, error) {
	claim, server, now, err := t.look(ctx)
	if err != nil {
		return sight{}, err
	}
	m := t.object()
	if err := t.client.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
		return sight{}, err
	}
	asked := claim.Labels[v1alpha1.MaintenanceNeededLabel] == "true" && m.Status.State == v1alpha1.ServerMaintenanceStatePending
	return sight{
		done: asked && server.Status.State == v1alpha1.StateReserved && now.Power == "On" && now.Boots == t.before.Boots,
		seen: describe(server) + "; " + condition(m.Status.Conditions, v1alpha1.ConditionGranted),
	}, nil
}

// approve does as the cloud controller does for the label of a Node, or as a tenant does by hand.
func (t *technician) approve(ctx context.Context) error {
	claim := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: web}}
	return t.patch(ctx, claim, map[string]any{"metadata": map[string]any{"labels": map[string]string{v1alpha1.MaintenanceApprovedLabel: "true"}}})
}

func (t *technician) has(ctx context.Context) (sight, error) {
	claim, server, now, err := t.look(ctx)
	if err != nil {
		return sight{}, err
	}
	return sight{
		done: server.Status.State == v1alpha1.StateMaintenance && now.Power == "Off" && now.LED == "Blinking" &&
			claim.Status.Phase == v1alpha1.PhaseBound,
		seen: fmt.Sprintf("%s; %s; LED %s", describe(server), now, now.LED),
	}, nil
}

func (t *technician) end(ctx context.Context) error { return t.client.Delete(ctx, t.object()) }

// back says that nothing of the maintenance is left and that the tenant's machine runs.
func (t *technician) back(ctx context.Context) (sight, error) {
	claim, server, now, err := t.look(ctx)
	if err != nil {
		return sight{}, err
	}
	err = t.client.Get(ctx, client.ObjectKeyFromObject(t.object()), t.object())
	if err != nil && !apierrors.IsNotFound(err) {
		return sight{}, err
	}
	gone := apierrors.IsNotFound(err) && claim.Labels[v1alpha1.MaintenanceNeededLabel] == "" && claim.Labels[v1alpha1.MaintenanceApprovedLabel] == ""
	return sight{
		done: gone && server.Spec.ServerMaintenanceRef == nil && server.Status.State == v1alpha1.StateReserved && now.Power == "On",
		seen: fmt.Sprintf("%s; %s; LED %s", describe(server), now, now.LED),
	}, nil
}
