// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

type inForce struct{}

func (inForce) Active() *bundle.Bundle {
	return &bundle.Bundle{Manifest: bundle.Manifest{Settings: bundle.Settings{Decommission: bundle.Decommission{
		Propose: []string{bundle.ProposeHealth, bundle.ProposeDisk, bundle.ProposeMemory}, CordonMostPercent: 2}}}}
}
func (inForce) Changed(func()) {}

// server is one of model X; a broken one has a failed disk.
func server(name string, change ...func(*v1alpha1.Server)) *v1alpha1.Server {
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}, Status: v1alpha1.ServerStatus{Model: "X"}}
	for _, c := range change {
		c(s)
	}
	return s
}

func broken(s *v1alpha1.Server) {
	s.Status.FaultyParts = []v1alpha1.FaultyPart{{Fault: "Disk", Name: "D1", Since: metav1.NewTime(noon.Add(-time.Hour))}}
}

func claimed(s *v1alpha1.Server) {
	s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "ns", Name: "c"}
}

// world is a reconciler over a fake API server. during is called once, right before the first patch is stored.
type world struct {
	*reconciler
	api    client.WithWatch
	writes []string
	during func()
	// refused is the server whose status is never stored.
	refused string
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{api: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Server{}).Build()}
	w.restart()
	return w
}

// restart is another process.
func (w *world) restart() {
	through := interceptor.NewClient(w.api, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			w.wrote("cordon", o)
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if o.GetName() == w.refused {
				return errors.New("refused")
			}
			w.wrote("status", o)
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		}})
	w.reconciler = &reconciler{client: through, settings: settingsOf, recorder: events.NewFakeRecorder(100), cordoned: map[string]time.Time{},
		Options: Options{Bundles: inForce{}, Now: func() time.Time { return noon }}}
}

func (w *world) wrote(what string, o client.Object) {
	w.writes = append(w.writes, what+" "+o.GetName())
	if during := w.during; during != nil {
		w.during = nil
		during()
	}
}

