// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/selection"
)

const (
	// tellFailureAgain is how long what a policy fails with for a server is not said again.
	tellFailureAgain = 15 * time.Minute
	// mostFailures bounds the servers that this is remembered of.
	mostFailures = 1024
)

// policyFailures is when it was last said of a server that the selection policy fails for it, and with what. Else nobody who runs the fleet
// would hear of it: claims get other servers, and what they are told names none.
type policyFailures map[string]saidFailure

type saidFailure struct {
	message string
	at      time.Time
}

// isNew says that a failure is to be told, and remembers it.
func (f policyFailures) isNew(server, message string, now time.Time) bool {
	if said, ok := f[server]; ok && said.message == message && now.Sub(said.at) < tellFailureAgain {
		return false
	}
	if len(f) >= mostFailures {
		clear(f)
	}
	f[server] = saidFailure{message, now}
	return true
}

// tellFailure says of a server that the policy fails for it: whoever may read Events what rule it is, and the log also what it failed on,
// which may be a claim's or a server's label. Only the loop calls it.
func (s *Scheduler) tellFailure(ctx context.Context, failed selection.CandidateError) {
	message := selection.Anonymous(failed)
	if !s.failures.isNew(failed.Server, message, s.now()) {
		return
	}
	logf.FromContext(ctx).Error(failed.Err, "the selection policy cannot be evaluated for a server, which no claim gets", "server", failed.Server)
	if e := s.fleet.Get(failed.Server); e != nil && s.recorder != nil {
		s.recorder.Eventf(e.Server, nil, corev1.EventTypeWarning, v1alpha1.ReasonSelectionPolicyFailed, "Select", "%s; no claim gets this server until it can be", message)
	}
}
