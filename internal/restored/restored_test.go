// SPDX-License-Identifier: Apache-2.0

package restored

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestADoubtStandsWhereverItIsWritten(t *testing.T) {
	now := metav1.NewMicroTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	stands, asked := &policyv1alpha1.RestoredDoubt{Since: now}, &policyv1alpha1.RestoredDoubt{Since: now, InspectSince: &now}
	for name, c := range map[string]struct {
		annotation string
		doubt      *policyv1alpha1.RestoredDoubt
		want       Phase
	}{
		"nowhere":                                    {"-", nil, None},
		"on the server alone":                        {Doubted, nil, Stands},
		"in the inventory alone":                     {"-", stands, Stands},
		"in both":                                    {Doubted, stands, Stands},
		"with a value that means nothing":            {"no", nil, Stands},
		"with an empty value":                        {"", nil, Stands},
		"confirmed, and not taken in yet":            {Confirmed, stands, Stands},
		"with a server that is new since":            {"-", asked, Stands},
		"to be inspected":                            {Inspect, asked, Inspection},
		"to be inspected by the word of a user only": {Inspect, stands, Stands},
		"to be inspected, without an inventory":      {Inspect, nil, Stands},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.Server{}
			if c.annotation != "-" {
				s.Annotations = map[string]string{v1alpha1.RestoredDoubtAnnotation: c.annotation}
			}
			inventory := &policyv1alpha1.ServerInventory{Custody: &policyv1alpha1.Custody{Doubt: c.doubt}}
			if got := Of(s, inventory); got != c.want {
				t.Errorf("%v", got)
			}
		})
	}
}

func TestAnInspectionThatBeganForAnEarlierRestoreCountsForNothing(t *testing.T) {
	first, second := metav1.NewMicroTime(time.Unix(1, 0)), metav1.NewMicroTime(time.Unix(2, 0))
	inventory := &policyv1alpha1.ServerInventory{Custody: &policyv1alpha1.Custody{Doubt: &policyv1alpha1.RestoredDoubt{InspectSince: &second}}}
	s := &v1alpha1.Server{Status: v1alpha1.ServerStatus{Lifecycle: &v1alpha1.LifecycleStatus{RestoredInspection: &first}}}
	if Begun(s, inventory) {
		t.Error("the first restore's inspection counts")
	}
	s.Status.Lifecycle.RestoredInspection = &second
	if !Begun(s, inventory) || Begun(s, nil) || Begun(&v1alpha1.Server{}, inventory) {
		t.Error("only the second's counts")
	}
}
