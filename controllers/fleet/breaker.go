// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/counted"
)

// MinServers is how many servers it takes at least to trip a breaker.
func MinServers(b *policyv1alpha1.Breaker) int32 {
	return ptr.Deref(b.MinServers, defaultMinServers)
}

// defaultMinServers is how many servers it takes to trip a breaker that does not say.
const defaultMinServers = 5

// States are the states that a breaker watches.
func States(b *policyv1alpha1.Breaker) []string {
	if len(b.States) > 0 {
		return b.States
	}
	return defaultStates
}

// defaultStates count where a breaker names none. What a release leads to is among them: a mass deletion of claims by mistake
// looks as one that was meant.
var defaultStates = []string{string(v1alpha1.StateError), string(v1alpha1.StateCleanup)}

// watch is the machines that entered the states which a breaker names, each for as long as the breaker looks back. A nil
// watch sees nothing.
type watch struct {
	breaker *policyv1alpha1.Breaker
	states  []string
	window  time.Duration
	entered counter
	clock   *counted.Clock
}

func newWatch(b *policyv1alpha1.Breaker, clock *counted.Clock) *watch {
	if b == nil {
		return nil
	}
	watched := b.DeepCopy()
	return &watch{breaker: watched, states: States(watched), window: Window(b.WindowSeconds), clock: clock}
}

// enter counts a machine from when it last entered one of the states, unless that was acknowledged.
func (w *watch) enter(name string, m *machine) {
	if w == nil {
		return
	}
	var last moment
	for state, at := range m.entered {
		if at.after(last) && slices.Contains(w.states, state) {
			last = at
		}
	}
	if last.at.IsZero() || (w.breaker.AcknowledgedAt != nil && !last.at.After(w.breaker.AcknowledgedAt.Time)) {
		return
	}
	w.entered.set(name, w.clock.Moment(last.counted, last.at).Add(w.window))
}

func (w *watch) remove(name string) {
	if w != nil {
		w.entered.drop(name)
	}
}

// trips returns the trip that the breaker makes now in a fleet of so many; nil where it makes none.
func (w *watch) trips(of int, now time.Time) *policyv1alpha1.BreakerTrip {
	if w == nil {
		return nil
	}
	entered, _ := w.entered.count("", now)
	if entered < MinServers(w.breaker) || int64(entered)*100 <= int64(w.breaker.MaxPercent)*int64(of) {
		return nil
	}
	return &policyv1alpha1.BreakerTrip{At: metav1.NewMicroTime(now.Truncate(time.Microsecond)), Servers: entered, Of: int32(of)}
}
