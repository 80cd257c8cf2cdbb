// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

func TestAReleaseThatWaitsIsExplained(t *testing.T) {
	ended := func(ago time.Duration) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) {
			claimedBy(s)
			s.Annotations[v1alpha1.ReleasedClaimAnnotation] = "uid-web"
			s.Annotations[v1alpha1.ReleasedAtAnnotation] = noon.Add(-ago).Format(time.RFC3339)
			s.Annotations[v1alpha1.ClaimEndedByAnnotation] = "uid-web jane"
			s.Annotations[v1alpha1.ReleasedSpecAnnotation] = `{"metadata":{"namespace":"shop","name":"web"}}`
		}
	}
	for name, c := range map[string]struct {
		server  *v1alpha1.Server
		refused []string
		want    string
	}{
		"within the grace it can be undone": {nodeIn("Reserved", ended(time.Minute)), nil,
			"claim shop/web ended (by jane) at 2026-01-31T11:59:00Z; takes effect at 2026-01-31T12:04:00Z; metalaw server undo-release node-1 takes it back"},
		"without the policy its time is not known": {nodeIn("Reserved", ended(time.Minute)), []string{"PolicyRevision"},
			"claim shop/web ended (by jane) at 2026-01-31T11:59:00Z; metalaw server undo-release node-1 takes it back"},
		"who ended another claim is not named": {nodeIn("Reserved", ended(time.Minute), func(s *v1alpha1.Server) {
			s.Annotations[v1alpha1.ClaimEndedByAnnotation] = "uid-old joe"
		}), nil, "claim shop/web ended at 2026-01-31T11:59:00Z; takes effect at 2026-01-31T12:04:00Z; metalaw server undo-release node-1 takes it back"},
		"after the grace it took effect": {nodeIn("Cleanup", ended(time.Hour), func(s *v1alpha1.Server) { s.Spec.ServerClaimRef = nil }), nil,
			"claim shop/web ended (by jane) at 2026-01-31T11:00:00Z; took effect at 2026-01-31T11:05:00Z"},
		"a manager without a grace did not wait for it": {nodeIn("Cleanup", ended(time.Minute), func(s *v1alpha1.Server) { s.Spec.ServerClaimRef = nil }), nil,
			"claim shop/web ended (by jane) at 2026-01-31T11:59:00Z"},
		"a claim of which nothing was kept": {nodeIn("Cleanup", ended(time.Hour), func(s *v1alpha1.Server) {
			s.Spec.ServerClaimRef = nil
			delete(s.Annotations, v1alpha1.ReleasedSpecAnnotation)
		}), nil, "claim with UID uid-web ended (by jane) at 2026-01-31T11:00:00Z; took effect at 2026-01-31T11:05:00Z"},
		"a claim that did not end": {nodeIn("Reserved", claimedBy), nil, ""},
		"a former claim":           {nodeIn("Reserved", ended(time.Hour), annotated(v1alpha1.ClaimUIDAnnotation, "uid-new")), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := explain(t.Context(), reader(t, c.refused, c.server, aRevision(t)), "node-1", noon)
			if err != nil {
				t.Fatal(err)
			}
			var out, notes bytes.Buffer
			e.text(&terminal.Terminal{Out: &out, Err: &notes, Now: noon})
			_, rest, _ := strings.Cut(out.String(), "\nReleased:    ")
			if got, _, _ := strings.Cut(rest, "\n"); got != c.want {
				t.Errorf("got  %s\nwant %s\n%s", got, c.want, out.String())
			}
		})
	}
}
