// SPDX-License-Identifier: Apache-2.0

// Package leading says whether this process leads at this moment. The leader election says so only after a while: a process that
// was stopped and goes on takes itself for the leader until its next renewal fails.
package leading

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Leader is this process as the leader election knows it. It implements manager.Runnable and manager.LeaderElectionRunnable.
type Leader struct {
	// Reader reads past the cache.
	Reader client.Reader
	// Lease is the object of the leader election, and Identity what this process writes there as its holder.
	Lease    types.NamespacedName
	Identity string
	// Lasts is how long a renewal of the Lease counts.
	Lasts time.Duration
	// Exit ends the process at once.
	Exit func(why string)
	// Now is the clock; time.Now where it is nil.
	Now func() time.Time

	mu sync.Mutex
	// ran is when this process was last seen to run; zero before it leads. Its monotonic reading counts.
	ran time.Time
}

// tick is the time between two looks at whether the process runs.
const tick = time.Second

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (l *Leader) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable: it ends the process that stood still for longer than its renewal counts.
func (l *Leader) Start(ctx context.Context) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		l.runs()
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Fence says why a write to a BMC is not sent: the process does not lead any more, or that cannot be read. It reads the Lease
// once, past the cache.
func (l *Leader) Fence(ctx context.Context) error {
	l.runs()
	lease := &coordinationv1.Lease{}
	err := l.Reader.Get(ctx, l.Lease, lease)
	if err != nil {
		return fmt.Errorf("not asked, because Lease %s could not be read: %w", l.Lease, err)
	}
	if why := Lost(lease, l.Identity, l.now(), l.Lasts); why != "" {
		return fmt.Errorf("not asked, because Lease %s %s", l.Lease, why)
	}
	return nil
}

// Lost says why a Lease does not show that a process leads; empty where it does. The holder wrote the time of the renewal itself, so
// the clocks of other machines do not count. A time ahead of the clock tells no age: the clock was set back.
func Lost(lease *coordinationv1.Lease, identity string, now time.Time, lasts time.Duration) string {
	if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder != identity {
		return fmt.Sprintf("is held by %q, and not by this process", holder)
	}
	if lease.Spec.RenewTime == nil {
		return "was never renewed"
	}
	switch age := now.Round(0).Sub(lease.Spec.RenewTime.Time); {
	case age < 0:
		return fmt.Sprintf("was renewed %s ahead of the clock of this process", -age)
	case age >= lasts:
		return fmt.Sprintf("was renewed %s ago, and lasts %s", age.Round(time.Millisecond), lasts)
	}
	return ""
}

// runs notes that the process runs, and ends it where it stood still too long since it last did.
func (l *Leader) runs() {
	now := l.now()
	l.mu.Lock()
	stood := now.Sub(l.ran)
	if l.ran.IsZero() {
		stood = 0
	}
	l.ran = now
	l.mu.Unlock()
	if stood >= l.Lasts {
		l.Exit(fmt.Sprintf("this process stood still for %s, and its lease lasts %s: another one may lead", stood.Round(time.Millisecond), l.Lasts))
	}
}

func (l *Leader) now() time.Time {
	if l.Now != nil {
		return l.Now()
	}
	return time.Now()
}
