// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// trials is a canary with some servers, and the process that reconciles them.
type trials struct {
	*Probation
	t      *testing.T
	api    client.Client
	canary *bundle.Bundle
	at     time.Time
}

// onTrial begins with a canary that may bring so many servers to Error, and halt as many.
func onTrial(t *testing.T, budget int) *trials {
	t.Helper()
	b, err := policies.Default()
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	canary := *b
	canary.Revision = engine.Revision{Name: "canary"}
	canary.Settings.Canary = bundle.Canary{MaxHalts: budget, MaxErrors: budget}
	w := &trials{t: t, canary: &canary, at: epoch, api: fake.NewClientBuilder().WithScheme(scheme).Build()}
	w.restarts()
	w.governs(canaryRule{bundle: &canary, since: epoch})
	return w
}

// restarts begins a new process, which remembers nothing.
func (w *trials) restarts() {
	store := NewStore(nil, storeOf(w.t, "").embedded)
	if w.Probation != nil {
		store.rule.Store(w.store.rule.Load())
	}
	w.Probation = NewProbation(store, w.api, func() time.Time { return w.at })
}

func (w *trials) governs(canaries ...canaryRule) {
	w.store.rule.Store(&rule{active: w.store.embedded, canaries: canaries})
}

// asks says whether a server may come under the canary.
func (w *trials) asks(name string) bool {
	return w.Admit(&v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}, w.canary)
}

// stores has a server be in a state, under the canary unless it is changed.
func (w *trials) stores(name string, state v1alpha1.ServerState, change ...func(*v1alpha1.Server)) *v1alpha1.Server {
	w.t.Helper()
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Annotations: map[string]string{}}}
	s.Status.State, s.Status.Lifecycle = state, &v1alpha1.LifecycleStatus{Revision: "canary"}
	for _, c := range change {
		c(s)
	}
	stored := s.DeepCopy()
	if err := client.IgnoreNotFound(w.api.Delete(w.t.Context(), stored.DeepCopy())); err != nil {
		w.t.Fatal(err)
	}
	if err := w.api.Create(w.t.Context(), stored); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// comes has a server come under the canary, which moves it on at once.
func (w *trials) comes(name string, change ...func(*v1alpha1.Server)) {
	w.t.Helper()
	if !w.asks(name) {
		w.t.Fatalf("there is no place for %s", name)
	}
	w.Saw(w.stores(name, v1alpha1.StateDiscovery, change...), false)
}

func isIgnored(s *v1alpha1.Server) {
	s.Annotations[v1alpha1.OperationAnnotation] = v1alpha1.OperationIgnore
}

// fails is a server that the canary has moved to Error.
func fails(s *v1alpha1.Server) {
	s.Status.Lifecycle.History = []v1alpha1.LifecycleMove{{To: v1alpha1.StateError, Revision: "canary", At: metav1.NewMicroTime(epoch.Add(time.Second))}}
}

// other is a server under another revision.
func other(s *v1alpha1.Server) { s.Status.Lifecycle.Revision = "other" }

// isHaltedAt is a server that the canary halts since some time.
func isHaltedAt(at time.Time) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPolicyHalted, Status: metav1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(at)}}
	}
}

func clock(reason string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		s.Status.Lifecycle.Clock = &v1alpha1.DeadlineClock{AsOf: metav1.NewMicroTime(epoch), Held: reason != "", Reason: reason}
	}
}

