// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/policies"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// newScope is a scope of a server in a state, in entry 7, under the default bundle.
func newScope(t *testing.T, state v1alpha1.ServerState, change ...func(*scope)) *scope {
	t.Helper()
	b, err := defaultBundle()
	if err != nil {
		t.Fatal(err)
	}
	s := newSubject(Options{Cache: newCache(nil, func(string) {}), Now: func() time.Time { return noon }})
	v := s.scope(&v1alpha1.Server{})
	v.governs, v.seen.Bundle, v.seen.Facts, v.seen.Settings = rollout.Governance{Bundle: b}, b, &policies.Facts{}, b.Settings
	v.server.Annotations = map[string]string{}
	v.server.Status.State = state
	v.server.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 7, EnteredAt: metav1.NewMicroTime(noon.Add(-time.Hour)), Marks: []string{"Managed"}}
	for _, c := range change {
		c(v)
	}
	return v
}
