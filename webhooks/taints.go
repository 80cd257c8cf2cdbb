// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

var (
	taintsPath      = field.NewPath("spec", "taints")
	tolerationsPath = field.NewPath("spec", "tolerations")
)

// checkTaints holds every taint that a change brings against what a taint can mean.
func checkTaints(c review.Change[v1alpha1.Server], found *review.Findings) {
	var stored []v1alpha1.Taint
	if !c.Created() {
		stored = c.Old.Spec.Taints
	}
	for i, taint := range c.New.Spec.Taints {
		at := taintsPath.Index(i)
		if errs := validation.IsQualifiedName(taint.Key); len(errs) > 0 &&
			!slices.ContainsFunc(stored, func(t v1alpha1.Taint) bool { return t.Key == taint.Key }) {
			found.Deny(field.Invalid(at.Child("key"), taint.Key, strings.Join(errs, "; ")))
		}
		if taint.Effect == v1alpha1.TaintEffectEvict && !slices.Contains(stored, taint) {
			warnOfEvict(at, found)
		}
	}
}

// checkReadinessRule warns of a rule whose taint does nothing. The schema says the rest.
func checkReadinessRule(c review.Change[v1alpha1.ServerReadinessRule], found *review.Findings) {
	if c.Created() && c.New.Spec.Taint.Effect == v1alpha1.TaintEffectEvict {
		warnOfEvict(field.NewPath("spec", "taint"), found)
	}
}

func warnOfEvict(taint *field.Path, found *review.Findings) {
	found.Warn("%s: the effect Evict does nothing in this version: it ends no claim and keeps none away; "+
		"to keep new claims away use the effect NoBind", taint.Child("effect"))
}

// checkTolerations refuses what reads like a toleration and is none: it would tolerate nothing, or more than it says.
func checkTolerations(c review.Change[v1alpha1.ServerClaim], found *review.Findings) {
	for i, t := range c.New.Spec.Tolerations {
		if !c.Created() && slices.Contains(c.Old.Spec.Tolerations, t) {
			continue
		}
		at := tolerationsPath.Index(i)
		exists := t.Operator == v1alpha1.TolerationOpExists
		if t.Key == "" && !exists {
			found.Deny(field.Invalid(at.Child("operator"), string(t.Operator),
				"without a key it tolerates nothing; name the key, or use the operator Exists, which then tolerates every taint"))
		}
		if exists && t.Value != "" {
			found.Deny(field.Invalid(at.Child("value"), t.Value,
				"the operator Exists tolerates every value; leave the value out, or use the operator Equal"))
		}
	}
}
