// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/trigger"
	"github.com/metalaw/metalaw/policies/index"
)

const (
	// firstWait is when to look again after every server on a claim's list had changed under our hands.
	firstWait = 50 * time.Millisecond
	// longestWait bounds the waits for a watch that lags; when it shows another version, that is tried at once.
	longestWait = 5 * time.Second
	// longestDenied bounds the waits after a write that the API server denies: most likely it denies the next one too.
	longestDenied = time.Minute
	// maxTries is how many writes for one claim may come to nothing before it has to wait.
	maxTries = 16
	// mostTried bounds how many servers are remembered of one claim.
	mostTried = 1024
)

// backoff keeps claims from repeating writes that came to nothing, for longer and longer. Only the loop uses it.
type backoff map[types.UID]*failures

// failures is what was tried for one claim in vain.
type failures struct {
	count int
	until time.Time
	// again says that the claim is to be looked at once the wait is over.
	again bool
	// tried is the version that came to nothing, by server, until all were tried.
	tried map[string]string
}

// of is what was tried for a claim, to be changed.
func (p backoff) of(uid types.UID) *failures {
	if p[uid] == nil {
		p[uid] = &failures{}
	}
	return p[uid]
}

// versions names what a write is decided on: another version of either is worth another write.
func versions(c *v1alpha1.ServerClaim, e *index.Entry) string {
	return fmt.Sprintf("%s %s %d", index.Server(e).UID, index.Server(e).ResourceVersion, c.Generation)
}

// spent says that this very write came to nothing. It is worth another try only once there is no other server.
func (p backoff) spent(c *v1alpha1.ServerClaim, e *index.Entry) bool {
	return c != nil && p.hasTried(c.UID) && p[c.UID].tried[e.Name()] == versions(c, e)
}

// holds says that this very write came to nothing and is not due yet.
func (p backoff) holds(c *v1alpha1.ServerClaim, e *index.Entry, now time.Time) bool {
	return p.wait(c.UID, now) > 0 && p.spent(c, e)
}

// hasTried says that some write for a claim came to nothing.
func (p backoff) hasTried(uid types.UID) bool { return p[uid] != nil && len(p[uid].tried) > 0 }

// anew has what came to nothing tried again from the first, once the claim need not wait. It says whether there is any.
func (p backoff) anew(uid types.UID, now time.Time) bool {
	if !p.hasTried(uid) || p.wait(uid, now) > 0 {
		return false
	}
	p[uid].tried = nil
	return true
}

// tried remembers a write that came to nothing.
func (p backoff) tried(c *v1alpha1.ServerClaim, e *index.Entry) {
	f := p.of(c.UID)
	if f.tried == nil || len(f.tried) >= mostTried {
		f.tried = map[string]string{}
	}
	f.tried[e.Name()] = versions(c, e)
}

// lost begins the next wait of a claim, each twice the one before.
func (p backoff) lost(uid types.UID, now time.Time, longest time.Duration) {
	f := p.of(uid)
	wait := min(firstWait<<min(f.count, 16), longest)
	f.count++
	f.until, f.again = now.Add(wait), true
}

// retry has a claim looked at again once its wait is over; it says no where it does not wait.
func (p backoff) retry(uid types.UID, now time.Time) bool {
	if p.wait(uid, now) == 0 {
		return false
	}
	p[uid].again = true
	return true
}

// wake has the next pass look at the claims whose wait is over.
func (p backoff) wake(pending *pending, now time.Time) {
	for uid, f := range p {
		if f.again && !now.Before(f.until) {
			f.again = false
			pending.wake(uid)
		}
	}
}

// next is for how long there is nothing to wait for; 0 where nothing waits.
func (p backoff) next(now time.Time) time.Duration {
	least := time.Duration(0)
	for _, f := range p {
		if f.again {
			least = trigger.Earlier(least, max(f.until.Sub(now), time.Millisecond))
		}
	}
	return least
}

// wait is for how long a claim has to wait; 0 where it need not.
func (p backoff) wait(uid types.UID, now time.Time) time.Duration {
	if f := p[uid]; f != nil {
		return max(0, f.until.Sub(now))
	}
	return 0
}

// keep forgets the claims that are no longer open.
func (p backoff) keep(isOpen func(types.UID) bool) {
	maps.DeleteFunc(p, func(uid types.UID, _ *failures) bool { return !isOpen(uid) })
}
