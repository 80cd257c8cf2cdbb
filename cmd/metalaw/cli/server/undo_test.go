// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestWhatHoldsARequestBackIsToldWithoutAWaitForTheTimeout(t *testing.T) {
	withheld := func(reason string) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) {
			s.Name = "s1"
			s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionWithheld, Status: "True", Reason: reason, Message: "the record is held back"}}
		}
	}
	asked := func(s *v1alpha1.Server) { s.Annotations = map[string]string{v1alpha1.OperationAnnotation: "park"} }
	for name, c := range map[string]struct {
		server *v1alpha1.Server
		after  time.Duration
		want   string
	}{
		"a manager that only observes": {aServer(asked, withheld(v1alpha1.ReasonObserveOnly)), 200 * time.Millisecond,
			"s1: stored, and waits: Withheld is True, ObserveOnly: the record is held back\n"},
		"a freeze, which may hold back another effect": {aServer(asked, withheld(v1alpha1.ReasonFrozen)), 200 * time.Millisecond, ""},
		"a freeze that lasts": {aServer(asked, withheld(v1alpha1.ReasonFrozen)), eventDelay,
			"s1: stored, and waits: Withheld is True, Frozen: the record is held back\n"},
		"a request that was taken in": {aServer(withheld(v1alpha1.ReasonObserveOnly)), eventDelay, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f, _, notes := following(t, nil, nil)
			f.began = noonSharp
			f.see(c.server, noonSharp)
			for range 2 { // it is told once
				f.tellWaits(noonSharp.Add(c.after))
			}
			if diff := cmp.Diff(c.want, notes.String()); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
		})
	}
}
