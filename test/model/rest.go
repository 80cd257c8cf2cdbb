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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/test/guest"
)

// restLimit is the time in which everything comes to rest once nothing is wrong any more: a BMC that was away is asked
// again after a minute at the latest, and so is one that refused a request; an operating system that did not hear of its
// shutdown has five minutes before its power is cut.
const restLimit = 7 * time.Minute

// mend ends everything that is wrong, and everything that holds the operator back.
func (r *run) mend(ctx context.Context) error {
	r.log.did("", "everything is mended")
	r.world.ambush.Store(atPeace)
	for i := range r.machines {
		if err := r.mendMachine(ctx, i); err != nil {
			return err
		}
	}
	if err := r.world.operator.AwaitReady(ctx); err != nil {
		return err
	}
	if err := r.loosen(ctx); err != nil {
		return err
	}
	for i := range r.machines {
		if err := r.oust(ctx, i); err != nil {
			return err
		}
		if err := r.letGo(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// clear mends everything and brings home what gets there in a while; but nobody consents to what was found running.
func (r *run) clear(ctx context.Context) error {
	if err := r.mend(ctx); err != nil {
		return err
	}
	return r.bringHome(ctx, stranger, 8*time.Second)
}

func (r *run) mendMachine(ctx context.Context, machine int) error {
	m := r.machines[machine]
	r.heal(machine)
	if err := r.restore(ctx, machine); err != nil {
		return err
	}
	r.world.guests.unmute(m.Name())
	m.Drives()[0].FailErase("")
	return m.SetReachability(emulator.Reachable)
}

// loosen lifts every freeze and budget, and acknowledges what the breaker did, which trips no more.
func (r *run) loosen(ctx context.Context) error {
	return r.control(ctx, func(c *policyv1alpha1.FleetControlSpec) {
		c.Freezes, c.Budgets = nil, nil
		if c.Breaker != nil {
			c.Breaker.MaxPercent, c.Breaker.AcknowledgedAt = 100, ptr.To(metav1.NowMicro()) // there are never more
		}
	})
}

// letGo ends whatever keeps a server from its claims by hand.
func (r *run) letGo(ctx context.Context, machine int) error {
	if err := r.endMaintenance(ctx, machine); client.IgnoreNotFound(err) != nil && !errors.Is(err, errNothing) {
		return err
	}
	return client.IgnoreNotFound(r.changeServer(ctx, machine, func(s *v1alpha1.Server) {
		s.Spec.Unclaimable, s.Spec.Taints = false, nil
		r.lift(s)
	}))
}

// oust deletes the Servers that were made for another machine, which was accepted, or answered while the machine's own Server
// was deleted; and an acceptance that comes too late.
func (r *run) oust(ctx context.Context, machine int) error {
	name := r.machines[machine].Name()
	err := r.changeBMC(ctx, machine, func(b *v1alpha1.BMC) { delete(b.Annotations, v1alpha1.AcceptSystemAnnotation) })
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	for index := range 2 {
		s := &v1alpha1.Server{}
		err := r.world.admin.Get(ctx, key("", fmt.Sprintf("%s-system-%d", name, index)), s)
		if apierrors.IsNotFound(err) || (err == nil && strings.EqualFold(s.Spec.SystemUUID, r.own[machine].UUID)) {
			continue
		}
		if err != nil {
			return err
		}
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.DeleteDataAnnotation, "true")
		if err := r.world.admin.Update(ctx, s); err != nil {
			return ignoreRace(err)
		}
		if err := r.world.admin.Delete(ctx, s); err != nil {
			return ignoreRace(err)
		}
	}
	return nil
}

// rests waits until nothing moves any more, and checks that whatever is not as its users asked says why.
func (r *run) rests(ctx context.Context) error {
	quiet := 0
	return r.until(ctx, restLimit, "rest", func() error {
		err := errors.Join(r.announce(ctx), r.prepareBoots(ctx), r.unplug(ctx), r.mind(ctx), r.atRest(ctx))
		if err != nil {
			quiet = 0
			return err
		}
		quiet++
		if quiet < 10 {
			return errors.New("it has only just come to rest")
		}
		return nil
	})
}

// mind ousts whoever was let in after everything was mended.
func (r *run) mind(ctx context.Context) error {
	for i := range r.machines {
		if err := r.oust(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// prepareBoots is the boot operator, which mends what it had called an error.
func (r *run) prepareBoots(ctx context.Context) error {
	for number := range claims {
		b := &v1alpha1.ServerBootConfiguration{}
		err := r.world.admin.Get(ctx, key(tenants, r.claimName(number)), b)
		if err == nil && b.Status.State == v1alpha1.ServerBootConfigurationStateError {
			b.Status.State = v1alpha1.ServerBootConfigurationStateReady
			err = r.world.admin.Status().Update(ctx, b)
		}
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// unplug switches off, by hand, machines that booted their own disk where an agent was to be booted, because the boot
// override was lost. The operator waits for them until a deadline that is hours away, and begins anew once they are off.
func (r *run) unplug(ctx context.Context) error {
	for i, m := range r.machines {
		s, err := r.server(ctx, i)
		if err != nil {
			return client.IgnoreNotFound(err)
		}
		last := r.log.lastBoot(m.Name())
		agent := last.Kind == guest.KindProbe || last.Kind == guest.KindWipe
		_, running := m.Running()
		if in(v1alpha1.StateDiscovery, v1alpha1.StateCleanup)(s) && running && !agent && time.Since(last.At) > grace {
			r.log.did(m.Name(), "switched off by hand, because it booted its own disk")
			m.PowerBehindBack(false)
		}
	}
	return nil
}

func (r *run) atRest(ctx context.Context) error {
	var problems []error
	free := map[string]bool{}
	for i, m := range r.machines {
		s, err := r.server(ctx, i)
		if err == nil {
			err = errors.Join(r.serverRests(ctx, s, m), r.maintained(ctx, i, s))
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("machine %d: %w", i+1, err))
		} else if s.Status.State == v1alpha1.StateAvailable {
			free[s.Name] = true
		}
	}
	for number := range claims {
		c, err := r.claim(ctx, number)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err == nil {
			err = claimRests(c, free)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("claim %c: %w", 'a'+number, err))
		}
	}
	return errors.Join(problems...)
}

// serverRests says what is still to come, or is stuck without saying why.
func (r *run) serverRests(ctx context.Context, s *v1alpha1.Server, m *emulator.Machine) error {
	moves := func(why string) error { return fmt.Errorf("%s: %s, power %s", why, describeServer(s), m.Power()) }
	if s.Annotations[v1alpha1.OperationAnnotation] != "" {
		return moves("an operation is asked for")
	}
	if meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionPolicyHalted) {
		return moves("it is halted though nothing is wrong")
	}
	off := m.Power() == emulator.PowerOff
	rests := false
	switch s.Status.State { //nolint:exhaustive // in every other state a server goes on
	case v1alpha1.StateParked, v1alpha1.StateDecommissioned:
		rests = true
	case v1alpha1.StateObserving:
		rests = s.Annotations[v1alpha1.ConsentAnnotation] == ""
	case v1alpha1.StateAvailable:
		rests = off && s.Spec.ServerClaimRef == nil
	case v1alpha1.StateReleased:
		rests = keptByForce(s) || (off && s.Spec.ServerClaimRef != nil && s.Spec.ReclaimPolicy == v1alpha1.ReclaimPolicyRetain)
	case v1alpha1.StateError:
		rests = stalled(s)
	case v1alpha1.StateReserved:
		return r.holderRests(ctx, s, m, s.Annotations[v1alpha1.ReleasedClaimAnnotation] != "", moves)
	}
	if !rests {
		return moves("it should go on")
	}
	return nil
}

// stalled says that a server tells why it does not go on.
func stalled(s *v1alpha1.Server) bool {
	c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionStalled)
	return c != nil && c.Status == metav1.ConditionTrue && c.Message != ""
}

// keptByForce says that a server was forced into Released with data of which no release is on record: it is kept there until
// somebody releases it. One that nobody is known to have held has nothing to keep, and must not come to that.
func keptByForce(s *v1alpha1.Server) bool {
	l := s.Status.Lifecycle
	return s.Status.State == v1alpha1.StateReleased && l.Rule == v1alpha1.RuleForced && s.Spec.ServerClaimRef == nil &&
		s.Annotations[v1alpha1.ReleasedClaimAnnotation] == "" &&
		(s.Annotations[v1alpha1.ClaimUIDAnnotation] != "" || slices.Contains(l.Marks, "Dirty"))
}

// holderRests looks at a server in a claim's hands.
func (r *run) holderRests(ctx context.Context, s *v1alpha1.Server, m *emulator.Machine, released bool, moves func(string) error) error {
	if released || s.Spec.ServerClaimRef == nil {
		return moves("it should go on")
	}
	c := &v1alpha1.ServerClaim{}
	err := r.world.admin.Get(ctx, key(s.Spec.ServerClaimRef.Namespace, s.Spec.ServerClaimRef.Name), c)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err != nil || string(c.UID) != s.Annotations[v1alpha1.ClaimUIDAnnotation] {
		if meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionClaimMissing) {
			return nil
		}
		return moves("its claim is gone, and nothing says so")
	}
	sel, running := m.Running()
	switch {
	case c.Spec.Power == v1alpha1.PowerOff && m.Power() != emulator.PowerOff:
		return moves("its claim wants it off")
	case c.Spec.Power == v1alpha1.PowerOn && !running:
		return moves("its claim wants it on")
	}
	if r.log.suffered(m.Name()) { // what a BMC that lies was told in vain may stay for as long as a boot may take
		return nil
	}
	if enabled, target := m.Override(); running && enabled != "Disabled" {
		return moves(fmt.Sprintf("an override (%s %s) would hijack its next reboot, after %v", enabled, target, sel))
	}
	return nil
}

// claimRests says what a claim waits for, or that it does not say it.
func claimRests(c *v1alpha1.ServerClaim, free map[string]bool) error {
	if !c.DeletionTimestamp.IsZero() {
		return errors.New("it is being deleted")
	}
	if c.Annotations[v1alpha1.OperationAnnotation] != "" {
		return errors.New("an operation is asked for")
	}
	bound := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionBound)
	ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case bound == nil || ready == nil || bound.Reason == "" || ready.Reason == "":
		return fmt.Errorf("it does not say how it is: %v", c.Status.Conditions)
	case c.Spec.ServerRef == nil && len(free) > 0:
		return fmt.Errorf("it could have one of %v, and says %s: %s", free, bound.Reason, bound.Message)
	case c.Spec.ServerRef != nil && bound.Status != metav1.ConditionTrue && free[c.Spec.ServerRef.Name]:
		return fmt.Errorf("it could have the server that it names, and says %s: %s", bound.Reason, bound.Message)
	}
	return nil
}
