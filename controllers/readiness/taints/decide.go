// SPDX-License-Identifier: Apache-2.0

// Package taints decides which taints of a server follow from its conditions. It is pure.
package taints

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// Rule is a ServerReadinessRule in force.
type Rule struct {
	Name       string
	Conditions []v1alpha1.ConditionRequirement
	// Once says that the rule acts until the conditions are once as required.
	Once  bool
	Taint v1alpha1.Taint
	// Selects are the labels of the servers that the rule acts on.
	Selects labels.Selector
	// Ends says that the rule is being deleted, and takes its taint with it.
	Ends bool
}

// RuleOf reads a ServerReadinessRule. An error says that its selector selects nothing.
func RuleOf(r *v1alpha1.ServerReadinessRule) (Rule, error) {
	selects, err := metav1.LabelSelectorAsSelector(&r.Spec.ServerSelector)
	return Rule{Name: r.Name, Conditions: r.Spec.Conditions, Once: r.Spec.EnforcementMode == v1alpha1.EnforcementModeBootstrapOnly,
		Taint: r.Spec.Taint, Selects: selects, Ends: !r.DeletionTimestamp.IsZero()}, err
}

// Input is what the taints of one server depend on. Decide changes none of it.
type Input struct {
	Labels, Annotations map[string]string
	Conditions          []metav1.Condition
	Taints              []v1alpha1.Taint
	// Rules are all rules in force, in any order.
	Rules []Rule
}

// Output is what the server is to have.
type Output struct {
	Taints []v1alpha1.Taint
	// Completed are the annotations, with the value "true", that a rule does not act on the server any more.
	Completed []string
	// Changed says that the server has other taints, or lacks such an annotation.
	Changed bool

	lifted []v1alpha1.Taint
}

// Lifts says that a taint is taken off the server.
func (o Output) Lifts(t v1alpha1.Taint) bool { return has(o.lifted, same(t)) }

// Decide adds the taint of each rule whose conditions are not as required, and takes the others away. A taint of the same key and
// effect that another program wrote, with another value, stays, and the rule adds no second one.
func Decide(in Input) Output {
	var wanted, lifted []v1alpha1.Taint
	out := Output{}
	for _, r := range slices.SortedFunc(slices.Values(in.Rules), func(a, b Rule) int { return cmp.Compare(a.Name, b.Name) }) {
		if !r.ActsOn(in) {
			continue
		}
		switch {
		case !r.Ends && !holds(in.Conditions, r.Conditions):
			wanted = append(wanted, r.Taint)
			continue
		case !r.Ends && r.Once:
			out.Completed = append(out.Completed, CompletedAnnotation(r.Name))
		}
		lifted = append(lifted, r.Taint)
	}
	for _, t := range in.Taints {
		if has(lifted, same(t)) && !has(wanted, same(t)) {
			out.lifted = append(out.lifted, t)
		} else {
			out.Taints = append(out.Taints, t)
		}
	}
	out.Changed = len(out.Completed)+len(out.lifted) > 0
	for _, t := range wanted {
		if !has(out.Taints, sameKey(t)) {
			out.Taints, out.Changed = append(out.Taints, t), true
		}
	}
	return out
}

// ActsOn says that the rule acts on a server: its labels are selected, and it did not complete its bootstrap under the rule.
func (r Rule) ActsOn(in Input) bool {
	return r.Selects.Matches(labels.Set(in.Labels)) && !(r.Once && in.Annotations[CompletedAnnotation(r.Name)] == "true")
}

// holds says that every condition is there, with the status that is required.
func holds(conditions []metav1.Condition, required []v1alpha1.ConditionRequirement) bool {
	for _, r := range required {
		if c := meta.FindStatusCondition(conditions, r.Type); c == nil || c.Status != r.RequiredStatus {
			return false
		}
	}
	return true
}

func has(all []v1alpha1.Taint, which func(v1alpha1.Taint) bool) bool {
	return slices.ContainsFunc(all, which)
}

func sameKey(a v1alpha1.Taint) func(v1alpha1.Taint) bool {
	return func(b v1alpha1.Taint) bool {
		return a.Key == b.Key && cmp.Or(a.Effect, v1alpha1.TaintEffectNoBind) == cmp.Or(b.Effect, v1alpha1.TaintEffectNoBind)
	}
}

func same(a v1alpha1.Taint) func(v1alpha1.Taint) bool {
	return func(b v1alpha1.Taint) bool { return sameKey(a)(b) && a.Value == b.Value }
}

// maxAnnotation is how long the part of an annotation's key after the slash may be.
const maxAnnotation = 63

// CompletedAnnotation is the key of the annotation which says that a rule does not act on a server any more. Where the key would be
// too long, the name of the rule is cut, and a digest of the name tells it from others.
func CompletedAnnotation(rule string) string {
	const part = len("bootstrap-completed-")
	if part+len(rule) > maxAnnotation {
		sum := sha256.Sum256([]byte(rule))
		digest := hex.EncodeToString(sum[:5])
		rule = rule[:maxAnnotation-part-len(digest)-1] + "-" + digest
	}
	return v1alpha1.BootstrapCompletedPrefix + rule
}
