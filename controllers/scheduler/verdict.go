// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// Verdict says why a claim has no server yet. It carries codes and counts, and no names of servers or of other claims.
type Verdict struct {
	// Reason is one of Reasons.
	Reason  string
	Message string
	// counts are the rejections by code.
	counts map[string]int
}

// Reasons lists every reason of a Verdict, for documentation and for metrics that begin at zero.
func Reasons() []string {
	return []string{
		v1alpha1.ReasonPending, v1alpha1.ReasonNoServers, v1alpha1.ReasonNoneClaimable, v1alpha1.ReasonPolicyRejected,
		v1alpha1.ReasonServerNotFound, v1alpha1.ReasonServerTaken, v1alpha1.ReasonClaimDenied,
		v1alpha1.ReasonInvalidSelector, v1alpha1.ReasonGuardError,
		v1alpha1.ReasonBindingRefused, v1alpha1.ReasonQuotaExceeded, v1alpha1.ReasonInvalidPlacement, v1alpha1.ReasonGangWaiting,
	}
}

// IsFinal says that waiting alone will not help.
func (v Verdict) IsFinal() bool {
	switch v.Reason {
	case v1alpha1.ReasonInvalidSelector, v1alpha1.ReasonServerNotFound, v1alpha1.ReasonGuardError, v1alpha1.ReasonBindingRefused,
		v1alpha1.ReasonInvalidPlacement, v1alpha1.ReasonClaimDenied:
		return true
	}
	return false
}

// worthRewriting is how long a verdict stands when nothing but its counts has changed: in a busy fleet they change all
// the time, and each change would be a write for each claim that waits.
const worthRewriting = 30 * time.Second

// verdicts is the last word on each claim that waits. The metric of pending claims follows it.
type verdicts struct {
	mu  sync.Mutex
	all map[types.UID]given
}

type given struct {
	Verdict
	at time.Time
}

func newVerdicts() *verdicts { return &verdicts{all: map[types.UID]given{}} }

// give stores a verdict. changed says that the claim's condition has to follow; again is when to give the same verdict
// once more, because only its counts have changed and it is too early to say so; 0 for never. Nothing is stored for a claim
// that isOpen denies: whoever closes a claim does that first and drops the verdict then, so that none is left behind.
func (v *verdicts) give(uid types.UID, verdict Verdict, now time.Time, isOpen func() bool) (changed bool, again time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !isOpen() {
		return false, 0
	}
	last, ok := v.all[uid]
	switch {
	case ok && last.Reason == verdict.Reason && last.Message == verdict.Message:
		return false, 0
	case ok && last.Reason == verdict.Reason && len(last.counts) > 0 && sameCodes(last.counts, verdict.counts):
		if age := now.Sub(last.at); age < worthRewriting {
			return false, worthRewriting - age
		}
	}
	if ok {
		claimsPending.WithLabelValues(last.Reason).Dec()
	}
	claimsPending.WithLabelValues(verdict.Reason).Inc()
	v.all[uid] = given{verdict, now}
	return true, 0
}

func sameCodes(a, b map[string]int) bool {
	return maps.EqualFunc(a, b, func(int, int) bool { return true })
}

func (v *verdicts) get(uid types.UID) (Verdict, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	last, ok := v.all[uid]
	return last.Verdict, ok
}

func (v *verdicts) drop(uid types.UID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if last, ok := v.all[uid]; ok {
		claimsPending.WithLabelValues(last.Reason).Dec()
		delete(v.all, uid)
	}
}
