// SPDX-License-Identifier: Apache-2.0

package taints

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

const completed = "readiness.metal.ironcore.dev/bootstrap-completed-"

var (
	wiring = v1alpha1.Taint{Key: "net", Value: "wiring", Effect: v1alpha1.TaintEffectNoBind}
	cable  = v1alpha1.Taint{Key: "net", Value: "cable", Effect: v1alpha1.TaintEffectNoBind}
	evict  = v1alpha1.Taint{Key: "net", Value: "wiring", Effect: v1alpha1.TaintEffectEvict}
	theirs = v1alpha1.Taint{Key: "dedicated", Value: "archive", Effect: v1alpha1.TaintEffectNoBind}
	bare   = v1alpha1.Taint{Key: "net", Value: "wiring"}
)

// rule asks servers of rack r1 for a condition.
func rule(name, kind, status string, taint v1alpha1.Taint, change ...func(*Rule)) Rule {
	r := Rule{Name: name, Taint: taint, Selects: labels.SelectorFromSet(labels.Set{"rack": "r1"}),
		Conditions: []v1alpha1.ConditionRequirement{{Type: kind, RequiredStatus: metav1.ConditionStatus(status)}}}
	for _, c := range change {
		c(&r)
	}
	return r
}

func once(r *Rule)      { r.Once = true }
func ends(r *Rule)      { r.Ends = true }
func elsewhere(r *Rule) { r.Selects = labels.SelectorFromSet(labels.Set{"rack": "r2"}) }
func all(r *Rule)       { r.Selects = labels.Everything() }
func also(kind string) func(*Rule) {
	return func(r *Rule) {
		r.Conditions = append(r.Conditions, v1alpha1.ConditionRequirement{Type: kind, RequiredStatus: "True"})
	}
}

func is(kind, status string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status)}
}

