// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// claimOperations are what the owner of a claim may ask of its machine.
var claimOperations = []string{v1alpha1.OperationHardRestartServer, v1alpha1.OperationPowerCycleServer, v1alpha1.OperationGracefulRestartServer,
	v1alpha1.OperationForceOffServer, v1alpha1.OperationForceOnServer}

// claimActions is what tenants do.
func claimActions() map[string]action {
	return map[string]action{
		"claim": {weight: 24, do: createClaim, words: func(s step) string {
			how := "any machine"
			if pick(s, 0, false, false, true) {
				how = "machine " + s.machineName() + " by name"
			}
			return fmt.Sprintf("claim %s: created, asks for %s, power %s", s.claimName(), how, firstPower(s))
		}},
		"unclaim": {weight: 12, do: deleteClaim, words: onClaim("deleted")},
		"claim again": {weight: 2, words: onClaim("deleted, and created again at once"), do: func(ctx context.Context, r *run, s step) error {
			if err := deleteClaim(ctx, r, s); err != nil {
				return err
			}
			return createClaim(ctx, r, s)
		}},
		"switch": {weight: 5, do: switchClaim, words: func(s step) string {
			return fmt.Sprintf("claim %s: power %s", s.claimName(), pick(s, 0, v1alpha1.PowerOff, v1alpha1.PowerOn))
		}},
		"image": {weight: 3, words: onClaim("another version of its image"), do: func(ctx context.Context, r *run, s step) error {
			return r.changeClaim(ctx, s.claim, func(c *v1alpha1.ServerClaim) {
				r.versions++
				c.Spec.Image = image(tenantOf(c.Spec.Image), r.versions)
			})
		}},
		"operate claim": {weight: 3, do: operateClaim, words: func(s step) string {
			return fmt.Sprintf("claim %s: operation %s", s.claimName(), pick(s, 0, claimOperations...))
		}},
		"boot error": {weight: 3, do: breakBoot, words: func(s step) string {
			return fmt.Sprintf("claim %s: the boot operator says %s", s.claimName(), pick(s, 0, "Error", "Ready", "Ready"))
		}},
		"strip claim": {weight: 1, words: onClaim("its finalizers removed by force"), do: func(ctx context.Context, r *run, s step) error {
			return r.changeClaim(ctx, s.claim, func(c *v1alpha1.ServerClaim) { c.Finalizers = nil })
		}},
		"vanish":  {weight: 8, do: vanish, words: onClaim("vanishes while no manager runs")},
		"restore": {weight: 2, do: restore, words: onClaim("vanishes while no manager runs, and is restored from a backup")},
	}
}

// newClaim is a claim that no claim of its name inherits anything from: its image names a tenant of its own.
func (r *run) newClaim(number int) *v1alpha1.ServerClaim {
	r.generation++
	name := r.claimName(number)
	c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: name}}
	c.Spec.Image, c.Spec.Power = image(fmt.Sprintf("%s-%d", name, r.generation), 1), v1alpha1.PowerOn
	return c
}

// firstPower is what a new claim asks for: mostly On.
func firstPower(s step) v1alpha1.Power {
	return pick(s, 4, v1alpha1.PowerOn, v1alpha1.PowerOn, v1alpha1.PowerOn, v1alpha1.PowerOff)
}

func createClaim(ctx context.Context, r *run, s step) error {
	c := r.newClaim(s.claim)
	c.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: map[string]string{runLabel: r.name}}
	if pick(s, 0, false, false, true) {
		c.Spec.ServerSelector, c.Spec.ServerRef = nil, &corev1.LocalObjectReference{Name: serverOf(r.machines[s.machine].Name())}
		r.succeed(c)
	}
	c.Spec.Power = firstPower(s)
	if pick(s, 8, false, true) {
		c.Spec.Tolerations = []v1alpha1.Toleration{{Key: "model", Operator: v1alpha1.TolerationOpExists}}
	}
	return r.world.admin.Create(ctx, c)
}

// succeed notes that a claim which names a server may be the restored one of a claim of its name that is gone and was
// never released.
func (r *run) succeed(c *v1alpha1.ServerClaim) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	s, there := r.log.servers[c.Spec.ServerRef.Name].last()
	if !there || s.Spec.ServerClaimRef == nil {
		return
	}
	if s.Spec.ServerClaimRef.Name == c.Name && s.Annotations[v1alpha1.ReleasedClaimAnnotation] == "" {
		r.log.forebears[tenantOf(c.Spec.Image)] = r.log.tenants[uidOf(s.Annotations[v1alpha1.ClaimUIDAnnotation])]
	}
}

func deleteClaim(ctx context.Context, r *run, s step) error {
	c, err := r.claim(ctx, s.claim)
	if err != nil {
		return err
	}
	return r.world.admin.Delete(ctx, c)
}

func switchClaim(ctx context.Context, r *run, s step) error {
	return r.changeClaim(ctx, s.claim, func(c *v1alpha1.ServerClaim) { c.Spec.Power = pick(s, 0, v1alpha1.PowerOff, v1alpha1.PowerOn) })
}

func operateClaim(ctx context.Context, r *run, s step) error {
	return r.changeClaim(ctx, s.claim, func(c *v1alpha1.ServerClaim) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.OperationAnnotation, pick(s, 0, claimOperations...))
	})
}

// breakBoot speaks for the boot operator about a claim's boot configuration.
func breakBoot(ctx context.Context, r *run, s step) error {
	b := &v1alpha1.ServerBootConfiguration{}
	if err := r.world.admin.Get(ctx, key(tenants, r.claimName(s.claim)), b); err != nil {
		return err
	}
	b.Status.State = pick(s, 0, v1alpha1.ServerBootConfigurationStateError, v1alpha1.ServerBootConfigurationStateReady,
		v1alpha1.ServerBootConfigurationStateReady)
	return r.world.admin.Status().Update(ctx, b)
}

// vanish takes a claim away without the release that its finalizer would have recorded.
func vanish(ctx context.Context, r *run, s step) error {
	_, err := takeAway(ctx, r, s)
	return err
}

// takeAway removes a claim while no manager runs. The manager that comes after finds it gone.
func takeAway(ctx context.Context, r *run, s step) (gone *v1alpha1.ServerClaim, err error) {
	if _, err := r.claim(ctx, s.claim); err != nil {
		return nil, err
	}
	resume := r.world.operator.Hold()
	defer func() { err = errors.Join(err, resume()) }()
	c, err := r.claim(ctx, s.claim)
	if err != nil {
		return nil, err
	}
	was := c.DeepCopy()
	if len(c.Finalizers) > 0 {
		c.Finalizers = nil
		if err := r.world.admin.Update(ctx, c); err != nil {
			return nil, err
		}
	}
	if err := r.world.admin.Delete(ctx, c); err != nil {
		return nil, err
	}
	if ref := was.Spec.ServerRef; ref != nil {
		r.meddle(ref.Name)
	}
	return was, nil
}

// restore brings a claim back as a backup does: the same spec, another UID.
func restore(ctx context.Context, r *run, s step) error {
	was, err := takeAway(ctx, r, s)
	if err != nil {
		return err
	}
	c := r.newClaim(s.claim)
	tenant := c.Spec.Image
	c.Spec = was.Spec
	c.Spec.Image = tenant
	if was.Spec.ServerRef != nil { // what names a server is that server's claim again
		r.log.mu.Lock()
		r.log.forebears[tenantOf(tenant)] = tenantOf(was.Spec.Image)
		r.log.mu.Unlock()
	}
	return r.world.admin.Create(ctx, c)
}
