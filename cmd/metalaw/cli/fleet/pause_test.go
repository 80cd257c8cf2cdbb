// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

func rack(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"rack": name}}
}

// paused is a freeze that pauses maintenances of a rack; of every server where none is named.
func paused(name, of string) policyv1alpha1.Freeze {
	f := policyv1alpha1.Freeze{Name: name, Level: "Maintenance", Reason: "INC-1301", By: "olga"}
	if of != "" {
		f.Selector = rack(of)
	}
	return f
}

func TestAPauseIsAFreezeOfItsOwnName(t *testing.T) {
	ended := paused("maintenance-paused", "")
	ended.Until = until(noon.Add(-time.Minute))
	soon := paused("", "")
	soon.Until = until(noon.Add(time.Hour))
	for name, c := range map[string]struct {
		there  []policyv1alpha1.Freeze
		wanted policyv1alpha1.Freeze
		names  string
		stood  bool
	}{
		"of every server":                 {nil, paused("", ""), "maintenance-paused", false},
		"beside that of a rack":           {[]policyv1alpha1.Freeze{paused("maintenance-paused", "r1")}, paused("", ""), "maintenance-paused, maintenance-paused-2", false},
		"not twice for the same servers":  {[]policyv1alpha1.Freeze{paused("maintenance-paused", "r1")}, paused("", "r1"), "maintenance-paused", true},
		"again for longer":                {[]policyv1alpha1.Freeze{soon}, paused("", ""), ", maintenance-paused", false},
		"in place of one that has ended":  {[]policyv1alpha1.Freeze{ended}, paused("", ""), "maintenance-paused", false},
		"beside a freeze of another kind": {[]policyv1alpha1.Freeze{{Name: "inc-7", Level: "All"}}, paused("", ""), "inc-7, maintenance-paused", false},
	} {
		t.Run(name, func(t *testing.T) {
			fc := control(c.there...)
			stored, stood, err := addPause(fc, c.wanted, noon)
			if err != nil || stood != c.stood || stored.Level != "Maintenance" {
				t.Errorf("stored %+v, stood %t, error %v", stored, stood, err)
			}
			if got := names(fc); got != c.names {
				t.Errorf("got %s, want %s", got, c.names)
			}
		})
	}
}

func TestResumeLiftsThePauseOfTheSameServersOnly(t *testing.T) {
	user := policyv1alpha1.Freeze{Name: "by-hand", Level: "Maintenance", Reason: "audit"}
	all, r1 := paused("maintenance-paused", ""), paused("maintenance-paused-2", "r1")
	for name, c := range map[string]struct {
		like          policyv1alpha1.Freeze
		resumed, left []string
	}{
		"that of every server": {paused("", ""), []string{`freeze "maintenance-paused" (Maintenance) by olga: INC-1301`},
			[]string{`freeze "maintenance-paused-2" (Maintenance) by olga: INC-1301, for servers with rack=r1`, `freeze "by-hand" (Maintenance): audit`}},
		"that of a rack": {paused("", "r1"), []string{`freeze "maintenance-paused-2" (Maintenance) by olga: INC-1301`},
			[]string{`freeze "maintenance-paused" (Maintenance) by olga: INC-1301`, `freeze "by-hand" (Maintenance): audit`}},
		"none of another rack": {paused("", "r2"), []string{}, []string{`freeze "maintenance-paused" (Maintenance) by olga: INC-1301`,
			`freeze "maintenance-paused-2" (Maintenance) by olga: INC-1301, for servers with rack=r1`, `freeze "by-hand" (Maintenance): audit`}},
	} {
		t.Run(name, func(t *testing.T) {
			resumed, left := liftPause(control(all, r1, user), &c.like, noon)
			if diff := cmp.Diff(c.resumed, resumed); diff != "" {
				t.Errorf("resumed: - want, + got:\n%s", diff)
			}
			if diff := cmp.Diff(c.left, left); diff != "" {
				t.Errorf("left: - want, + got:\n%s", diff)
			}
		})
	}
}
