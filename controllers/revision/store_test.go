// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/internal/testkit"
	"github.com/metalaw/metalaw/policies"
)

// fleetVersion is the revision of the default bundle under the name fleet.
func fleetVersion(t *testing.T, version string, promotion int64, status policyv1alpha1.PolicyRevisionStatus) policyv1alpha1.PolicyRevision {
	t.Helper()
	files, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Rename(files, "fleet", version)
	b, found, err := bundle.Compile(files, policies.Vocabulary())
	if err != nil || b == nil {
		t.Fatal(err, found)
	}
	r, err := revisionOf(b)
	if err != nil {
		t.Fatal(err)
	}
	if promotion > 0 {
		promotedAs(r, "1", promotion)
	}
	r.Status = status
	return *r
}

// promotedAs gives a revision a UID, and a number that was given to that object here.
func promotedAs(r *policyv1alpha1.PolicyRevision, uid types.UID, promotion int64) {
	r.UID = uid
	r.SetPromotion(promotion)
}

func storeOf(t *testing.T, refuses string) *Store {
	t.Helper()
	embedded, err := policies.Default()
	if err != nil {
		t.Fatal(err)
	}
	s := NewStore(nil, embedded)
	s.Accept = func(ctx context.Context, files, fill bundle.Files) (*bundle.Bundle, diag.List, error) {
		b, found, err := accept(ctx, files, fill)
		if b != nil && b.Version == refuses {
			return b, append(found, diag.Diagnostic{Severity: diag.Error, Message: "a scenario fails"}), nil
		}
		return b, found, err
	}
	return s
}

func TestTheStoreFollowsWhatIsStored(t *testing.T) {
	s := storeOf(t, "2.0.0")
	changes := 0
	s.Changed(func() { changes++ })
	since := metav1.Now()
	canary := policyv1alpha1.PolicyRevisionStatus{Stage: policyv1alpha1.StageCanary,
		Canary: &policyv1alpha1.CanaryStatus{Selector: "rack=r1", Since: since}}
	shadow := policyv1alpha1.PolicyRevisionStatus{Stage: policyv1alpha1.StageShadow}
	paused := *canary.DeepCopy()
	paused.Canary.Paused = true
	inRack := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"rack": "r1"}}}
	restored := fleetVersion(t, "1.2.0", 9, policyv1alpha1.PolicyRevisionStatus{})
	restored.UID = "9"
	old := fleetVersion(t, "1.0.0", 1, policyv1alpha1.PolicyRevisionStatus{})
	new1 := fleetVersion(t, "1.1.0", 2, policyv1alpha1.PolicyRevisionStatus{})
	for _, step := range []struct {
		name      string
		revisions []policyv1alpha1.PolicyRevision
		active    string
		governing string
		shadows   int
		changes   int
	}{
		{"nothing is stored", nil, "default", "default", 0, 0},
		{"what is built into a former manager governs", []policyv1alpha1.PolicyRevision{
			fleetVersion(t, "0.9.0", 0, policyv1alpha1.PolicyRevisionStatus{Stage: policyv1alpha1.StageEmbedded})}, "0.9.0", "0.9.0", 0, 1},
		{"the highest promotion is in force", []policyv1alpha1.PolicyRevision{old, new1}, "1.1.0", "1.1.0", 0, 2},
		{"nothing has changed", []policyv1alpha1.PolicyRevision{new1, old}, "1.1.0", "1.1.0", 0, 2},
		{"what is in force is deleted", []policyv1alpha1.PolicyRevision{old}, "1.1.0", "1.1.0", 0, 2},
		{"a canary governs its scope", []policyv1alpha1.PolicyRevision{new1, fleetVersion(t, "1.2.0", 0, canary)}, "1.1.0", "1.2.0", 0, 3},
		{"a canary is paused", []policyv1alpha1.PolicyRevision{new1, fleetVersion(t, "1.2.0", 0, paused)}, "1.1.0", "1.1.0", 0, 4},
		{"a canary is refused", []policyv1alpha1.PolicyRevision{new1, fleetVersion(t, "2.0.0", 0, canary)}, "1.1.0", "1.1.0", 0, 5},
		{"a shadow", []policyv1alpha1.PolicyRevision{new1, fleetVersion(t, "1.2.0", 0, shadow)}, "1.1.0", "1.1.0", 1, 6},
		{"what was promoted in another cluster changes nothing", []policyv1alpha1.PolicyRevision{new1, restored}, "1.1.0", "1.1.0", 0, 7},
		{"one in force that is refused is held", []policyv1alpha1.PolicyRevision{fleetVersion(t, "2.0.0", 3, shadow)}, "2.0.0", "2.0.0", 0, 8},
	} {
		if err := s.follow(t.Context(), step.revisions); err != nil {
			t.Fatal(err)
		}
		name := func(b *bundle.Bundle) string {
			if b.Name == "default" {
				return b.Name
			}
			return b.Version
		}
		if got := name(s.Active()); got != step.active {
			t.Errorf("%s: active is %s, want %s", step.name, got, step.active)
		}
		if got := name(s.Governing(inRack)); got != step.governing {
			t.Errorf("%s: governing is %s, want %s", step.name, got, step.governing)
		}
		if len(s.Shadows()) != step.shadows || changes != step.changes {
			t.Errorf("%s: %d shadows, %d changes; want %d and %d", step.name, len(s.Shadows()), changes, step.shadows, step.changes)
		}
	}
	if why, held := s.Held(s.Active().Revision.Name); !held || !strings.Contains(why, "a scenario fails") {
		t.Errorf("held %v: %s", held, why)
	}
	if _, held := s.Held(old.Name); held {
		t.Error("a revision that is accepted is held")
	}
}

