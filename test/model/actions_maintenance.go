// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/test/guest"
)

// maintenancesEach is how many maintenances a machine may have at a time. Another program writes itself on the server besides.
const maintenancesEach = 2

// maintenanceImage is what a maintenance boots: it leaves the disks as they are.
const maintenanceImage = guest.Live + "tools:1"

// maintenanceActions is what those who mend machines do, and what those whose machines they are answer.
func maintenanceActions() map[string]action {
	all := map[string]action{
		"ask maintenance": {weight: 6, do: askMaintenance, words: func(s step) string {
			return fmt.Sprintf("machine %s: maintenance %d is asked for, %s, power %s, boots something: %t", s.machineName(), which(s),
				maintenancePolicy(s), firstPower(s), boots(s))
		}},
		"power maintenance": {weight: 3, words: func(s step) string {
			return fmt.Sprintf("machine %s: maintenance %d asks for power %s", s.machineName(), which(s), firstPower(s))
		}, do: func(ctx context.Context, r *run, s step) error {
			return r.changeMaintenance(ctx, s, func(m *v1alpha1.ServerMaintenance) { m.Spec.ServerPower = firstPower(s) })
		}},
		"abort maintenance": {weight: 2, words: onMachine("a maintenance is aborted"), do: func(ctx context.Context, r *run, s step) error {
			return r.changeMaintenance(ctx, s, func(m *v1alpha1.ServerMaintenance) {
				metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AbortAnnotation, "a step")
			})
		}},
		"approve maintenance": {weight: 5, words: onClaim("its holder approves of a maintenance"),
			do: func(ctx context.Context, r *run, s step) error {
				return r.changeClaim(ctx, s.claim, func(c *v1alpha1.ServerClaim) {
					metav1.SetMetaDataLabel(&c.ObjectMeta, v1alpha1.MaintenanceApprovedLabel, "true")
				})
			}},
		"withdraw approval": {weight: 2, words: onClaim("its holder withdraws that"), do: func(ctx context.Context, r *run, s step) error {
			return r.changeClaim(ctx, s.claim, func(c *v1alpha1.ServerClaim) { delete(c.Labels, v1alpha1.MaintenanceApprovedLabel) })
		}},
		"grant maintenance": {weight: 2, words: onMachine("another program hands it to a maintenance of its own"), do: handToAnother},
		"end maintenance": {weight: 8, words: onMachine("its maintenances are over"), do: func(ctx context.Context, r *run, s step) error {
			return r.endMaintenance(ctx, s.machine)
		}},
	}
	for operation, weight := range map[string]int{v1alpha1.OperationDecommission: 2, v1alpha1.OperationRecommission: 3} {
		all[operation] = action{weight: weight, words: onMachine("operation " + operation), do: func(ctx context.Context, r *run, s step) error {
			return r.operate(ctx, s.machine, operation)
		}}
	}
	return all
}

func which(s step) int { return pick(s, 9, 0, 1) }

func boots(s step) bool { return pick(s, 5, true, false, false) }

func maintenancePolicy(s step) v1alpha1.ServerMaintenancePolicy {
	return pick(s, 3, v1alpha1.ServerMaintenancePolicyEnforced, v1alpha1.ServerMaintenancePolicyOwnerApproval)
}

func askMaintenance(ctx context.Context, r *run, s step) error {
	m := r.maintenance(s.machine, which(s))
	m.Spec.Policy, m.Spec.ServerPower = maintenancePolicy(s), firstPower(s)
	m.Spec.ServerRef.Name = serverOf(r.machines[s.machine].Name())
	if boots(s) {
		m.Spec.ServerBootConfigurationTemplate = &v1alpha1.ServerBootConfigurationTemplate{Name: "tools"}
		m.Spec.ServerBootConfigurationTemplate.Spec.ServerRef, m.Spec.ServerBootConfigurationTemplate.Spec.Image = m.Spec.ServerRef, maintenanceImage
	}
	return r.world.admin.Create(ctx, m)
}

// handToAnother writes a reference to a maintenance that this manager cannot find.
func handToAnother(ctx context.Context, r *run, s step) error {
	return r.changeServer(ctx, s.machine, func(o *v1alpha1.Server) {
		if o.Spec.ServerMaintenanceRef == nil {
			o.Spec.ServerMaintenanceRef = &v1alpha1.ObjectReference{Namespace: tenants, Name: r.machines[s.machine].Name() + "-theirs"}
		}
	})
}

func (r *run) maintenance(machine, number int) *v1alpha1.ServerMaintenance {
	return &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: tenants,
		Name: fmt.Sprintf("%s-%d", r.machines[machine].Name(), number)}}
}

func (r *run) changeMaintenance(ctx context.Context, s step, change func(*v1alpha1.ServerMaintenance)) error {
	return again(func() error {
		m := r.maintenance(s.machine, which(s))
		if err := r.world.admin.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
			return err
		}
		change(m)
		return r.world.admin.Update(ctx, m)
	})
}

// endMaintenance deletes the maintenances of a machine, and takes the reference of another program off the server. What this manager
// wrote there it takes away itself.
func (r *run) endMaintenance(ctx context.Context, machine int) error {
	for number := range maintenancesEach {
		if err := client.IgnoreNotFound(r.world.admin.Delete(ctx, r.maintenance(machine, number))); err != nil {
			return err
		}
	}
	theirs := func(s *v1alpha1.Server) bool {
		return s.Spec.ServerMaintenanceRef != nil && s.Annotations[v1alpha1.MaintenanceUIDAnnotation] == ""
	}
	s, err := r.server(ctx, machine)
	switch {
	case err != nil:
		return err
	case !theirs(s):
		return errNothing
	}
	return r.changeServer(ctx, machine, func(o *v1alpha1.Server) {
		if theirs(o) {
			o.Spec.ServerMaintenanceRef = nil
		}
	})
}

// maintained says what is left of maintenances that should all be over.
func (r *run) maintained(ctx context.Context, machine int, s *v1alpha1.Server) error {
	if s.Spec.ServerMaintenanceRef != nil || s.Spec.MaintenanceBootConfigurationRef != nil || s.Annotations[v1alpha1.MaintenanceUIDAnnotation] != "" {
		return errors.New("a maintenance still has it: " + describeServer(s))
	}
	for number := range maintenancesEach {
		m := r.maintenance(machine, number)
		for _, o := range []client.Object{m, &v1alpha1.ServerBootConfiguration{ObjectMeta: m.ObjectMeta}} {
			err := r.world.admin.Get(ctx, client.ObjectKeyFromObject(m), o)
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			if err == nil {
				return fmt.Errorf("%T %s is left of a maintenance that was ended", o, o.GetName())
			}
		}
	}
	return nil
}
