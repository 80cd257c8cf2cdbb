// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// flapPause is how long Ready stays as it is after it changed, where nothing but the boot operator changed its mind: clients
// act on Ready, and a boot operator that flaps must not make them flap.
const flapPause = 10 * time.Second

// turn is one change of Ready.
type turn struct {
	at time.Time
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

type keptTurn struct {
	uid types.UID
	turn
}

// of is the last change of a claim's Ready; the zero value where none is known.
func (t *turns) of(c *v1alpha1.ServerClaim) turn {
	if kept, ok := t.byName.Load(client.ObjectKeyFromObject(c)); ok {
		if k, ok := kept.(keptTurn); ok && k.uid == c.UID {
			return k.turn
		}
	}
	return turn{}
}

func (t *turns) keep(c *v1alpha1.ServerClaim, last turn) {
	t.byName.Store(client.ObjectKeyFromObject(c), keptTurn{c.UID, last})
}

func (t *turns) forget(name types.NamespacedName) { t.byName.Delete(name) }