func TestARevisionInForceThatDoesNotCompileIsHeldUnderItsOwnName(t *testing.T) {
	s := storeOf(t, "")
	r := fleetVersion(t, "1.0.0", 1, policyv1alpha1.PolicyRevisionStatus{})
	r.Spec.Content = r.Spec.Content[:100]
	if err := s.follow(t.Context(), []policyv1alpha1.PolicyRevision{r}); err != nil {
		t.Fatal(err)
	}
	_, held := s.Held(r.Name)
	if b, ok := s.Revision(r.Name); !held || ok || b != nil || s.Active().Revision.Name != r.Name || s.Active().Lifecycle == nil {
		t.Errorf("held %v, loaded %v, active %s", held, ok, s.Active().Revision.Name)
	}
	compiled, refused := s.loaded()
	if len(compiled) != 1 || len(refused) != 1 {
		t.Errorf("compiled %v, refused %v", compiled, refused)
	}
	if s.Active().Admission != nil {
		t.Error("what the default lets pass stands for what the revision would have refused")
	}
}

func TestADamagedRevisionIsMendedByARestore(t *testing.T) {
	for name, use := range map[string]policyv1alpha1.PolicyRevisionStatus{
		"in force": {}, "that servers are pinned to": {Stage: policyv1alpha1.StageSuperseded, Servers: 1}} {
		t.Run(name, func(t *testing.T) {
			s := storeOf(t, "")
			good := fleetVersion(t, "1.0.0", 1, use)
			if use.Stage != "" {
				good.Annotations = nil
			}
			damaged := *good.DeepCopy()
			damaged.Spec.Content = good.Spec.Content[:100]
			if good.UID, damaged.UID = "2", "1"; use.Stage == "" {
				promotedAs(&good, "2", 1)
			}
			scheme := runtime.NewScheme()
			if err := policyv1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			for _, r := range []policyv1alpha1.PolicyRevision{damaged, good} {
				s.Reader = fake.NewClientBuilder().WithScheme(scheme).WithObjects(r.DeepCopy()).Build()
				if err := s.follow(t.Context(), []policyv1alpha1.PolicyRevision{r}); err != nil {
					t.Fatal(err)
				}
				_, loaded := s.Revision(r.Name)
				if _, held := s.Held(r.Name); held != (r.UID == "1") || loaded != (r.UID == "2") {
					t.Errorf("object %s: held %v, loaded %v", r.UID, held, loaded)
				}
			}
		})
	}
}

func TestARestoredRevisionIsHeldUntilItIsTested(t *testing.T) {
	s := storeOf(t, "")
	good := fleetVersion(t, "1.0.0", 1, policyv1alpha1.PolicyRevisionStatus{})
	damaged := *good.DeepCopy()
	damaged.Spec.Content = good.Spec.Content[:100]
	promotedAs(&good, "2", 1)
	if err := s.follow(t.Context(), []policyv1alpha1.PolicyRevision{damaged}); err != nil {
		t.Fatal(err)
	}
	tests, inner := 0, s.Accept
	s.Accept = func(ctx context.Context, files, fill bundle.Files) (*bundle.Bundle, diag.List, error) {
		tests++
		if _, held := s.Held(s.Active().Revision.Name); !held {
			t.Errorf("while it is tested, the bundle %s governs in its place", s.Active().Name)
		}
		return inner(ctx, files, fill)
	}
	if err := s.follow(t.Context(), []policyv1alpha1.PolicyRevision{good}); err != nil {
		t.Fatal(err)
	}
	if why, held := s.Held(good.Name); held || tests != 1 {
		t.Errorf("after %d tests it is held: %s", tests, why)
	}
}

