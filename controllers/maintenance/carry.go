// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/maintenance/hold"
	"github.com/metalaw/metalaw/internal/mergepatch"
)

// carry carries a step out and shows its result in the look. It says whether another step may follow at once: not where an object was
// changed meanwhile, which the cache has to show first.
func (r *round) carry(ctx context.Context, l *hold.Look, step hold.Step) (goesOn bool, err error) {
	switch step.Kind {
	case hold.Finalizer, hold.Release:
		err = r.keep(ctx, l, step.Of, step.Kind == hold.Finalizer)
	case hold.Status:
		err = r.say(ctx, l, step)
	case hold.Grant:
		given, err := r.give(ctx, l, step.Of)
		if err == nil && !given {
			return true, nil // what it says instead is due next
		}
		return r.carried(ctx, l, step, err)
	case hold.DropBoot:
		err = r.dropBoot(ctx, l, step.Of)
	case hold.GiveBack:
		err = r.change(ctx, l, hold.Cleared)
	case hold.Label:
		err = r.changeClaim(ctx, l, hold.Labelled)
	case hold.Unlabel:
		err = r.changeClaim(ctx, l, hold.Unlabelled)
	case hold.None:
	}
	return r.carried(ctx, l, step, err)
}

// carried is what became of a step.
func (r *round) carried(ctx context.Context, l *hold.Look, step hold.Step, err error) (goesOn bool, _ error) {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	if err == nil {
		r.told(ctx, l, step)
	}
	return err == nil, err
}

// keep puts our finalizer on a maintenance, or takes it off.
func (r *round) keep(ctx context.Context, l *hold.Look, m *v1alpha1.ServerMaintenance, kept bool) error {
	changed := m.DeepCopy()
	if kept {
		controllerutil.AddFinalizer(changed, v1alpha1.FinalizerServerMaintenance)
	} else {
		controllerutil.RemoveFinalizer(changed, v1alpha1.FinalizerServerMaintenance)
	}
	if err := r.client.Patch(ctx, changed, mergepatch.Locked(m)); err != nil {
		return err
	}
	if !kept && len(changed.Finalizers) == 0 {
		r.written.maintenances.Ended(m.UID)
		l.Maintenances = slices.DeleteFunc(l.Maintenances, func(one hold.Maintenance) bool { return one.UID == m.UID })
		return nil
	}
	r.stored(l, changed)
	return nil
}

// stored shows a maintenance as it was stored.
func (r *round) stored(l *hold.Look, m *v1alpha1.ServerMaintenance) {
	r.written.maintenances.Wrote(m)
	for i := range l.Maintenances {
		if one := &l.Maintenances[i]; one.UID == m.UID {
			one.ServerMaintenance = m
		}
	}
}

// say stores a status.
func (r *round) say(ctx context.Context, l *hold.Look, step hold.Step) error {
	changed := step.Of.DeepCopy()
	changed.Status = step.Status
	if err := r.client.Status().Patch(ctx, changed, mergepatch.Locked(step.Of)); err != nil {
		return err
	}
	r.stored(l, changed)
	r.recordEvents(step.Of, changed)
	if changed.Status.State == v1alpha1.ServerMaintenanceStatePending {
		r.answered[changed.UID] = r.at
	}
	return nil
}

// give hands the server to a maintenance, after its maker's rights and the consent of the claim were looked at again: what the cache
// shows may be old, and an approval may have been withdrawn. It says whether the maintenance has the server now.
func (r *round) give(ctx context.Context, l *hold.Look, m *v1alpha1.ServerMaintenance) (bool, error) {
	consented, err := r.makers.permit(ctx, m, l.Server, l.Claim)
	if err == nil && consented && l.Claim != nil {
		consented, err = r.consented(ctx, l, m)
	}
	if err != nil {
		return false, err
	}
	if !consented {
		answer := r.answers[m.UID]
		if answer.Granted, answer.Answer = false, r.makers.refused(m); answer.Reason == "" {
			return false, conflict(m)
		}
		return false, nil
	}
	if l.Claim != nil && !hold.Tells(l.Claim) { // a holder that cannot be told is not overruled
		if goesOn, err := r.carry(ctx, l, hold.Step{Kind: hold.Label}); err != nil || !goesOn {
			return false, cmp.Or(err, conflict(m))
		}
	}
	if err := r.change(ctx, l, func(s *v1alpha1.Server) { hold.Handed(s, m, l.Claim) }); err != nil {
		return false, err
	}
	r.handed[m.UID], l.Settling = r.at, true
	return true, nil
}

