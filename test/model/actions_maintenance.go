// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// The labels by which the holder of a machine hears that it is needed, and agrees.
const (
	neededLabel   = "metal.ironcore.dev/maintenance-needed"
	approvedLabel = "metal.ironcore.dev/maintenance-approved"
)

// maintenanceActions is what those who mend machines do. They grant a maintenance by writing it on the server themselves; the
// object and its approval alone move nothing.
func maintenanceActions() map[string]action {
	return map[string]action{
		"ask maintenance": {weight: 2, do: askMaintenance, words: func(s step) string {
			return fmt.Sprintf("machine %s: a maintenance is asked for, %s, power %s", s.machineName(), maintenancePolicy(s), firstPower(s))
		}},
		"approve maintenance": {weight: 2, words: onClaim("its holder approves of a maintenance"),
			do: func(ctx context.Context, r *run, s step) error {
				return r.changeClaim(ctx, s.claim, func(c *v1alpha1.ServerClaim) {
					metav1.SetMetaDataLabel(&c.ObjectMeta, neededLabel, "true")
					metav1.SetMetaDataLabel(&c.ObjectMeta, approvedLabel, "true")
				})
			}},
		"grant maintenance": {weight: 2, words: onMachine("it is handed to a maintenance"), do: func(ctx context.Context, r *run, s step) error {
			return r.changeServer(ctx, s.machine, func(o *v1alpha1.Server) {
				o.Spec.ServerMaintenanceRef = &v1alpha1.ObjectReference{Namespace: tenants, Name: r.machines[s.machine].Name()}
			})
		}},
		"end maintenance": {weight: 8, words: onMachine("its maintenance is over"), do: func(ctx context.Context, r *run, s step) error {
			return r.endMaintenance(ctx, s.machine)
		}},
	}
}

func maintenancePolicy(s step) v1alpha1.ServerMaintenancePolicy {
	return pick(s, 0, v1alpha1.ServerMaintenancePolicyEnforced, v1alpha1.ServerMaintenancePolicyOwnerApproval)
}

func askMaintenance(ctx context.Context, r *run, s step) error {
	m := r.maintenance(s.machine)
	m.Spec.Policy, m.Spec.ServerPower = maintenancePolicy(s), firstPower(s)
	m.Spec.ServerRef.Name = serverOf(r.machines[s.machine].Name())
	return r.world.admin.Create(ctx, m)
}

func (r *run) maintenance(machine int) *v1alpha1.ServerMaintenance {
	return &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: r.machines[machine].Name()}}
}

// endMaintenance takes the reference off the server, and the object away.
func (r *run) endMaintenance(ctx context.Context, machine int) error {
	if err := client.IgnoreNotFound(r.world.admin.Delete(ctx, r.maintenance(machine))); err != nil {
		return err
	}
	s, err := r.server(ctx, machine)
	if err == nil && s.Spec.ServerMaintenanceRef == nil {
		return errNothing
	}
	if apierrors.IsNotFound(err) {
		return err
	}
	return r.changeServer(ctx, machine, func(o *v1alpha1.Server) { o.Spec.ServerMaintenanceRef = nil })
}
