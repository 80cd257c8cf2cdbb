// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// budgetWindow is, in seconds, how long an action counts.
const budgetWindow = 6

// fleetActions is what the people who run the fleet do to all of it.
func fleetActions() map[string]action {
	return map[string]action{
		"freeze": {weight: 3, words: func(s step) string {
			return fmt.Sprintf("freeze %s of %s", level(s), scope(s))
		}, do: func(ctx context.Context, r *run, s step) error {
			f := policyv1alpha1.Freeze{Name: "model", Level: level(s), Reason: "a step"}
			if !everywhere(s) {
				f.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{machineLabel: r.machines[s.machine].Name()}}
			}
			return r.control(ctx, func(c *policyv1alpha1.FleetControlSpec) { c.Freezes = []policyv1alpha1.Freeze{f} })
		}},
		"thaw": {weight: 9, words: fixed("every freeze lifted"), do: func(ctx context.Context, r *run, _ step) error {
			return r.control(ctx, func(c *policyv1alpha1.FleetControlSpec) { c.Freezes = nil })
		}},
		"budget": {weight: 2, words: func(s step) string {
			return fmt.Sprintf("budget: %d machines %s at a time", *budget(s).Max, budget(s).Action)
		}, do: func(ctx context.Context, r *run, s step) error {
			return r.control(ctx, func(c *policyv1alpha1.FleetControlSpec) { c.Budgets = []policyv1alpha1.Budget{budget(s)} })
		}},
		"breaker": {weight: 2, words: func(s step) string {
			b := breaker(s)
			return fmt.Sprintf("breaker: trips at %d servers, beyond %d%%, in Cleanup or Error", *b.MinServers, b.MaxPercent)
		}, do: func(ctx context.Context, r *run, s step) error {
			return r.control(ctx, func(c *policyv1alpha1.FleetControlSpec) { c.Breaker = breaker(s) })
		}},
		"acknowledge": {weight: 6, words: fixed("the trip of the breaker acknowledged"), do: func(ctx context.Context, r *run, _ step) error {
			there := false
			err := r.control(ctx, func(c *policyv1alpha1.FleetControlSpec) {
				if there = c.Breaker != nil; there {
					c.Breaker.AcknowledgedAt = ptr.To(metav1.NowMicro())
				}
			})
			if err == nil && !there {
				return errNothing
			}
			return err
		}},
		"no breaker": {weight: 2, words: fixed("the breaker taken away"), do: func(ctx context.Context, r *run, _ step) error {
			return r.control(ctx, func(c *policyv1alpha1.FleetControlSpec) { c.Breaker = nil })
		}},
		"no budget": {weight: 4, words: fixed("every budget lifted"), do: func(ctx context.Context, r *run, _ step) error {
			return r.control(ctx, func(c *policyv1alpha1.FleetControlSpec) { c.Budgets = nil })
		}},
	}
}

func level(s step) policyv1alpha1.FreezeLevel {
	return pick(s, 0, policyv1alpha1.FreezeDestructive, policyv1alpha1.FreezeAll, policyv1alpha1.FreezeMaintenance)
}

func everywhere(s step) bool { return pick(s, 4, false, true) }

func scope(s step) string {
	if everywhere(s) {
		return "every machine"
	}
	return "machine " + s.machineName()
}

func budget(s step) policyv1alpha1.Budget {
	return policyv1alpha1.Budget{Name: "model", Action: pick(s, 0, policyv1alpha1.ActionWipe, policyv1alpha1.ActionPowerOn),
		Max: ptr.To(pick[int32](s, 4, 1, 1, 2)), WindowSeconds: ptr.To[int32](budgetWindow)}
}

// breaker looks at what happens from now on.
func breaker(s step) *policyv1alpha1.Breaker {
	return &policyv1alpha1.Breaker{MaxPercent: pick[int32](s, 0, 1, 30), MinServers: ptr.To(pick[int32](s, 4, 1, 2)),
		AcknowledgedAt: ptr.To(metav1.NowMicro())}
}