func TestATestThatTakesLongIsMadeOnceAndKeepsNobodyWaitingForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := fleetVersion(t, "1.0.0", 0, policyv1alpha1.PolicyRevisionStatus{})
		s := storeOf(t, "")
		scheme := runtime.NewScheme()
		if err := policyv1alpha1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		s.Reader = fake.NewClientBuilder().WithScheme(scheme).WithObjects(&r).Build()
		var tests, changes atomic.Int32
		s.Accept = func(ctx context.Context, files, fill bundle.Files) (*bundle.Bundle, diag.List, error) {
			tests.Add(1)
			time.Sleep(time.Minute) // the machine is overloaded
			if ctx.Err() != nil {
				return nil, nil, ctx.Err()
			}
			return accept(ctx, files, fill)
		}
		s.Changed(func() { changes.Add(1) })
		began := time.Now()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if _, loaded := s.Revision(r.Name); loaded || time.Since(began) != readLimit {
					t.Errorf("loaded %v after %s", loaded, time.Since(began))
				}
			})
		}
		all.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, loaded := s.Revision(r.Name); !loaded || tests.Load() != 1 || changes.Load() != 1 {
			t.Errorf("loaded %v, after %d tests; told %d times", loaded, tests.Load(), changes.Load())
		}
	})
}

func TestLoadTestsWhatIsInUseBeforeAnythingRuns(t *testing.T) {
	s := storeOf(t, "1.1.0")
	scheme := runtime.NewScheme()
	if err := policyv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	pinned := fleetVersion(t, "1.1.0", 0, policyv1alpha1.PolicyRevisionStatus{Stage: policyv1alpha1.StageSuperseded, Servers: 3})
	unused := fleetVersion(t, "1.2.0", 0, policyv1alpha1.PolicyRevisionStatus{
		Stage: policyv1alpha1.StageSuperseded, LabelledStage: policyv1alpha1.LabelledActive}) // its ConfigMap stays as it was
	active := fleetVersion(t, "1.0.0", 7, policyv1alpha1.PolicyRevisionStatus{Stage: policyv1alpha1.StageActive})
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(client.Object(&pinned), &unused, &active).Build()
	if err := s.Load(t.Context(), api); err != nil {
		t.Fatal(err)
	}
	if got := s.Active().Revision.Name; got != active.Name {
		t.Errorf("active is %s", got)
	}
	if _, held := s.Held(pinned.Name); !held {
		t.Error("the revision that servers are pinned to was not tested")
	}
	if held := s.rule.Load().held; len(held) != 1 || held[0] != pinned.Name {
		t.Errorf("counted as held: %v, want the one that servers are pinned to", held)
	}
	if s.tested(unused.Name) != nil {
		t.Error("a revision that nobody uses was tested")
	}
}