func conflict(m *v1alpha1.ServerMaintenance) error {
	return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("servermaintenances").GroupResource(), m.Name,
		errors.New("the grants are to be decided anew"))
}

// consented reads the claim past the cache, and says whether it still is as the grant found it.
func (r *round) consented(ctx context.Context, l *hold.Look, m *v1alpha1.ServerMaintenance) (bool, error) {
	now := &v1alpha1.ServerClaim{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(l.Claim), now); err != nil {
		return false, err // where it is gone, the cache will show that
	}
	if now.UID != l.Claim.UID || !now.DeletionTimestamp.IsZero() {
		return false, nil
	}
	drains := func(c *v1alpha1.ServerClaim) bool { return c.Annotations[v1alpha1.DrainRequiredAnnotation] == "true" }
	same := hold.Approved(now) == hold.Approved(l.Claim) && drains(now) == drains(l.Claim)
	if !same {
		logf.FromContext(ctx).Info("not granted: what the claim says changed meanwhile", "maintenance", m.Namespace+"/"+m.Name)
	}
	return same, nil
}

// change stores a change of the server, under the optimistic lock: nobody else bound, released or took it meanwhile.
func (r *round) change(ctx context.Context, l *hold.Look, change func(*v1alpha1.Server)) error {
	changed := l.Server.DeepCopy()
	change(changed)
	if err := r.client.Patch(ctx, changed, mergepatch.Locked(l.Server)); err != nil {
		return err
	}
	r.written.servers.Wrote(changed)
	l.Server = changed
	return nil
}

func (r *round) changeClaim(ctx context.Context, l *hold.Look, change func(*v1alpha1.ServerClaim)) error {
	changed := l.Claim.DeepCopy()
	change(changed)
	if err := r.client.Patch(ctx, changed, mergepatch.Locked(l.Claim)); err != nil {
		return err
	}
	r.written.claims.Wrote(changed)
	l.Claim = changed
	return nil
}

// dropBoot deletes the boot configuration of a maintenance.
func (r *round) dropBoot(ctx context.Context, l *hold.Look, m *v1alpha1.ServerMaintenance) error {
	for i := range l.Maintenances {
		one := &l.Maintenances[i]
		if one.UID != m.UID || one.Boot == nil {
			continue
		}
		err := r.client.Delete(ctx, one.Boot, client.Preconditions{UID: &one.Boot.UID})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if r.written.boots == nil {
			r.written.boots = map[types.UID]types.UID{}
		}
		r.written.boots[m.UID] = one.Boot.UID
		one.Boot = nil
	}
	return nil
}

// gone says that the maintenance to which a server was handed is there no more. It is looked at past the cache: what is absent there may
// exist.
func (r *round) gone(ctx context.Context, s *v1alpha1.Server) (bool, error) {
	m := &v1alpha1.ServerMaintenance{}
	ref := s.Spec.ServerMaintenanceRef
	err := r.live.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, m)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return err == nil && string(m.UID) != s.Annotations[v1alpha1.MaintenanceUIDAnnotation], err
}

// told reports a step that was carried out: in the log, and to those who read events.
func (r *round) told(ctx context.Context, l *hold.Look, step hold.Step) {
	log := logf.FromContext(ctx).V(1)
	switch step.Kind {
	case hold.Grant:
		log = logf.FromContext(ctx)
	case hold.GiveBack:
		log = logf.FromContext(ctx)
		if step.Of != nil {
			r.event(step.Of, told{corev1.EventTypeNormal, "Ended", "The server was given back."})
		}
	case hold.Label:
		r.event(l.Claim, told{corev1.EventTypeNormal, "MaintenanceNeeded", "Server " + l.Server.Name + " is wanted for maintenance. " + asks})
	default:
	}
	of := ""
	if step.Of != nil {
		of = step.Of.Namespace + "/" + step.Of.Name
	}
	server := ""
	if l.Server != nil {
		server = l.Server.Name
	}
	log.Info("maintenance", "step", step.Kind, "maintenance", of, "server", server, "at", r.at.UTC().Format(time.RFC3339))
}
