// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies/index"
)

const (
	// tellFailureAgain is how long nothing more is said of a server that the policy fails for, whatever it fails with: each claim that
	// waits may have it fail at another place.
	tellFailureAgain = 15 * time.Minute
	// mostFailures bounds the servers that are told of in that time.
	mostFailures = 1024
)

// tellFailures says of servers that the policy fails for them, for else nobody who runs the fleet would hear of it: claims get other servers,
// and what they are told names none. It tells whoever may read Events what rule it is, and the log also what it failed on,
// which may be a claim's or a server's label. Where it failed for all that it was asked about, that may be for the claim's sake, and one
// line in the log is all. Only the loop calls it.
func (s *Scheduler) tellFailures(ctx context.Context, failures []selection.CandidateError, all bool) {
	const what = "the selection policy cannot be evaluated for a server, which such claims do not get"
	if all {
		if len(failures) > 0 && s.failures.Due("", s.now()) {
			logf.FromContext(ctx).Error(failures[0].Err, what, "server", failures[0].Server)
		}
		return
	}
	for _, failed := range failures {
		if !s.failures.Due(failed.Server, s.now()) {
			continue
		}
		logf.FromContext(ctx).Error(failed.Err, what, "server", failed.Server)
		if e := s.fleet.Get(failed.Server); e != nil && s.recorder != nil {
			s.recorder.Eventf(index.Server(e), nil, corev1.EventTypeWarning, v1alpha1.ReasonSelectionPolicyFailed, "Select",
				"%s; claims for which that is so do not get this server", selection.Anonymous(failed))
		}
	}
}
