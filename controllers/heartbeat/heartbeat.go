// SPDX-License-Identifier: Apache-2.0

// Package heartbeat tells how long no manager was running, so that no deadline is held against that time, and whether the
// last one ended in order.
package heartbeat

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalaw/metalaw/policies"
)

const (
	leaseName = "metalaw-heartbeat"
	interval  = 10 * time.Second
)

// Heartbeat renews a lease while this manager leads, and gives it back when it has ended in order. It implements
// manager.Runnable and manager.LeaderElectionRunnable.
type Heartbeat struct {
	Client    client.Client
	Reader    client.Reader
	Namespace string
	// Now is the clock; time.Now where it is nil.
	Now func() time.Time

	// identity tells this process from others.
	identity string
	once     sync.Once
	outage   policies.Outage
	killed   bool

	mu       sync.Mutex
	absences []absence
	beaten   time.Time // the last heartbeat of this process
}

// Outage is the time between the last heartbeat of a former leader and the first call here; zero where there was no
// former leader. Whoever runs controllers starts the Heartbeat with them, and not before, so that what they wait for counts as
// well. The first call reads the lease and takes it, which takes two requests; a lease that cannot be read counts
// as no outage, which at worst lets a deadline fire early into a state that is safe.
func (h *Heartbeat) Outage() policies.Outage {
	h.once.Do(h.take)
	return h.outage
}

// FormerWasKilled says that the former leader did not give the lease back: it was killed, or still runs somewhere. It
// asks as Outage does; a lease that cannot be read or taken counts as not given back.
func (h *Heartbeat) FormerWasKilled() bool {
	h.once.Do(h.take)
	return h.killed
}

// take reads what the former leader left, and holds the lease from then on.
func (h *Heartbeat) take() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	h.identity = string(uuid.NewUUID())
	lease := &coordinationv1.Lease{}
	err := h.Reader.Get(ctx, h.key(), lease)
	if err == nil && lease.Spec.RenewTime != nil {
		h.outage = policies.Outage{From: lease.Spec.RenewTime.Time, Until: h.now()}
		h.note(lease, h.outage.Until)
	} else if client.IgnoreNotFound(err) != nil {
		logf.Log.WithName("heartbeat").Error(err, "the former leader's last heartbeat cannot be read; its absence is not credited to deadlines")
	}
	h.killed = client.IgnoreNotFound(err) != nil || ptr.Deref(lease.Spec.HolderIdentity, "") != ""
	if err := h.beat(ctx); err != nil {
		h.killed = true
	}
}

// Leave gives the lease back, as the last thing that a leader does that ends in order. A lease that somebody else has
// taken stays as it is.
func (h *Heartbeat) Leave(ctx context.Context) error {
	lease := &coordinationv1.Lease{}
	if err := h.Reader.Get(ctx, h.key(), lease); err != nil {
		return client.IgnoreNotFound(err)
	}
	if h.identity == "" || ptr.Deref(lease.Spec.HolderIdentity, "") != h.identity {
		return nil
	}
	lease.Spec.HolderIdentity = nil
	return h.Client.Update(ctx, lease)
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
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := h.beat(ctx); err != nil && ctx.Err() == nil {
			log.Error(err, "the heartbeat could not be renewed")
		}
	}
}

func (h *Heartbeat) beat(ctx context.Context) error {
	now := metav1.NewMicroTime(h.now())
	lease := &coordinationv1.Lease{}
	err := h.Reader.Get(ctx, h.key(), lease)
	if apierrors.IsNotFound(err) {
		lease.Namespace, lease.Name = h.Namespace, leaseName
		lease.Spec.RenewTime, lease.Spec.HolderIdentity = &now, &h.identity
		err = h.Client.Create(ctx, lease)
	} else if err == nil {
		h.note(lease, now.Time)
		lease.Spec.RenewTime, lease.Spec.HolderIdentity = &now, &h.identity
		err = h.Client.Update(ctx, lease)
	}
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.beaten = now.Time
	return nil
}
