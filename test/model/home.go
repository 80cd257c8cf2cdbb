// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// helpAgain is how long a server is left alone after it was helped.
const helpAgain = 2 * time.Second

// home brings every server back to where it can be claimed, as the people who run a fleet would, with the ways that
// there are for it. It fails where one of them does not get there.
func (r *run) home(ctx context.Context) error { return r.bringHome(ctx, machines, restLimit) }

// bringHome is home for the first few machines.
func (r *run) bringHome(ctx context.Context, count int, limit time.Duration) error {
	r.log.did("", "every claim is deleted, and every server brought home")
	for number := range claims {
		c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: r.claimName(number)}}
		if err := client.IgnoreNotFound(r.world.admin.Delete(ctx, c)); err != nil {
			return err
		}
	}
	helped := make([]time.Time, machines)
	return r.until(ctx, limit, "every server to be free and clean", func() error {
		if err := errors.Join(r.announce(ctx), r.unplug(ctx)); err != nil {
			return err
		}
		var waiting []string
		for i, m := range r.machines[:count] {
			s, err := r.server(ctx, i)
			if err != nil {
				return err
			}
			if s.Status.State == v1alpha1.StateAvailable && s.Spec.ServerClaimRef == nil && m.Power() == emulator.PowerOff &&
				s.Annotations[v1alpha1.DecommissionAnnotation] == "" {
				continue
			}
			waiting = append(waiting, fmt.Sprintf("machine %d: %s, power %s", i+1, describeServer(s), m.Power()))
			if time.Since(helped[i]) < helpAgain {
				continue
			}
			helped[i] = time.Now()
			if err := r.help(ctx, i, s); err != nil && !apierrors.IsConflict(err) {
				return err
			}
		}
		if len(waiting) > 0 {
			return errors.New(strings.Join(waiting, "\n"))
		}
		return nil
	})
}

// help does what an operator of the fleet does with a server that does not go on by itself.
func (r *run) help(ctx context.Context, machine int, s *v1alpha1.Server) error {
	if s.Annotations[v1alpha1.OperationAnnotation] != "" {
		return nil
	}
	gone := meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionClaimMissing)
	released := s.Annotations[v1alpha1.ReleasedClaimAnnotation] != ""
	state := s.Status.State
	switch {
	case s.Annotations[v1alpha1.DecommissionAnnotation] != "":
		return r.operate(ctx, machine, v1alpha1.OperationRecommission)
	case s.Spec.Unclaimable:
		return r.changeServer(ctx, machine, func(s *v1alpha1.Server) { s.Spec.Unclaimable = false })
	case keptByForce(s):
		return r.force(ctx, machine, v1alpha1.StateError, false) // from where a retry leads on
	case state == v1alpha1.StateParked:
		return r.operate(ctx, machine, v1alpha1.OperationUnpark)
	case state == v1alpha1.StateObserving && s.Annotations[v1alpha1.ConsentAnnotation] == "":
		return consent(ctx, r, step{machine: machine})
	case state == v1alpha1.StateReleased && s.Spec.ServerClaimRef != nil:
		return r.changeServer(ctx, machine, func(s *v1alpha1.Server) { s.Spec.ServerClaimRef = nil })
	case state == v1alpha1.StateReserved && gone && !released:
		return r.operate(ctx, machine, v1alpha1.OperationRelease)
	case state == v1alpha1.StateError:
		return r.helpOut(ctx, machine, s, released)
	}
	return nil
}

// helpOut leads a server out of Error: what its data waits for first.
func (r *run) helpOut(ctx context.Context, machine int, s *v1alpha1.Server, released bool) error {
	op := s.Status.Operation
	switch {
	case !released && (s.Annotations[v1alpha1.ClaimUIDAnnotation] != "" || slices.Contains(s.Status.Lifecycle.Marks, "Dirty")):
		return r.operate(ctx, machine, v1alpha1.OperationRelease)
	case s.Spec.ReclaimPolicy == v1alpha1.ReclaimPolicyRetain:
		return r.changeServer(ctx, machine, func(s *v1alpha1.Server) { s.Spec.ReclaimPolicy = v1alpha1.ReclaimPolicyRecycle })
	case op == nil || op.Name != v1alpha1.OperationRetry || op.FinishedAt != nil:
		return r.operate(ctx, machine, v1alpha1.OperationRetry)
	}
	return nil
}

// leave takes everything of this run away, by force where need be.
func (r *run) leave(ctx context.Context) error {
	if err := r.mend(ctx); err != nil {
		return err
	}
	var objects []client.Object
	for number := range claims {
		objects = append(objects, &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: r.claimName(number)}})
	}
	for i, m := range r.machines {
		if i == byEndpoint {
			objects = append(objects, &v1alpha1.Endpoint{ObjectMeta: metav1.ObjectMeta{Name: m.Name()}})
		}
		objects = append(objects, &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: m.Name()}},
			&v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: serverOf(m.Name())}},
			&v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: m.Name() + "-system-1"}})
		for number := range maintenancesEach {
			objects = append(objects, r.maintenance(i, number))
		}
	}
	objects = append(objects, &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName}})
	begun := time.Now()
	err := r.until(ctx, time.Minute, "everything to be gone", func() error {
		left := 0
		for _, o := range objects {
			gone, err := r.remove(ctx, o, time.Since(begun) > 5*time.Second)
			if err != nil {
				return err
			}
			if !gone {
				left++
			}
		}
		if left > 0 {
			return fmt.Errorf("%d objects are left", left)
		}
		return nil
	})
	for _, m := range r.machines {
		m.PowerBehindBack(false)
		err = errors.Join(err, m.SetReachability(emulator.Refusing))
	}
	return err
}

// remove deletes an object. By force means without whoever holds it back.
func (r *run) remove(ctx context.Context, o client.Object, force bool) (gone bool, err error) {
	err = r.world.admin.Get(ctx, client.ObjectKeyFromObject(o), o)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if s, is := o.(*v1alpha1.Server); is && s.Annotations[v1alpha1.DeleteDataAnnotation] == "" {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.DeleteDataAnnotation, "true")
		return false, ignoreRace(r.world.admin.Update(ctx, s))
	}
	if o.GetDeletionTimestamp() == nil {
		return false, ignoreRace(r.world.admin.Delete(ctx, o))
	}
	if force {
		o.SetFinalizers(nil)
		return false, ignoreRace(r.world.admin.Update(ctx, o))
	}
	return false, nil
}

func ignoreRace(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
