// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/scheduler"
)

// What a client may rely on is written at once: that a claim is bound, that its machine is as asked, that somebody has to
// act, and the end of each. What only says how far things are is written once it has been so for a while: as a rule the
// next thing comes before that, and each write saved is one less for the API server.
const (
	// refusalQuiet is how long a new claim need not say why it has no server.
	refusalQuiet = 1500 * time.Millisecond
	// progressQuiet is how long a claim need not say that it waits for its turn, that its server is being reserved, or how
	// far the boot of its machine is.
	progressQuiet = 10 * time.Second
	// smoothQuiet is progressQuiet of a claim for which nothing is known to be in the way: the next thing comes by itself, only
	// later where many claims are served at once, and then what is not written leaves more for them.
	smoothQuiet = 30 * time.Second
	// bindingQuiet is when to look again at a claim for which a server is being written.
	bindingQuiet = time.Second
)

// quiet is how long what is known of a claim need not be written; 0 where it has to be, or is written already.
func (f facts) quiet(s standing, now time.Time) time.Duration {
	told := meta.FindStatusCondition(f.claim.Status.Conditions, v1alpha1.ConditionReady)
	if left := f.flapQuiet(s, told, now); left > 0 {
		return left
	}
	switch {
	case s.silent, s.ready, s.stalled, s.bound != (f.claim.Status.Phase == v1alpha1.PhaseBound), told != nil && told.Status == metav1.ConditionTrue:
		return 0
	case told != nil && told.Reason == s.reason && told.Message == s.message && told.ObservedGeneration == f.claim.Generation:
		return 0
	case f.binding:
		return bindingQuiet
	case s.reason == v1alpha1.ReasonBMCUnreachable:
		return f.behindQuiet(now)
	case s.bound:
		return f.bootingQuiet(s, told, now)
	case s.reason == v1alpha1.ReasonReserving:
		return f.reservingQuiet(told, now)
	case told == nil && f.verdict == nil:
		return left(f.claim.CreationTimestamp.Time, progressQuiet, now)
	case told == nil:
		return left(f.claim.CreationTimestamp.Time, refusalQuiet, now)
	}
	return 0
}

// reservingQuiet counts from when the server was chosen. A claim that still says why it had none says what does not hold any more.
func (f facts) reservingQuiet(told *metav1.Condition, now time.Time) time.Duration {
	binding, ok := scheduler.BindingOf(f.server)
	switch {
	case !ok || binding.At.IsZero():
		return 0
	case heldByPeople(f.server):
		return left(binding.At, refusalQuiet, now)
	case told != nil:
		return left(binding.At, progressQuiet, now)
	}
	return left(binding.At, quietFor(Obstacle(f.server)), now)
}

// heldByPeople says that what is to be done for a server is held back until somebody lifts that, so that nothing better comes soon.
func heldByPeople(s *v1alpha1.Server) bool {
	held := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionWithheld)
	if held == nil || held.Status != metav1.ConditionTrue {
		return false
	}
	return held.Reason == v1alpha1.ReasonFrozen || held.Reason == v1alpha1.ReasonBreakerTripped || held.Reason == v1alpha1.ReasonObserveOnly
}

// bootingQuiet counts from when the claim began to say that its machine boots, for this spec.
func (f facts) bootingQuiet(s standing, told *metav1.Condition, now time.Time) time.Duration {
	booting := s.reason == v1alpha1.ReasonBooting || s.reason == v1alpha1.ReasonPowerUnknown
	if !booting || told == nil || told.Reason != v1alpha1.ReasonBooting || told.ObservedGeneration != f.claim.Generation {
		return 0
	}
	since := told.LastTransitionTime.Time
	if bound := meta.FindStatusCondition(f.claim.Status.Conditions, v1alpha1.ConditionBound); bound != nil && bound.LastTransitionTime.After(since) {
		since = bound.LastTransitionTime.Time
	}
	if s.reason == v1alpha1.ReasonPowerUnknown {
		return left(since, progressQuiet, now)
	}
	return left(since, quietFor(hindrance(f.server)), now)
}

// quietFor is how long a claim need not say how far it is, by what is known to be in its way.
func quietFor(inTheWay string) time.Duration {
	if inTheWay == "" {
		return smoothQuiet
	}
	return progressQuiet
}

// left is how much of a span that began at some time is left. One that begins in the future is over: somebody's clock is
// wrong, and must not keep a claim silent.
func left(since time.Time, span time.Duration, now time.Time) time.Duration {
	passed := now.Sub(since)
	if passed < 0 {
		return 0
	}
	return max(0, span-passed)
}

// flapPause is how long Ready stays as it is after it changed, where nothing but the boot operator changed its mind: clients
// act on Ready, and a boot operator that flaps must not make them flap.
const flapPause = 10 * time.Second

// turn is one change of Ready of a claim.
type turn struct {
	claim types.UID
	at    time.Time
	// unprepared says that Ready became False because of the boot operator alone, at a generation of the claim.
	unprepared bool
	generation int64
}

// flapQuiet is how long Ready stays as it is told. The first Ready of a spec never waits, and what is not the boot operator's
// doing does not either.
func (f facts) flapQuiet(s standing, told *metav1.Condition, now time.Time) time.Duration {
	if told == nil || told.ObservedGeneration != f.claim.Generation || s.bound != (f.claim.Status.Phase == v1alpha1.PhaseBound) {
		return 0
	}
	switch wasReady := told.Status == metav1.ConditionTrue; {
	case wasReady && s.unprepared:
		return left(f.toldAt(told), flapPause, now)
	case !wasReady && s.ready && f.turned.unprepared && f.turned.generation == f.claim.Generation:
		return left(f.turned.at, flapPause, now)
	}
	return 0
}

// toldAt is when Ready changed last. What is stored is cut to seconds, so that what this process remembers is better.
func (f facts) toldAt(told *metav1.Condition) time.Time {
	if f.turned.at.Truncate(time.Second).Equal(told.LastTransitionTime.Time) {
		return f.turned.at
	}
	return told.LastTransitionTime.Time
}

// turns remembers the last change of Ready of each claim. Without it, as after a restart, Ready may come back early.
type turns struct{ byName sync.Map }

// of is the last change of a claim's Ready; the zero value where none is known.
func (t *turns) of(c *v1alpha1.ServerClaim) turn {
	kept, _ := t.byName.Load(client.ObjectKeyFromObject(c))
	if last, ok := kept.(turn); ok && last.claim == c.UID {
		return last
	}
	return turn{}
}

func (t *turns) keep(c *v1alpha1.ServerClaim, last turn) {
	t.byName.Store(client.ObjectKeyFromObject(c), last)
}

func (t *turns) forget(name types.NamespacedName) { t.byName.Delete(name) }