func TestWhatNobodyNeedsIsForgotten(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, policyv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	s := storeOf(t, "1.3.0")
	active := fleetVersion(t, "1.0.0", 7, policyv1alpha1.PolicyRevisionStatus{Stage: policyv1alpha1.StageActive})
	pinned := fleetVersion(t, "1.1.0", 0, policyv1alpha1.PolicyRevisionStatus{Stage: policyv1alpha1.StageCanary})
	shadow := fleetVersion(t, "1.2.0", 0, policyv1alpha1.PolicyRevisionStatus{Stage: policyv1alpha1.StageShadow})
	refused := fleetVersion(t, "1.3.0", 0, policyv1alpha1.PolicyRevisionStatus{Stage: policyv1alpha1.StageShadow})
	server := &v1alpha1.Server{Status: v1alpha1.ServerStatus{Lifecycle: &v1alpha1.LifecycleStatus{Revision: pinned.Name}}}
	server.Name = "s"
	s.Reader = fake.NewClientBuilder().WithScheme(scheme).WithObjects(server).Build()
	all := []policyv1alpha1.PolicyRevision{active, pinned, shadow, refused}
	known := func() string {
		var names []string
		for name := range s.trials {
			names = append(names, named(s.trials[name].bundle.Name, s.trials[name].bundle.Version))
		}
		slices.Sort(names)
		return strings.Join(names, ", ")
	}
	look := func(stored []policyv1alpha1.PolicyRevision) {
		t.Helper()
		if err := s.follow(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
		if err := s.forget(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
	}
	look(all)
	look(all)
	const whole = "default, fleet 1.0.0, fleet 1.1.0, fleet 1.2.0, fleet 1.3.0"
	if got := known(); got != whole {
		t.Errorf("while all are stored, known are %s", got)
	}
	look(nil) // somebody deletes them by force; the one in force stays so
	if got := known(); got != whole {
		t.Errorf("what the cache does not show once is forgotten: %s", got)
	}
	look(all)
	look(nil)
	if got := known(); got != whole {
		t.Errorf("what two looks do not show, with another between them, is forgotten: %s", got)
	}
	look(nil)
	if got, want := known(), "default, fleet 1.0.0, fleet 1.1.0"; got != want {
		t.Errorf("known are %s, want %s", got, want)
	}
	if b, loaded := s.Revision(pinned.Name); !loaded || b.Version != "1.1.0" || s.Lost(pinned.Name) {
		t.Error("the server is not governed any more by what it is pinned to")
	}
	s.Reader = fake.NewClientBuilder().WithScheme(scheme).Build()
	look(nil)
	look(nil)
	if got, want := known(), "default, fleet 1.0.0"; got != want {
		t.Errorf("once no server is pinned to it: %s, want %s", got, want)
	}
}

func TestARefusedRevisionThatIsMadeAnewIsHeldUntilItIsTested(t *testing.T) {
	s := storeOf(t, "1.0.0")
	first := fleetVersion(t, "1.0.0", 1, policyv1alpha1.PolicyRevisionStatus{})
	second := *first.DeepCopy()
	promotedAs(&second, "2", 1)
	if err := s.follow(t.Context(), []policyv1alpha1.PolicyRevision{first}); err != nil {
		t.Fatal(err)
	}
	tests, inner := 0, s.Accept
	s.Accept = func(ctx context.Context, files, fill bundle.Files) (*bundle.Bundle, diag.List, error) {
		tests++
		if _, held := s.Held(first.Name); !held {
			t.Error("while it is tested again, it governs")
		}
		return inner(ctx, files, fill)
	}
	if err := s.follow(t.Context(), []policyv1alpha1.PolicyRevision{second}); err != nil {
		t.Fatal(err)
	}
	if tests != 1 {
		t.Errorf("it was tested %d times", tests)
	}
}

// Nothing governs where a backup comes to a cluster in which no user promoted any revision: neither the built-in one nor what servers are
// pinned to.
func TestNothingGovernsWhileAPromotionIsMissing(t *testing.T) {
	s := storeOf(t, "")
	first := fleetVersion(t, "0.9.0", 1, policyv1alpha1.PolicyRevisionStatus{Stage: policyv1alpha1.StageEmbedded})
	first.Spec.Source = nil
	restored := fleetVersion(t, "1.0.0", 7, policyv1alpha1.PolicyRevisionStatus{})
	restored.UID, restored.Spec.Source = "9", &policyv1alpha1.PolicySource{}
	canary := fleetVersion(t, "1.1.0", 0, policyv1alpha1.PolicyRevisionStatus{Stage: policyv1alpha1.StageCanary,
		Canary: &policyv1alpha1.CanaryStatus{Percent: 100}})
	promoted := *restored.DeepCopy()
	promotedAs(&promoted, "9", 8)
	upgraded := *restored.DeepCopy()
	upgraded.Status.Stage = policyv1alpha1.StageActive
	server := &v1alpha1.Server{Status: v1alpha1.ServerStatus{State: v1alpha1.StateCleanup,
		Lifecycle: &v1alpha1.LifecycleStatus{Revision: first.Name}}}
	for _, step := range []struct {
		name      string
		revisions []policyv1alpha1.PolicyRevision
		active    string
		missing   bool
	}{
		{"a first draft", []policyv1alpha1.PolicyRevision{first, fleetVersion(t, "1.2.0", 0, policyv1alpha1.PolicyRevisionStatus{})}, first.Name, false},
		{"a backup after the manager", []policyv1alpha1.PolicyRevision{first, restored, canary}, "", true},
		{"whose revision is promoted", []policyv1alpha1.PolicyRevision{first, promoted}, promoted.Name, false},
		{"an upgrade over a restored head", []policyv1alpha1.PolicyRevision{first, upgraded}, promoted.Name, false},
	} {
		if step.active != promoted.Name || step.name == "an upgrade over a restored head" {
			s = storeOf(t, "")
			if err := s.follow(t.Context(), []policyv1alpha1.PolicyRevision{first}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.follow(t.Context(), step.revisions); err != nil {
			t.Fatal(err)
		}
		_, held := s.Held(first.Name)
		_, erases := s.WipeDemands(server)
		if got := s.Governing(server).Revision.Name; got != step.active || s.Active().Revision.Name != step.active ||
			s.Active().StandsIn != step.missing || held != step.missing || (erases != nil) != step.missing || (s.Missing() != "") != step.missing {
			t.Errorf("%s: %q governs, held %v, %v: %s", step.name, got, held, erases, s.Missing())
		}
	}
}
