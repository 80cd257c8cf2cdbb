// SPDX-License-Identifier: Apache-2.0

// Package heartbeat tells how long no manager was running, so that no deadline is held against that time.
package heartbeat

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalaw/metalaw/policies"
)

const (
	leaseName = "metalaw-heartbeat"
	interval  = 10 * time.Second
)

// Heartbeat renews a lease while this manager leads. It implements manager.Runnable and manager.LeaderElectionRunnable.
type Heartbeat struct {
	Client    client.Client
	Reader    client.Reader
	Namespace string
	// Now is the clock; time.Now where it is nil.
	Now func() time.Time

	once   sync.Once
	outage policies.Outage
}

// Outage is the time between the last heartbeat of a former leader and the first call here; zero where there was no
// former leader. The first call reads the lease, which takes one request; a lease that cannot be read counts as no
// outage, which at worst lets a deadline fire early into a state that is safe.
func (h *Heartbeat) Outage() policies.Outage {
	h.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		lease := &coordinationv1.Lease{}
		err := h.Reader.Get(ctx, h.key(), lease)
		if err == nil && lease.Spec.RenewTime != nil {
			h.outage = policies.Outage{From: lease.Spec.RenewTime.Time, Until: h.now()}
		} else if client.IgnoreNotFound(err) != nil {
			logf.Log.WithName("heartbeat").Error(err, "the former leader's last heartbeat cannot be read; its absence is not credited to deadlines")
		}
	})
	return h.outage
}

func (h *Heartbeat) now() time.Time {
	if h.Now != nil {
		return h.Now()
	}
	return time.Now()
}

func (h *Heartbeat) key() types.NamespacedName {
	return types.NamespacedName{Namespace: h.Namespace, Name: leaseName}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (h *Heartbeat) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (h *Heartbeat) Start(ctx context.Context) error {
	h.Outage()
	log := logf.FromContext(ctx).WithName("heartbeat")
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if err := h.beat(ctx); err != nil && ctx.Err() == nil {
			log.Error(err, "the heartbeat could not be renewed")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (h *Heartbeat) beat(ctx context.Context) error {
	now := metav1.NewMicroTime(h.now())
	lease := &coordinationv1.Lease{}
	err := h.Reader.Get(ctx, h.key(), lease)
	if apierrors.IsNotFound(err) {
		lease.Namespace, lease.Name = h.Namespace, leaseName
		lease.Spec.RenewTime = &now
		return h.Client.Create(ctx, lease)
	}
	if err != nil {
		return err
	}
	lease.Spec.RenewTime = &now
	return h.Client.Update(ctx, lease)
}
