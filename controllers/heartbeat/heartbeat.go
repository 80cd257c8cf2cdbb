// SPDX-License-Identifier: Apache-2.0

// Package heartbeat tells how long no manager was running, so that no deadline is held against that time, and whether the
// last one ended in order. It keeps counted time from leader to leader.
package heartbeat

import (
	"cmp"
	"context"
	"encoding/json"
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

	"github.com/metalaw/metalaw/internal/counted"
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
	// Counted is continued from the lease, which each heartbeat brings up to date; nil keeps no counted time.
	Counted *counted.Clock
	// Interval is the time between two heartbeats; 0 means ten seconds.
	Interval time.Duration

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
	h.count(lease)
	return h.Client.Update(ctx, lease)
}

// now is the wall clock alone, so that a step of it shows as an absence.
func (h *Heartbeat) now() time.Time {
	if h.Now != nil {
		return h.Now().Round(0)
	}
	return time.Now().Round(0)
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
	tick := time.NewTicker(cmp.Or(h.Interval, interval))
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
		h.count(lease)
		err = h.Client.Create(ctx, lease)
	} else if err == nil {
		h.note(lease, now.Time)
		lease.Spec.RenewTime, lease.Spec.HolderIdentity = &now, &h.identity
		h.count(lease)
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

const (
	// absencesAnnotation on the lease lists the times in which no manager was running.
	absencesAnnotation = "policy.metalaw.dev/absences"
	// longestGap is the longest time between two heartbeats that counts as running: one may be late.
	longestGap = 2 * interval
	// maxAbsences bounds the list; the oldest are forgotten first.
	maxAbsences = 32
)

// absence is a time between two heartbeats that lie too far apart: no manager was running, or it stood still.
type absence struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// Absent is how much of the time between two instants no manager was running, over all that the lease remembers, so that
// what was observed only before and after is not taken for observed in between. The first call asks as Outage does.
func (h *Heartbeat) Absent(from, until time.Time) time.Duration {
	h.Outage()
	h.mu.Lock()
	defer h.mu.Unlock()
	var sum time.Duration
	for _, a := range h.absences {
		sum += a.overlap(from, until)
	}
	if !h.beaten.IsZero() && until.Sub(h.beaten) > longestGap { // this process stood still, and has not noted it yet
		sum += absence{h.beaten, until}.overlap(from, until)
	}
	return sum
}

func (a absence) overlap(from, until time.Time) time.Duration {
	if a.From.After(from) {
		from = a.From
	}
	if a.Until.Before(until) {
		until = a.Until
	}
	return max(0, until.Sub(from))
}

// note brings the list of absences up to date in a lease that is renewed at an instant, before it is.
func (h *Heartbeat) note(lease *coordinationv1.Lease, now time.Time) {
	var list []absence
	if text := lease.Annotations[absencesAnnotation]; text != "" {
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			logf.Log.WithName("heartbeat").Error(err, "the list of former absences cannot be read; it begins anew")
			list = nil
		}
	}
	if last := lease.Spec.RenewTime; last != nil && now.Sub(last.Time) > longestGap {
		list = append(list, absence{last.UTC(), now.UTC()})
		list = list[max(0, len(list)-maxAbsences):]
		if text, err := json.Marshal(list); err == nil {
			metav1.SetMetaDataAnnotation(&lease.ObjectMeta, absencesAnnotation, string(text))
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.absences = list
}
