// SPDX-License-Identifier: Apache-2.0

package server

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/policies"
)

// recordOverrideMissing says what follows from a BMC that shows no boot override.
func (v *scope) recordOverrideMissing() {
	switch {
	case v.facts.BMC.Identity != policies.IdentitySame: // what was said before stands
	case !v.reading.Value.Boot.Missing:
		v.drop(v1alpha1.ConditionBootOverrideMissing)
	default:
		v.condition(v1alpha1.ConditionBootOverrideMissing, metav1.ConditionTrue, v1alpha1.ReasonBootOverrideMissing,
			boots.WithoutOverride(v.settings().Boot.WithoutOverride))
	}
}
