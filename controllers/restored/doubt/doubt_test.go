// SPDX-License-Identifier: Apache-2.0

package doubt

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/restored"
)

func TestHowADoubtIsKeptAndEnded(t *testing.T) {
	now, before := metav1.NewMicroTime(time.Unix(100, 0)), metav1.NewMicroTime(time.Unix(50, 0))
	fresh := &policyv1alpha1.RestoredDoubt{Since: now, By: "jane", Reason: "INC-7"}
	stands := &policyv1alpha1.RestoredDoubt{Since: before}
	asked := &policyv1alpha1.RestoredDoubt{Since: before, InspectSince: &before}
	begins := &policyv1alpha1.RestoredDoubt{Since: now, By: "jane", Reason: "INC-7", InspectSince: &now}
	held := func(s *v1alpha1.Server) {
		s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "shop", Name: "web"}
	}
	released := func(s *v1alpha1.Server) {
		s.Annotations[v1alpha1.ClaimUIDAnnotation], s.Annotations[v1alpha1.ReleasedClaimAnnotation] = "u", "u"
	}
	inspected := func(s *v1alpha1.Server) {
		s.Status.Lifecycle = &v1alpha1.LifecycleStatus{RestoredInspection: &before}
	}
	in := func(state v1alpha1.ServerState) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) { s.Status.State = state }
	}
	for name, c := range map[string]struct {
		annotation string
		doubt      *policyv1alpha1.RestoredDoubt
		server     func(*v1alpha1.Server)
		want       Step
	}{
		"nothing is in doubt":                           {"-", nil, nil, Step{}},
		"a user puts it in doubt":                       {restored.Doubted, nil, nil, Step{Inventory: true, Doubt: fresh}},
		"a value that means nothing":                    {"yes", nil, nil, Step{Inventory: true, Doubt: fresh}},
		"it is known to be":                             {restored.Doubted, stands, nil, Step{}},
		"put in doubt anew while it is inspected":       {restored.Doubted, asked, nil, Step{Inventory: true, Doubt: fresh}},
		"a new Server of a machine in doubt":            {"-", stands, nil, Step{Server: true, Annotation: restored.Doubted}},
		"a new Server of one that is to be inspected":   {"-", asked, nil, Step{Server: true, Annotation: restored.Inspect}},
		"confirmed, and held by a claim":                {restored.Confirmed, stands, held, Step{Inventory: true, Server: true}},
		"the same after a crash between the two writes": {restored.Confirmed, nil, held, Step{Server: true}},
		"confirmed, and released":                       {restored.Confirmed, stands, released, Step{Inventory: true, Forget: true, Server: true}},
		"confirmed, and observed":                       {restored.Confirmed, stands, in("Observing"), Step{Inventory: true, Forget: true, Server: true}},
		"confirmed, and free":                           {restored.Confirmed, stands, in("Available"), Step{Inventory: true, Doubt: begins, Server: true, Annotation: restored.Inspect}},
		"confirmed, free, and never taken in":           {restored.Confirmed, nil, in("Available"), Step{Inventory: true, Doubt: begins, Server: true, Annotation: restored.Inspect}},
		"confirmed, free, and crashed in between":       {restored.Confirmed, asked, in("Available"), Step{Server: true, Annotation: restored.Inspect}},
		"to be inspected":                               {restored.Inspect, asked, nil, Step{}},
		"inspected":                                     {restored.Inspect, nil, inspected, Step{Server: true}},
		"to be inspected, and the inventory lost it":    {restored.Inspect, nil, nil, Step{Server: true, Annotation: restored.Doubted}},
		"to be inspected by a user's word":              {restored.Inspect, stands, nil, Step{Server: true, Annotation: restored.Doubted}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.Server{}
			s.Annotations = map[string]string{v1alpha1.RestoredByAnnotation: "jane", v1alpha1.RestoredReasonAnnotation: "INC-7"}
			if c.annotation != "-" {
				s.Annotations[v1alpha1.RestoredDoubtAnnotation] = c.annotation
			}
			if c.server != nil {
				c.server(s)
			}
			inventory := &policyv1alpha1.ServerInventory{Custody: &policyv1alpha1.Custody{Doubt: c.doubt}}
			if diff := cmp.Diff(c.want, Next(s, inventory, now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAStoreThatGoesBackTwiceInARowWasRestored(t *testing.T) {
	for name, c := range map[string]struct {
		versions []string
		want     bool
	}{
		"it grows":                                {[]string{"5", "6", "9"}, false},
		"it stays":                                {[]string{"5", "5", "5"}, false},
		"lower once":                              {[]string{"9", "5"}, false},
		"lower twice in a row":                    {[]string{"9", "5", "6"}, true},
		"lower twice, and not in a row":           {[]string{"9", "5", "9", "5"}, false},
		"what is no number says nothing":          {[]string{"9", "", "x", "0"}, false},
		"nor does it interrupt":                   {[]string{"9", "5", "", "6"}, true},
		"the first answers of a process":          {[]string{"5"}, false},
		"as many digits as a number may have":     {[]string{"18446744073709551615", "1", "2"}, true},
		"more digits than a number may have":      {[]string{"18446744073709551616", "1", "2"}, false},
		"a restore that is higher is not noticed": {[]string{"9", "20"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var s Store
			for _, v := range c.versions {
				s = s.Hear(v)
			}
			if s.Restored() != c.want {
				t.Errorf("%+v", s)
			}
			if s.Known().Restored() {
				t.Error("it is told twice")
			}
		})
	}
}

func FuzzTheResourceVersionOfAList(f *testing.F) {
	f.Add("9", "5", "6")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		s := Store{}.Hear(a).Hear(b).Hear(c)
		if s.Heard > s.Highest {
			t.Errorf("%+v", s)
		}
	})
}
