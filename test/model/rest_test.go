// SPDX-License-Identifier: Apache-2.0

package model

import (
	"testing"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestWhatRestsInReleasedByForce(t *testing.T) {
	for name, c := range map[string]struct {
		annotations map[string]string
		marks       []string
		rule        string
		want        bool
	}{
		"a server with data":                        {nil, []string{"Dirty", "Managed"}, v1alpha1.RuleForced, true},
		"one of which the holder is recorded":       {map[string]string{v1alpha1.ClaimUIDAnnotation: "u"}, nil, v1alpha1.RuleForced, true},
		"not one that nobody is known to have held": {nil, []string{"Managed"}, v1alpha1.RuleForced, false},
		"not one that is released": {map[string]string{v1alpha1.ClaimUIDAnnotation: "u", v1alpha1.ReleasedClaimAnnotation: "u"}, []string{"Dirty"},
			v1alpha1.RuleForced, false},
		"not one that a rule led there": {nil, []string{"Dirty"}, "DataRunning", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.Server{}
			s.Annotations = c.annotations
			s.Status.State, s.Status.Lifecycle = v1alpha1.StateReleased, &v1alpha1.LifecycleStatus{Rule: c.rule, Marks: c.marks}
			if got := keptByForce(s); got != c.want {
				t.Errorf("rests: %t", got)
			}
		})
	}
}
