// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// operations are what somebody who runs the fleet may ask of a server.
var operations = []string{v1alpha1.OperationPark, v1alpha1.OperationUnpark, v1alpha1.OperationRetry, v1alpha1.OperationRelease,
	v1alpha1.OperationPark, v1alpha1.OperationUnpark, v1alpha1.OperationHardRestartServer, v1alpha1.OperationForceOffServer,
	v1alpha1.OperationPowerCycleServer, v1alpha1.OperationForceOnServer}

// forcedStates are those that a server is forced to.
var forcedStates = []v1alpha1.ServerState{v1alpha1.StateCleanup, v1alpha1.StateAvailable, v1alpha1.StateReserved, v1alpha1.StateError,
	v1alpha1.StateInitial, v1alpha1.StateDiscovery, v1alpha1.StateReleased, v1alpha1.StateParked}

// serverActions is what the people who run the fleet do to one server.
func serverActions() map[string]action {
	return map[string]action{
		"operate": {weight: 9, do: operate, words: func(s step) string {
			return fmt.Sprintf("machine %s: operation %s", s.machineName(), pick(s, 0, operations...))
		}},
		"force": {weight: 2, do: force, words: func(s step) string {
			return fmt.Sprintf("machine %s: forced to %s, overriding safety: %t", s.machineName(), pick(s, 0, forcedStates...), overrides(s))
		}},
		"retain": {weight: 3, words: func(s step) string {
			return fmt.Sprintf("machine %s: reclaimPolicy %s", s.machineName(), reclaim(s))
		}, do: func(ctx context.Context, r *run, s step) error {
			return r.changeServer(ctx, s.machine, func(o *v1alpha1.Server) { o.Spec.ReclaimPolicy = reclaim(s) })
		}},
		"let go": {weight: 3, words: onMachine("serverClaimRef cleared by hand"), do: func(ctx context.Context, r *run, s step) error {
			return r.changeServer(ctx, s.machine, func(o *v1alpha1.Server) {
				o.Spec.ServerClaimRef = nil
				r.takeFrom(o.Name)
			})
		}},
		"cordon": {weight: 2, words: func(s step) string {
			return fmt.Sprintf("machine %s: unclaimable %t", s.machineName(), pick(s, 0, true, false, false))
		}, do: func(ctx context.Context, r *run, s step) error {
			return r.changeServer(ctx, s.machine, func(o *v1alpha1.Server) { o.Spec.Unclaimable = pick(s, 0, true, false, false) })
		}},
		"taint": {weight: 2, words: func(s step) string {
			return fmt.Sprintf("machine %s: tainted %t", s.machineName(), pick(s, 0, true, false, false))
		}, do: func(ctx context.Context, r *run, s step) error {
			return r.changeServer(ctx, s.machine, func(o *v1alpha1.Server) { o.Spec.Taints = taints(pick(s, 0, true, false, false)) })
		}},
		"ignore": {weight: 6, do: ignore, words: func(s step) string {
			return fmt.Sprintf("machine %s: left alone %t", s.machineName(), pick(s, 0, true, false, false))
		}},
		"consent":       {weight: 3, do: consent, words: onMachine("somebody consents to its take-over")},
		"delete server": {weight: 2, do: deleteServer, words: onMachine("its Server deleted, with or without its data")},
		"delete bmc":    {weight: 1, do: forgetBMC, words: onMachine("its BMC or Endpoint object deleted, and made again")},
		"strip server":  {weight: 1, do: stripServer, words: onMachine("the finalizers of its Server removed by force")},
	}
}

func overrides(s step) bool { return pick(s, 8, false, false, true) }

func reclaim(s step) v1alpha1.ReclaimPolicy {
	return pick(s, 0, v1alpha1.ReclaimPolicyRetain, v1alpha1.ReclaimPolicyRecycle)
}

func taints(tainted bool) []v1alpha1.Taint {
	if !tainted {
		return nil
	}
	return []v1alpha1.Taint{{Key: "model", Value: "x", Effect: v1alpha1.TaintEffectNoBind}}
}

func forgetBMC(ctx context.Context, r *run, s step) error { return r.forget(ctx, s.machine) }

func stripServer(ctx context.Context, r *run, s step) error {
	return r.changeServer(ctx, s.machine, func(o *v1alpha1.Server) { o.Finalizers = nil })
}

func operate(ctx context.Context, r *run, s step) error {
	return r.operate(ctx, s.machine, pick(s, 0, operations...))
}

// operate asks for an operation. That a release by hand may be carried out at any time from now on is noted before.
func (r *run) operate(ctx context.Context, machine int, operation string) error {
	return r.changeServer(ctx, machine, func(o *v1alpha1.Server) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, v1alpha1.OperationAnnotation, operation)
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, v1alpha1.OperationReasonAnnotation, "a step")
		if operation == v1alpha1.OperationRelease {
			r.log.mu.Lock()
			r.log.releases[o.Name] = append(r.log.releases[o.Name], time.Now())
			r.log.mu.Unlock()
		}
	})
}

func force(ctx context.Context, r *run, s step) error {
	return r.force(ctx, s.machine, pick(s, 0, forcedStates...), overrides(s))
}

// force asks for a move past the rules, and maybe past those that guard data as well.
func (r *run) force(ctx context.Context, machine int, to v1alpha1.ServerState, override bool) error {
	return r.changeServer(ctx, machine, func(o *v1alpha1.Server) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, v1alpha1.OperationAnnotation, v1alpha1.OperationForce)
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, v1alpha1.ForceToAnnotation, string(to))
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, v1alpha1.OperationReasonAnnotation, "a step")
		if override {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, v1alpha1.ForceOverrideAnnotation, "true")
			r.waive(machine)
		}
		r.takeFrom(o.Name)
	})
}

func ignore(ctx context.Context, r *run, s step) error {
	return r.changeServer(ctx, s.machine, func(o *v1alpha1.Server) {
		if pick(s, 0, true, false, false) {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, v1alpha1.OperationAnnotation, v1alpha1.OperationIgnore)
		} else {
			r.lift(o)
		}
	})
}

// lift ends that a server is left alone, and notes that before.
func (r *run) lift(o *v1alpha1.Server) {
	if !v1alpha1.Ignored(o) {
		return
	}
	r.log.mu.Lock()
	r.log.lifted[o.Name] = time.Now()
	r.log.mu.Unlock()
	delete(o.Annotations, v1alpha1.OperationAnnotation)
}

func consent(ctx context.Context, r *run, s step) error {
	return r.changeServer(ctx, s.machine, func(o *v1alpha1.Server) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, v1alpha1.ConsentAnnotation, v1alpha1.ConsentTakeOver)
	})
}

func deleteServer(ctx context.Context, r *run, s step) error {
	if pick(s, 0, true, false) {
		err := r.changeServer(ctx, s.machine, func(o *v1alpha1.Server) {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, v1alpha1.DeleteDataAnnotation, "true")
		})
		if err != nil {
			return err
		}
	}
	o, err := r.server(ctx, s.machine)
	if err != nil {
		return err
	}
	r.meddle(o.Name)
	return r.world.admin.Delete(ctx, o)
}