func TestWhetherAnotherServerMayComeUnderACanary(t *testing.T) {
	rests := v1alpha1.StateAvailable
	for name, c := range map[string]struct {
		budget int
		then   func(*trials)
		want   bool
	}{
		"the first may": {0, func(*trials) {}, true},
		"not while one has not shown how it fares":   {0, func(w *trials) { w.comes("a") }, false},
		"not while one is about to":                  {0, func(w *trials) { w.stores("a", rests, other); w.asks("a") }, false},
		"while as many as the budget have not shown": {2, func(w *trials) { w.comes("a"); w.comes("b") }, true},
		"not while one more has not":                 {2, func(w *trials) { w.comes("a"); w.comes("b"); w.comes("c") }, false},
		"once that rests under it":                   {0, func(w *trials) { w.comes("a"); w.Saw(w.stores("a", rests), true) }, true},
		"once that is under another revision again": {0, func(w *trials) {
			w.comes("a")
			w.Saw(w.stores("a", rests, other), true)
		}, true},
		"not once it was brought to Error and the budget is used up": {0, func(w *trials) {
			w.comes("a")
			w.Saw(w.stores("a", v1alpha1.StateError, fails), true)
		}, false},
		"while some of the budget is left": {1, func(w *trials) { w.comes("a"); w.Saw(w.stores("a", v1alpha1.StateError, fails), true) }, true},
		"not while that and who has not shown are the budget and one": {1, func(w *trials) {
			w.comes("a")
			w.comes("b")
			w.Saw(w.stores("a", v1alpha1.StateError, fails), true)
		}, false},
		"not once it has cost the budget and one before this process began": {1, func(w *trials) {
			w.governs(canaryRule{bundle: w.canary, since: epoch, cost: rollout.Troubles{Errors: 2}})
		}, false},
		"not while a process that began has not looked at who is under it": {0, func(w *trials) {
			w.stores("a", rests)
			w.restarts()
		}, false},
		"once it has": {0, func(w *trials) {
			s := w.stores("a", rests)
			w.restarts()
			w.Saw(s, true)
		}, true},
		"not where it finds one in Error, and the budget is used up": {0, func(w *trials) { w.stores("a", v1alpha1.StateError, fails); w.restarts() }, false},
		"where it finds one in Error, and some is left":              {1, func(w *trials) { w.stores("a", v1alpha1.StateError, fails); w.restarts() }, true},
		"once the one that has not shown is gone": {0, func(w *trials) {
			w.comes("a")
			_ = w.api.Delete(w.t.Context(), w.stores("a", rests))
		}, true},
		"once that is left alone": {0, func(w *trials) {
			w.comes("a")
			w.stores("a", rests, func(s *v1alpha1.Server) { s.Annotations[v1alpha1.OperationAnnotation] = v1alpha1.OperationIgnore })
		}, true},
		"not while its BMC has been silent for nine minutes": {0, func(w *trials) {
			w.comes("a")
			w.stores("a", v1alpha1.StateDiscovery, clock("BMCUnreachable"))
			w.at = epoch.Add(9 * time.Minute)
		}, false},
		"once it has been for ten": {0, func(w *trials) {
			w.comes("a")
			w.stores("a", v1alpha1.StateDiscovery, clock("BMCUnreachable"))
			w.at = epoch.Add(10 * time.Minute)
		}, true},
		"not once its deadline runs again": {0, func(w *trials) {
			w.comes("a")
			w.stores("a", v1alpha1.StateDiscovery, clock(""))
			w.at = epoch.Add(time.Hour)
		}, false},
		"not while a freeze holds it back": {0, func(w *trials) {
			w.comes("a")
			w.stores("a", v1alpha1.StateDiscovery, clock("Withheld"))
			w.at = epoch.Add(time.Hour)
		}, false},
		"once it has rested for ten minutes without word of its machine": {0, func(w *trials) {
			w.comes("a")
			w.Saw(w.stores("a", rests), false)
			w.at = epoch.Add(10 * time.Minute)
		}, true},
		"once it has not come though it might, for a minute": {0, func(w *trials) {
			w.asks("a")
			w.stores("a", rests, other)
			w.at = epoch.Add(time.Minute)
		}, true},
		"in another scope, where nothing has been counted yet": {0, func(w *trials) {
			w.comes("a")
			w.Saw(w.stores("a", v1alpha1.StateError, fails), true)
			w.governs(canaryRule{bundle: w.canary, since: epoch.Add(time.Hour)})
		}, true},
		"once one is halted that was so before the scope was another": {0, func(w *trials) {
			w.stores("a", v1alpha1.StateDiscovery, isHaltedAt(epoch))
			w.governs(canaryRule{bundle: w.canary, since: epoch.Add(time.Hour)})
			w.restarts()
		}, true},
		"once one is seen to be halted after the scope became another": {0, func(w *trials) {
			w.comes("a")
			w.governs(canaryRule{bundle: w.canary, since: epoch.Add(time.Hour)})
			w.Saw(w.stores("a", v1alpha1.StateDiscovery, isHaltedAt(epoch)), false)
		}, true},
		"not once one is halted that nobody has told of yet": {0, func(w *trials) {
			w.comes("a")
			w.stores("a", v1alpha1.StateDiscovery, isHaltedAt(epoch.Add(time.Second)))
		}, false},
		"not once it is paused": {0, func(w *trials) { w.governs() }, false},
		"once it is in force":   {0, func(w *trials) { w.comes("a"); w.store.rule.Store(&rule{active: w.canary}) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := onTrial(t, c.budget)
			c.then(w)
			for range 2 { // asked again, the answer is the same
				if got := w.asks("z"); got != c.want {
					t.Errorf("%v", got)
				}
			}
		})
	}
}

func TestWhomACanaryWaitsForAndHowLong(t *testing.T) {
	later := func(w *trials, d time.Duration) { w.at = w.at.Add(d) }
	for name, c := range map[string]struct {
		budget int
		then   func(*trials)
		want   []string
		long   time.Duration
	}{
		"nobody where no other server asks": {0, func(w *trials) { w.comes("a"); later(w, time.Hour) }, nil, 0},
		"nobody that is worth telling yet":  {0, func(w *trials) { w.comes("a"); w.asks("z"); later(w, time.Second) }, nil, time.Second},
		"who has not shown for a minute":    {0, func(w *trials) { w.comes("a"); w.asks("z"); later(w, time.Minute) }, []string{"a"}, time.Minute},
		"since the first asked, and not since it came": {0, func(w *trials) {
			w.comes("a")
			later(w, time.Hour)
			w.asks("y")
			later(w, time.Minute)
			w.asks("z")
			later(w, time.Minute)
		}, []string{"a"}, 2 * time.Minute},
		"nobody once those that asked do so no more": {0, func(w *trials) { w.comes("a"); w.asks("z"); later(w, 2*time.Minute) }, nil, 0},
		"anew since one asks again": {0, func(w *trials) {
			w.comes("a")
			w.asks("z")
			later(w, time.Hour)
			w.asks("z")
			later(w, time.Second)
		}, []string{"a"}, time.Second},
		"not for one that is passed over": {1, func(w *trials) {
			w.comes("b", isIgnored)
			w.comes("a")
			w.comes("y")
			later(w, time.Minute)
			w.asks("z")
		}, []string{"a", "y"}, 0},
		"nobody once there is a place": {1, func(w *trials) {
			w.comes("a")
			w.comes("b")
			w.asks("z")
			later(w, time.Minute)
			w.Saw(w.stores("a", v1alpha1.StateAvailable), true)
			w.comes("z")
		}, nil, 0},
		"nobody once that rests": {0, func(w *trials) {
			w.comes("a")
			later(w, time.Minute)
			w.asks("z")
			w.Saw(w.stores("a", v1alpha1.StateAvailable), true)
		}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := onTrial(t, c.budget)
			c.then(w)
			if diff := cmp.Diff([]any{c.want, c.long}, []any{w.Awaited()["canary"], w.Waits()["canary"]}); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
