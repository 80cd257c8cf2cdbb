// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// recordMaintenance says what a maintenance waits for that the server names and that has not begun: somebody may stand before the
// machine with a screwdriver.
func (r *record) recordMaintenance() {
	ref := r.s.Spec.ServerMaintenanceRef
	if ref == nil || r.Decision.Moves() || r.Governance.Bundle == nil || inMaintenance(r.Governance.Bundle, engine.State(r.s.Status.State)) {
		r.drop(v1alpha1.ConditionMaintenanceWaits)
		return
	}
	if r.heldBriefly() {
		return
	}
	reason, why := r.maintenanceWaits()
	r.condition(v1alpha1.ConditionMaintenanceWaits, metav1.ConditionTrue, reason,
		fmt.Sprintf("maintenance %s/%s has not begun: %s", ref.Namespace, ref.Name, why))
}

// inMaintenance says that a state is one in which a maintenance has the server.
func inMaintenance(b *bundle.Bundle, state engine.State) bool {
	return b.Lifecycle.Ensures(state, policies.EffectMaintain)
}

// maintenanceWaits says what keeps the server from the state in which the maintenance would have it.
func (r *record) maintenanceWaits() (reason, why string) {
	if r.Decision.Halt != nil {
		return string(r.Decision.Halt.Cause), "nothing moves while the policy is halted; PolicyHalted says why"
	}
	rules := maintenanceRules(r.Governance.Bundle, engine.State(r.s.Status.State), r.Facts)
	if len(rules) == 0 {
		return v1alpha1.ReasonNoRule, fmt.Sprintf("no rule of the policy leads there from state %s", r.s.Status.State)
	}
	reason, why = v1alpha1.ReasonRuleWaits, strings.Join(rules, "; ")
	if r.Gated.Postponed {
		why = r.Decision.Message
	}
	if silent := silence(r.s.Status.Conditions); silent != "" {
		return v1alpha1.ReasonBMCUnreachable, why + "; " + silent + ", so the manager does not know whether the machine is on"
	}
	return reason, why
}

// maintenanceRules are the rules that lead from the present state to a maintenance, each with what it asks for and what is so.
func maintenanceRules(b *bundle.Bundle, state engine.State, facts *policies.Facts) (all []string) {
	leads := map[string]bool{}
	for _, e := range b.Lifecycle.Edges() {
		if e.From == state && inMaintenance(b, e.To) {
			leads[e.Rule] = true
		}
	}
	if len(leads) == 0 {
		return nil
	}
	for _, step := range b.Lifecycle.Explain(facts).Trace {
		if !leads[step.Rule] {
			continue
		}
		var is []string
		for _, name := range slices.Sorted(maps.Keys(step.Atoms)) {
			if value := step.Atoms[name]; value == "true" || value == "false" { // others were not asked
				is = append(is, name+" is "+value)
			}
		}
		all = append(all, fmt.Sprintf("rule %s waits for %s (%s)", step.Rule, step.Guard, strings.Join(is, ", ")))
	}
	if len(all) == 0 { // another rule comes before
		all = append(all, "rule "+strings.Join(slices.Sorted(maps.Keys(leads)), ", ")+" waits for its turn")
	}
	return all
}

// silence says since when the BMC has not answered; empty where it does.
func silence(conditions []metav1.Condition) string {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionBMCReachable)
	if c == nil || c.Status != metav1.ConditionFalse {
		return ""
	}
	return "the BMC has not answered since " + c.LastTransitionTime.UTC().Format(time.RFC3339)
}
