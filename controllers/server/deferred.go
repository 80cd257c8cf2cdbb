// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/seen"
	"github.com/metalaw/metalaw/controllers/server/status"
	"github.com/metalaw/metalaw/policies"
)

// defers is how long a status may wait for the next write, if it differs only in what status.Promptly leaves out. The
// next reconcile finds and stores what is not stored by then.
func (s *subject) defers(before, after *v1alpha1.Server) time.Duration {
	if !equality.Semantic.DeepEqual(before.Status, status.Promptly(before, after)) {
		return 0
	}
	now, entry := s.Now(), int64(0)
	if l := after.Status.Lifecycle; l != nil {
		entry = l.Entry
	}
	id := fmt.Sprintf("%d/%d", entry, after.Generation)
	first := s.memory.of(after.Name).Seen.First(seen.Deferred, id, policies.Instant{Now: now})
	return max(0, status.WorthTelling-now.Sub(first))
}