func TestDecide(t *testing.T) {
	type taints = []v1alpha1.Taint
	type conditions = []metav1.Condition
	type rules = []Rule
	done := map[string]string{completed + "a": "true"}
	for name, c := range map[string]struct {
		annotations map[string]string
		conditions  conditions
		taints      taints
		rules       rules
		want        taints
		completed   []string
	}{
		"an absent condition adds the taint":            {nil, nil, taints{theirs}, rules{rule("a", "Net", "True", wiring)}, taints{theirs, wiring}, nil},
		"an absent condition is not Unknown":            {nil, nil, nil, rules{rule("a", "Net", "Unknown", wiring)}, taints{wiring}, nil},
		"an absent condition is not False":              {nil, nil, nil, rules{rule("a", "Net", "False", wiring)}, taints{wiring}, nil},
		"a condition that is Unknown where that is due": {nil, conditions{is("Net", "Unknown")}, taints{wiring}, rules{rule("a", "Net", "Unknown", wiring)}, nil, nil},
		"a condition that is False where True is due":   {nil, conditions{is("Net", "False")}, nil, rules{rule("a", "Net", "True", wiring)}, taints{wiring}, nil},
		"a condition that is True removes the taint": {nil, conditions{is("Net", "True")}, taints{theirs, wiring}, rules{rule("a", "Net", "True", wiring)},
			taints{theirs}, nil},
		"one of two conditions does not do":        {nil, conditions{is("Net", "True")}, nil, rules{rule("a", "Net", "True", wiring, also("Burnt"))}, taints{wiring}, nil},
		"a taint that is there is not added again": {nil, nil, taints{wiring, theirs}, rules{rule("a", "Net", "True", wiring)}, taints{wiring, theirs}, nil},
		"no effect is NoBind":                      {nil, nil, taints{bare}, rules{rule("a", "Net", "True", wiring)}, taints{bare}, nil},
		"one without effect is removed as well":    {nil, conditions{is("Net", "True")}, taints{bare}, rules{rule("a", "Net", "True", wiring)}, nil, nil},
		"Evict is another taint":                   {nil, nil, taints{wiring}, rules{rule("a", "Net", "True", evict)}, taints{wiring, evict}, nil},
		"one that selects no such server does nothing": {nil, nil, taints{theirs}, rules{rule("a", "Net", "True", wiring, elsewhere)},
			taints{theirs}, nil},
		"an empty selector selects all":                   {nil, nil, nil, rules{rule("a", "Net", "True", wiring, all)}, taints{wiring}, nil},
		"a server that stops matching keeps its taint":    {nil, conditions{is("Net", "True")}, taints{wiring}, rules{rule("a", "Net", "True", wiring, elsewhere)}, taints{wiring}, nil},
		"a value that somebody else wrote stays":          {nil, nil, taints{cable}, rules{rule("a", "Net", "True", wiring)}, taints{cable}, nil},
		"a value that somebody else wrote is not removed": {nil, conditions{is("Net", "True")}, taints{cable}, rules{rule("a", "Net", "True", wiring)}, taints{cable}, nil},

		"two rules with the same taint, one holds": {nil, conditions{is("Net", "True")}, taints{wiring},
			rules{rule("a", "Net", "True", wiring), rule("b", "Burnt", "True", wiring)}, taints{wiring}, nil},
		"two rules with the same taint, both hold": {nil, conditions{is("Net", "True"), is("Burnt", "True")}, taints{wiring},
			rules{rule("a", "Net", "True", wiring), rule("b", "Burnt", "True", wiring)}, nil, nil},
		"two rules with the same taint add it once": {nil, nil, nil, rules{rule("b", "Burnt", "True", wiring), rule("a", "Net", "True", wiring)}, taints{wiring}, nil},
		"of two values the first rule by name has its own": {nil, nil, nil,
			rules{rule("b", "Burnt", "True", wiring), rule("a", "Net", "True", cable)}, taints{cable}, nil},
		"the other value comes when the first goes": {nil, conditions{is("Net", "True")}, taints{cable},
			rules{rule("a", "Net", "True", cable), rule("b", "Burnt", "True", wiring)}, taints{wiring}, nil},

		"one for the bootstrap adds the taint":    {nil, nil, nil, rules{rule("a", "Net", "True", wiring, once)}, taints{wiring}, nil},
		"one for the bootstrap is done once":      {nil, conditions{is("Net", "True")}, taints{wiring}, rules{rule("a", "Net", "True", wiring, once)}, nil, []string{completed + "a"}},
		"one that was done does not add it again": {done, conditions{is("Net", "False")}, nil, rules{rule("a", "Net", "True", wiring, once)}, nil, nil},
		"one that was done does not remove it":    {done, conditions{is("Net", "True")}, taints{wiring}, rules{rule("a", "Net", "True", wiring, once)}, taints{wiring}, nil},
		"one that was done for another rule acts": {done, nil, nil, rules{rule("b", "Net", "True", wiring, once)}, taints{wiring}, nil},
		"a continuous rule acts whatever was done": {done, nil, nil, rules{rule("a", "Net", "True", wiring)},
			taints{wiring}, nil},

		"a rule that ends takes its taint only": {nil, nil, taints{theirs, wiring, evict}, rules{rule("a", "Net", "True", wiring, ends)}, taints{theirs, evict}, nil},
		"a rule that ends leaves what another wants": {nil, nil, taints{wiring},
			rules{rule("a", "Net", "True", wiring, ends), rule("b", "Burnt", "True", wiring)}, taints{wiring}, nil},
		"a rule that ends leaves what it does not select": {nil, nil, taints{wiring}, rules{rule("a", "Net", "True", wiring, ends, elsewhere)}, taints{wiring}, nil},
		"a rule that ends completes nothing": {nil, conditions{is("Net", "True")}, taints{wiring}, rules{rule("a", "Net", "True", wiring, once, ends)},
			nil, nil},
		"no rule, no change": {nil, nil, taints{theirs}, nil, taints{theirs}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{Labels: map[string]string{"rack": "r1"}, Annotations: c.annotations, Conditions: c.conditions, Taints: c.taints, Rules: c.rules}
			got := Decide(in)
			want := Output{Taints: c.want, Completed: c.completed, Changed: !cmp.Equal(c.taints, c.want) || c.completed != nil}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Output{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			in.Taints, in.Annotations = got.Taints, map[string]string{}
			for key, value := range c.annotations {
				in.Annotations[key] = value
			}
			for _, key := range got.Completed {
				in.Annotations[key] = "true"
			}
			if again := Decide(in); again.Changed {
				t.Errorf("a second look changes it: %+v", again)
			}
		})
	}
}

func TestCompletedAnnotationIsAKeyForEveryName(t *testing.T) {
	if got := CompletedAnnotation("network"); got != completed+"network" {
		t.Error(got)
	}
	long := strings.Repeat("n", 253)
	a, b := CompletedAnnotation(long), CompletedAnnotation(long[1:]+"m")
	if a == b {
		t.Errorf("two rules share %s", a)
	}
	for _, key := range []string{a, b, CompletedAnnotation(strings.Repeat("n", 43)), CompletedAnnotation(strings.Repeat("n", 44))} {
		if errs := validation.IsQualifiedName(key); len(errs) > 0 {
			t.Errorf("%s: %q", key, errs)
		}
	}
}