func (w *world) look(t *testing.T) ctrl.Result {
	t.Helper()
	result, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: pass})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func (w *world) stored(t *testing.T, name string) *v1alpha1.Server {
	t.Helper()
	s := &v1alpha1.Server{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Name: name}, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// said is whether a server is cordoned, and its condition.
func (w *world) said(t *testing.T, name string) string {
	t.Helper()
	s := w.stored(t, name)
	c := meta.FindStatusCondition(s.Status.Conditions, "FaultyHardware")
	if c == nil {
		return fmt.Sprint(s.Spec.Unclaimable)
	}
	return fmt.Sprintf("%t %s/%s", s.Spec.Unclaimable, c.Status, c.Reason)
}

func (w *world) change(t *testing.T, name string, change func(*v1alpha1.Server)) {
	t.Helper()
	s := w.stored(t, name)
	change(s)
	status := s.DeepCopy()
	if err := w.api.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	status.ResourceVersion = s.ResourceVersion
	if err := w.api.Status().Update(t.Context(), status); err != nil {
		t.Fatal(err)
	}
}

func TestABrokenServerIsCordonedAndThenNothingIsWritten(t *testing.T) {
	w := newWorld(t, server("a", broken), server("b"))
	for range 3 {
		w.look(t)
	}
	if diff := cmp.Diff([]string{"cordon a", "status a"}, w.writes); diff != "" {
		t.Errorf("writes (-want +got)\n%s", diff)
	}
	if got := w.said(t, "a"); got != "true True/Cordoned" {
		t.Error(got)
	}
	want := map[string]string{v1alpha1.UnclaimableReasonAnnotation: v1alpha1.UnclaimableFaulty, v1alpha1.FaultCordonedAtAnnotation: "2026-05-04T12:00:00Z"}
	if diff := cmp.Diff(want, w.stored(t, "a").Annotations); diff != "" {
		t.Error(diff)
	}
}

func TestTheLimitHoldsAcrossARestartAndALaggingCache(t *testing.T) {
	w := newWorld(t, server("a", broken), server("b", broken))
	first := w.stored(t, "a")
	w.look(t)
	if a, b := w.said(t, "a"), w.said(t, "b"); a != "true True/Cordoned" || b != "false True/CordonLimitReached" {
		t.Errorf("a %s, b %s", a, b)
	}
	w.restart()
	if again := w.look(t); again.RequeueAfter != 24*time.Hour || w.said(t, "b") != "false True/CordonLimitReached" {
		t.Errorf("b %s, again in %s", w.said(t, "b"), again.RequeueAfter)
	}
	lagging := newWorld(t, first, server("b", broken))
	lagging.cordoned["a"] = noon
	lagging.look(t)
	if got := lagging.said(t, "b"); got != "false True/CordonLimitReached" {
		t.Errorf("b %s although a was cordoned a moment ago", got)
	}
}

func TestAServerThatIsClaimedMeanwhileIsNotCordoned(t *testing.T) {
	w := newWorld(t, server("a", broken))
	w.during = func() { w.change(t, "a", claimed) }
	if again := w.look(t); again.RequeueAfter != conflictPause {
		t.Errorf("again in %s", again.RequeueAfter)
	}
	w.look(t)
	if got := w.said(t, "a"); got != "false True/Proposed" {
		t.Error(got)
	}
	w.change(t, "a", func(s *v1alpha1.Server) { s.Spec.ServerClaimRef = nil })
	w.look(t)
	if got := w.said(t, "a"); got != "true True/Cordoned" {
		t.Errorf("once the claim ended: %s", got)
	}
}

func TestAPersonDecides(t *testing.T) {
	mended := func(s *v1alpha1.Server) { s.Status.FaultyParts = nil }
	uncordoned := func(s *v1alpha1.Server) { s.Spec.Unclaimable = false }
	for name, c := range map[string]struct {
		changes []func(*v1alpha1.Server)
		want    string
	}{
		"a mended server keeps its cordon":           {[]func(*v1alpha1.Server){mended}, "true False/FaultGone"},
		"which a person lifts":                       {[]func(*v1alpha1.Server){mended, uncordoned}, "false"},
		"a broken server is kept in service":         {[]func(*v1alpha1.Server){uncordoned}, "false True/KeptInService"},
		"and mended later":                           {[]func(*v1alpha1.Server){uncordoned, mended}, "false"},
		"a server that goes out of service is moot":  {[]func(*v1alpha1.Server){func(s *v1alpha1.Server) { s.Annotations[v1alpha1.DecommissionAnnotation] = "disk" }}, "true"},
		"one that went out of service is moot":       {[]func(*v1alpha1.Server){func(s *v1alpha1.Server) { s.Status.State = "Decommissioned" }}, "true"},
		"one that is to be left alone keeps it all":  {[]func(*v1alpha1.Server){func(s *v1alpha1.Server) { s.Annotations[v1alpha1.HeldByBMCAnnotation] = "b"; mended(s) }}, "true True/Cordoned"},
		"a cordon for another reason is not counted": {[]func(*v1alpha1.Server){func(s *v1alpha1.Server) { s.Annotations[v1alpha1.UnclaimableReasonAnnotation] = "mine"; mended(s) }}, "true"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, server("a", broken))
			w.look(t)
			for _, change := range c.changes {
				w.change(t, "a", change)
				w.look(t)
			}
			if got := w.said(t, "a"); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestAManagerThatOnlyObservesProposes(t *testing.T) {
	w := newWorld(t, server("a", broken))
	w.ObserveOnly = true
	w.look(t)
	if got := w.said(t, "a"); got != "false True/Proposed" {
		t.Error(got)
	}
}

func TestWhichServersAreWorthALookAtAll(t *testing.T) {
	for name, c := range map[string]struct {
		was, now *v1alpha1.Server
		want     bool
	}{
		"a server without a fault is not": {server("a"), server("a", claimed), false},
		"a fault is":                      {server("a"), server("a", broken), true},
		"a fault that goes is":            {server("a", broken), server("a"), true},
		"a claim of a broken server is":   {server("a", broken), server("a", broken, claimed), true},
		"its power is not":                {server("a", broken), server("a", broken, func(s *v1alpha1.Server) { s.Status.PowerState = "On" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := concerns().Update(event.UpdateEvent{ObjectOld: c.was, ObjectNew: c.now}); got != c.want {
				t.Errorf("looked at: %t", got)
			}
		})
	}
}

func TestOneThatCannotBeWrittenKeepsNoOtherFromItsProposal(t *testing.T) {
	w := newWorld(t, server("a", broken, claimed), server("b", broken, claimed))
	w.refused = "a"
	if _, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: pass}); err == nil {
		t.Error("nothing is tried again")
	}
	if meta.FindStatusCondition(w.stored(t, "b").Status.Conditions, v1alpha1.ConditionFaultyHardware) == nil {
		t.Error("b is not proposed")
	}
}
