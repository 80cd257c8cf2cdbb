// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalaw/metalaw/internal/counted"
)

// countedAnnotation on the lease is counted time at the last heartbeat.
const countedAnnotation = "policy.metalaw.dev/counted"

// count continues from what a lease that was read holds, and has it hold what is counted by now.
func (h *Heartbeat) count(lease *coordinationv1.Lease) {
	if h.Counted == nil {
		return
	}
	h.Counted.Continue(counted.Parse(lease.Annotations[countedAnnotation]))
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, countedAnnotation, h.Counted.Now().String())
}

// Standby reads the lease once as soon as its process runs, so that the wait for its turn to lead counts. It implements
// manager.Runnable and manager.LeaderElectionRunnable.
type Standby struct{ *Heartbeat }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (Standby) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable. A lease that cannot be read, or is not there, only costs the time of the wait.
func (s Standby) Start(ctx context.Context) error {
	if s.Counted == nil {
		return nil
	}
	lease := &coordinationv1.Lease{}
	if err := s.Reader.Get(ctx, s.key(), lease); err != nil {
		log := logf.FromContext(ctx).WithName("heartbeat")
		log.V(1).Info("the wait for leadership is not counted", "cause", err.Error())
		return nil
	}
	s.Counted.Await(counted.Parse(lease.Annotations[countedAnnotation]))
	return nil
}
