// SPDX-License-Identifier: Apache-2.0

package recheck

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

func TestServer(t *testing.T) {
	server := func(change func(*v1alpha1.Server)) *v1alpha1.Server {
		s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{UID: "1"}}
		s.Spec.SystemUUID = "u"
		s.Status.State = v1alpha1.StateAvailable
		s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 3}
		if change != nil {
			change(s)
		}
		return s
	}
	annotated := func(name, value string) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, name, value) }
	}
	for name, c := range map[string]struct {
		now  func(*v1alpha1.Server)
		want string
	}{
		"the same":                    {nil, ""},
		"a label is no matter":        {func(s *v1alpha1.Server) { s.Labels = map[string]string{"a": "b"} }, ""},
		"one made anew":               {func(s *v1alpha1.Server) { s.UID = "2" }, "the object"},
		"one that goes":               {func(s *v1alpha1.Server) { s.DeletionTimestamp = &metav1.Time{} }, "its deletion"},
		"another state":               {func(s *v1alpha1.Server) { s.Status.State = v1alpha1.StateError }, "the state"},
		"the same state once more":    {func(s *v1alpha1.Server) { s.Status.Lifecycle.Entry = 4 }, "the state"},
		"no record of the lifecycle":  {func(s *v1alpha1.Server) { s.Status.Lifecycle = nil }, "the state"},
		"one that is to be left":      {annotated(v1alpha1.OperationAnnotation, v1alpha1.OperationIgnore), "the ignore annotation"},
		"one that a claim was given":  {func(s *v1alpha1.Server) { s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{} }, "the claim reference"},
		"one that a claim took":       {annotated(v1alpha1.ClaimUIDAnnotation, "9"), "the holder"},
		"one whose claim was let go":  {annotated(v1alpha1.ReleasedClaimAnnotation, "9"), "the release record"},
		"a doubt after a restore":     {annotated(v1alpha1.RestoredDoubtAnnotation, ""), "the doubt after a restore"},
		"a consent":                   {annotated(v1alpha1.ConsentAnnotation, v1alpha1.ConsentTakeOver), "the consent"},
		"another machine":             {func(s *v1alpha1.Server) { s.Spec.SystemUUID = "v" }, "the system UUID"},
		"another place at its BMC":    {func(s *v1alpha1.Server) { s.Spec.SystemURI = "/x" }, "its BMC"},
		"what becomes of it":          {func(s *v1alpha1.Server) { s.Spec.ReclaimPolicy = "Recycle" }, "the reclaim policy"},
		"a maintenance that holds it": {annotated(v1alpha1.MaintenanceUIDAnnotation, "9"), "the grant of the maintenance"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Server(server(nil), server(c.now)); got != c.want {
				t.Errorf("Server() = %q, want %q", got, c.want)
			}
		})
	}
}

func TestClaimDiffers(t *testing.T) {
	claim := func(uid string, power v1alpha1.Power) *v1alpha1.ServerClaim {
		c := &v1alpha1.ServerClaim{}
		c.UID, c.Spec.Power = "1", power
		if uid != "" {
			c.UID = "2"
		}
		return c
	}
	released := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.ReleasedClaimAnnotation: "1"}}}
	on := claim("", v1alpha1.PowerOn)
	for name, c := range map[string]struct {
		was, now *v1alpha1.ServerClaim
		server   *v1alpha1.Server
		want     bool
	}{
		"none, then and now":                      {nil, nil, &v1alpha1.Server{}, false},
		"the same":                                {on, claim("", v1alpha1.PowerOn), &v1alpha1.Server{}, false},
		"one that the cache did not show":         {nil, on, &v1alpha1.Server{}, true},
		"one that is gone":                        {on, nil, &v1alpha1.Server{}, true},
		"one that is gone and whose end is known": {on, nil, released, false},
		"another of that name":                    {on, claim("2", v1alpha1.PowerOn), released, true},
		"another power":                           {on, claim("", v1alpha1.PowerOff), &v1alpha1.Server{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ClaimDiffers(c.was, c.now, c.server); got != c.want {
				t.Errorf("ClaimDiffers() = %v, want %v", got, c.want)
			}
		})
	}
}

func TestCannotErase(t *testing.T) {
	for name, c := range map[string]struct {
		record *v1alpha1.LifecycleStatus
		want   bool
	}{
		"no record":              {nil, false},
		"no credential":          {&v1alpha1.LifecycleStatus{Entry: 1}, false},
		"an agent that inspects": {&v1alpha1.LifecycleStatus{Entry: 1, Credential: &v1alpha1.ProbeCredential{Purpose: v1alpha1.ProbePurposeProbe, Entry: 1}}, true},
		"an agent of an earlier entry": {&v1alpha1.LifecycleStatus{Entry: 2,
			Credential: &v1alpha1.ProbeCredential{Purpose: v1alpha1.ProbePurposeProbe, Entry: 1}}, false},
		"an agent that erases": {&v1alpha1.LifecycleStatus{Entry: 1, Credential: &v1alpha1.ProbeCredential{Purpose: v1alpha1.ProbePurposeWipe, Entry: 1}}, false},
		"one that holds data": {&v1alpha1.LifecycleStatus{Entry: 1, Marks: []string{policies.MarkDirty},
			Credential: &v1alpha1.ProbeCredential{Purpose: v1alpha1.ProbePurposeProbe, Entry: 1}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.Server{}
			s.Status.Lifecycle = c.record
			if got := CannotErase(s); got != c.want {
				t.Errorf("CannotErase() = %v, want %v", got, c.want)
			}
		})
	}
}

func TestAReleaseThatWasTakenBackIsNews(t *testing.T) {
	record := func(uid string) *v1alpha1.Server {
		s := &v1alpha1.Server{}
		s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 3}
		if uid != "" {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ReleasedClaimAnnotation, uid)
		}
		return s
	}
	for name, c := range map[string]struct {
		was, now, want string
	}{
		"it stands":                   {"9", "9", ""},
		"undo-release took it back":   {"9", "", "the release record"},
		"it came":                     {"", "9", "the release record"},
		"it is that of another claim": {"9", "8", "the release record"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Server(record(c.was), record(c.now)); got != c.want {
				t.Errorf("Server() = %q, want %q", got, c.want)
			}
		})
	}
}
