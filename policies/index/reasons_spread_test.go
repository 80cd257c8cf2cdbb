// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/policies"
)

// What counts for a spread is what counts for the scheduler's: the claims that a server is written for, and that are meant.
func TestASpreadCountsTheClaimsThatTheSchedulerCounts(t *testing.T) {
	inRack := func(rack string, more func(*v1alpha1.Server)) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) {
			s.Annotations = map[string]string{policies.RackMetadata: rack}
			if more != nil {
				more(s)
			}
		}
	}
	heldBy := func(uid, released string) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) {
			s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "team", Name: "first"}
			s.Annotations[v1alpha1.ClaimUIDAnnotation] = uid
			if released != "" {
				s.Annotations[v1alpha1.ReleasedClaimAnnotation] = released
			}
		}
	}
	first := v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "first", UID: "1", Labels: map[string]string{"app": "web"}}}
	policy := compiled(t, "package metalaw.selection\n\nallow := true\n")
	for name, c := range map[string]struct {
		holds func(*v1alpha1.Server)
		ref   string
		want  string
	}{
		"a claim that holds a server":                      {heldBy("1", ""), "", placement.CodeSpread},
		"one whose release is recorded, while it is there": {heldBy("1", "1"), "", placement.CodeSpread},
		"not one of that name that was made anew":          {heldBy("0", ""), "", ""},
		"not where the claim asks for one server by name":  {heldBy("1", ""), "b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := FleetOf([]v1alpha1.Server{free("a", inRack("r1", c.holds)), free("b", inRack("r1", nil)), free("c", inRack("r2", nil))},
				nil, []v1alpha1.ServerClaim{first}, time.Unix(0, 0))
			mine := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "mine", UID: "2",
				Annotations: map[string]string{v1alpha1.PlacementAnnotation: "spread: {key: rack, claims: {matchLabels: {app: web}}}"}}}
			if c.ref != "" {
				mine.Spec.ServerRef = &corev1.LocalObjectReference{Name: c.ref}
			}
			a, err := Judge(context.Background(), policy, mine, 0, f)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range a.Verdicts {
				if v.Name != "b" {
					continue
				}
				got := ""
				if len(v.Reasons) > 0 {
					got = v.Reasons[0].Code
				}
				if got != c.want {
					t.Errorf("b: %+v, want %q", v, c.want)
				}
			}
		})
	}
}

// A full place empties when a claim of it ends; a server without a place has nothing that could.
func TestAServerWithoutAPlaceIsFartherThanOneThatIsCordoned(t *testing.T) {
	labelled := func(row string, more func(*v1alpha1.Server)) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) {
			s.Labels["row"] = row
			more(s)
		}
	}
	first := v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "first", UID: "1"}}
	f := FleetOf([]v1alpha1.Server{
		free("a-nowhere", func(*v1alpha1.Server) {}),
		free("b-cordoned", labelled("2", func(s *v1alpha1.Server) { s.Spec.Unclaimable = true })),
		free("c-full", labelled("1", func(*v1alpha1.Server) {})),
		free("d-held", labelled("1", func(s *v1alpha1.Server) {
			s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "team", Name: "first"}
			s.Annotations = map[string]string{v1alpha1.ClaimUIDAnnotation: "1"}
		})),
	}, nil, []v1alpha1.ServerClaim{first}, time.Unix(0, 0))
	mine := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "mine", UID: "2",
		Annotations: map[string]string{v1alpha1.PlacementAnnotation: "spread: {key: row, claims: {}}"}}}
	a, err := Judge(t.Context(), compiled(t, "package metalaw.selection\n\nallow := true\n"), mine, 0, f)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range a.Verdicts {
		got = append(got, fmt.Sprintf("%s: %s %s", v.Name, v.Reasons[0].Code, v.Passing(v.Reasons[0]).Words()))
	}
	want := []string{
		"c-full: spread when another claim or a maintenance ends",
		"d-held: claimed when another claim or a maintenance ends",
		"b-cordoned: unclaimable when an operator of the fleet acts",
		"a-nowhere: spread not, as the claim is",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := a.Passes(placement.CodeSpread); got != "1 when another claim or a maintenance ends; 1 not, as the claim is" {
		t.Errorf("those that the spread leaves out pass %s", got)
	}
}
