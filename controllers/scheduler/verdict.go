// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies/why"
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

// count is a tally of the fleet for one claim.
type count struct {
	total, matching int
	byCode          map[string]int
}

// String is like "12 of 40 servers match: rack full 7, memory 5", the most frequent code first.
func (c count) String() string {
	text := fmt.Sprintf("%d of %d servers match", c.matching, c.total)
	codes := slices.SortedFunc(maps.Keys(c.byCode), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.byCode[b], c.byCode[a]), cmp.Compare(a, b))
	})
	parts := make([]string, len(codes))
	for i, code := range codes {
		parts[i] = fmt.Sprintf("%s %d", code, c.byCode[code])
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// noServer is the verdict for a claim that the hard contract, its placement or the policy left without a server.
func noServer(named bool, c count, s step) Verdict {
	reason := reasonOf(named, c, s)
	if len(s.rejected)+len(s.misplaced)+s.unjudged > 0 && c.matching > 0 {
		c.byCode = maps.Clone(c.byCode)
		if s.unjudged > 0 {
			c.byCode[selection.CodePolicyError] = s.unjudged
		}
		for _, counts := range []map[string]int{s.rejected, s.misplaced} {
			for code, n := range counts {
				c.byCode[code] += n
			}
		}
	}
	message := c.String()
	switch reason {
	case v1alpha1.ReasonGuardError:
		if s.unknown != "" { // the words for a gang have it already
			message += "; " + s.unknown
		}
	case v1alpha1.ReasonServerTaken:
		message = "the server that spec.serverRef names is held by another claim; " +
			"this claim gets it once that one has ended and the server is Available"
	}
	return Verdict{Reason: reason, Message: message, counts: c.byCode}
}

func reasonOf(named bool, c count, s step) string {
	switch {
	case named && c.byCode[selection.CodeClaimed] > 0:
		return v1alpha1.ReasonServerTaken
	case c.matching == 0:
		return v1alpha1.ReasonNoServers
	case s.unjudged > 0 && !mayPass(c.byCode, s): // nothing else is to be waited for
		return v1alpha1.ReasonGuardError
	case len(s.rejected) > 0 && s.misplaced[placement.CodeSpread] == 0: // the policy was not asked about what the spread leaves out
		return v1alpha1.ReasonPolicyRejected
	default:
		return v1alpha1.ReasonNoneClaimable
	}
}

// mayPass says that some server may be had though nobody acts: once it is ready or another claim ends, or the policy thinks otherwise
// of it.
func mayPass(byCode map[string]int, s step) bool {
	for _, counts := range []map[string]int{byCode, s.misplaced} {
		for code, n := range counts {
			if passing := why.PassingOf(code); n > 0 && (passing == why.ByItself || passing == why.ByOthers) {
				return true
			}
		}
	}
	return len(s.rejected) > 0
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
