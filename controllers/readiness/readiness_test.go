// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

var (
	wiring = v1alpha1.Taint{Key: "net", Effect: v1alpha1.TaintEffectNoBind}
	theirs = v1alpha1.Taint{Key: "dedicated", Value: "archive", Effect: v1alpha1.TaintEffectNoBind}
)

func aServer(change ...func(*v1alpha1.Server)) *v1alpha1.Server {
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: map[string]string{"rack": "r1"}, Annotations: map[string]string{}}}
	for _, c := range change {
		c(s)
	}
	return s
}

func tainted(all ...v1alpha1.Taint) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) { s.Spec.Taints = all }
}

func ignored(s *v1alpha1.Server) {
	s.Annotations[v1alpha1.OperationAnnotation] = v1alpha1.OperationIgnore
}

func aRule(name, condition string, change ...func(*v1alpha1.ServerReadinessRule)) *v1alpha1.ServerReadinessRule {
	r := &v1alpha1.ServerReadinessRule{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{v1alpha1.FinalizerServerReadinessRule}},
		Spec: v1alpha1.ServerReadinessRuleSpec{Taint: wiring, EnforcementMode: v1alpha1.EnforcementModeContinuous,
			Conditions:     []v1alpha1.ConditionRequirement{{Type: condition, RequiredStatus: metav1.ConditionTrue}},
			ServerSelector: metav1.LabelSelector{MatchLabels: map[string]string{"rack": "r1"}}}}
	for _, c := range change {
		c(r)
	}
	return r
}

func deleted(r *v1alpha1.ServerReadinessRule) {
	now := metav1.Now()
	r.DeletionTimestamp = &now
}

func fresh(r *v1alpha1.ServerReadinessRule) { r.Finalizers = nil }

// world is a reconciler over a fake API server. during is called once, right before the first patch is stored.
type world struct {
	*reconciler
	api      client.WithWatch
	writes   int
	during   func(api client.Client)
	recorder *events.FakeRecorder
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{api: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Server{}).Build(),
		recorder: events.NewFakeRecorder(10)}
	through := interceptor.NewClient(w.api, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			w.writes++
			if during := w.during; during != nil {
				w.during = nil
				during(w.api)
			}
			return c.Patch(ctx, o, p, opts...)
		}})
	w.reconciler = &reconciler{client: through, live: w.api, recorder: w.recorder}
	return w
}

func (w *world) look(t *testing.T, of func(context.Context, ctrl.Request) (ctrl.Result, error), name string) ctrl.Result {
	t.Helper()
	result, err := of(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func (w *world) stored(t *testing.T) *v1alpha1.Server {
	t.Helper()
	s := &v1alpha1.Server{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Name: "s"}, s); err != nil {
		t.Fatal(err)
	}
	return s
}

func (w *world) wantTaints(t *testing.T, want ...v1alpha1.Taint) {
	t.Helper()
	if diff := cmp.Diff(want, w.stored(t).Spec.Taints); diff != "" {
		t.Errorf("taints (-want +got)\n%s", diff)
	}
}

func (w *world) gone(t *testing.T, rule string) bool {
	t.Helper()
	return apierrors.IsNotFound(w.api.Get(t.Context(), client.ObjectKey{Name: rule}, &v1alpha1.ServerReadinessRule{}))
}

func TestARuleTaintsAServerAndThenWritesNothing(t *testing.T) {
	w := newWorld(t, aServer(tainted(theirs)), aRule("r", "Net"))
	for range 3 {
		w.look(t, w.server, "s")
	}
	w.wantTaints(t, theirs, wiring)
	s := w.stored(t)
	meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{Type: "Net", Status: metav1.ConditionTrue, Reason: "Wired"})
	if err := w.api.Status().Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.look(t, w.server, "s")
	}
	w.wantTaints(t, theirs)
	if w.writes != 2 {
		t.Errorf("%d writes for a taint that came and went", w.writes)
	}
}

func TestARuleForTheBootstrapActsOnce(t *testing.T) {
	w := newWorld(t, aServer(func(s *v1alpha1.Server) {
		s.Status.Conditions = []metav1.Condition{{Type: "Net", Status: metav1.ConditionTrue, Reason: "Wired"}}
	}), aRule("r", "Net", func(r *v1alpha1.ServerReadinessRule) { r.Spec.EnforcementMode = v1alpha1.EnforcementModeBootstrapOnly }))
	w.look(t, w.server, "s")
	s := w.stored(t)
	if got := s.Annotations["readiness.metal.ironcore.dev/bootstrap-completed-r"]; got != "true" {
		t.Errorf("the annotation is %q", got)
	}
	s.Status.Conditions = nil
	if err := w.api.Status().Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	w.look(t, w.server, "s")
	w.wantTaints(t)
	if w.writes != 1 {
		t.Errorf("%d writes", w.writes)
	}
}

func TestAConcurrentWriterOfTaintsLosesNothing(t *testing.T) {
	w := newWorld(t, aServer(), aRule("r", "Net"))
	w.during = func(api client.Client) {
		s := w.stored(t)
		s.Spec.Taints = append(s.Spec.Taints, theirs)
		if err := api.Update(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if again := w.look(t, w.server, "s"); again.RequeueAfter == 0 {
		t.Error("a lost race is not looked at again")
	}
	w.wantTaints(t, theirs)
	w.look(t, w.server, "s")
	w.wantTaints(t, theirs, wiring)
}

func TestWhichServersAndRulesAreLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		server *v1alpha1.Server
		rule   *v1alpha1.ServerReadinessRule
	}{
		"a server that is to be left alone": {aServer(ignored), aRule("r", "Net")},
		"a server that its BMC holds": {aServer(func(s *v1alpha1.Server) { s.Annotations[v1alpha1.HeldByBMCAnnotation] = "b" }),
			aRule("r", "Net")},
		"a rule without our finalizer": {aServer(), aRule("r", "Net", fresh)},
		"a rule that is to be left alone": {aServer(), aRule("r", "Net", func(r *v1alpha1.ServerReadinessRule) {
			r.Annotations = map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationIgnore}
		})},
		"a rule whose selector cannot be read": {aServer(), aRule("r", "Net", func(r *v1alpha1.ServerReadinessRule) {
			r.Spec.ServerSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "rack", Operator: "Like"}}
		})},
		"a server that no rule selects": {aServer(func(s *v1alpha1.Server) { s.Labels = nil }), aRule("r", "Net")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.server, c.rule)
			w.look(t, w.server, "s")
			w.wantTaints(t)
			if w.writes != 0 {
				t.Errorf("%d writes", w.writes)
			}
		})
	}
}

func TestARuleGetsItsFinalizerOnce(t *testing.T) {
	w := newWorld(t, aServer(), aRule("r", "Net", fresh))
	for range 3 {
		w.look(t, w.rule, "r")
	}
	w.look(t, w.server, "s")
	w.wantTaints(t, wiring)
	if w.writes != 2 {
		t.Errorf("%d writes", w.writes)
	}
}

func TestARuleThatGoes(t *testing.T) {
	for name, c := range map[string]struct {
		server *v1alpha1.Server
		rules  []client.Object
		want   []v1alpha1.Taint
		stays  bool
	}{
		"takes its taint":                       {aServer(tainted(theirs, wiring)), nil, []v1alpha1.Taint{theirs}, false},
		"leaves a taint that another rule asks": {aServer(tainted(wiring)), []client.Object{aRule("q", "Burnt")}, []v1alpha1.Taint{wiring}, false},
		"leaves a server that it does not select": {aServer(tainted(wiring), func(s *v1alpha1.Server) { s.Labels = nil }), nil,
			[]v1alpha1.Taint{wiring}, false},
		"stays while a server with its taint is to be left alone": {aServer(tainted(wiring), ignored), nil, []v1alpha1.Taint{wiring}, true},
		"goes past a server without it that is to be left alone":  {aServer(ignored), []client.Object{aRule("q", "Burnt")}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(c.rules, c.server, aRule("r", "Net", deleted))...)
			again := w.look(t, w.rule, "r")
			w.wantTaints(t, c.want...)
			if w.gone(t, "r") == c.stays || (again.RequeueAfter > 0) != c.stays || (len(w.recorder.Events) > 0) != c.stays {
				t.Errorf("gone %t, again in %s, %d events", w.gone(t, "r"), again.RequeueAfter, len(w.recorder.Events))
			}
		})
	}
}

func TestARuleThatGoesSeesWhatTheCacheDoesNotShow(t *testing.T) {
	w := newWorld(t, aServer(tainted(wiring)), aRule("r", "Net", deleted))
	stale := w.client
	w.client = interceptor.NewClient(stale.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if s, ok := o.(*v1alpha1.Server); ok {
				s.Spec.Taints = nil
			}
			return err
		}})
	w.look(t, w.rule, "r")
	w.wantTaints(t)
	if !w.gone(t, "r") {
		t.Error("the rule stays")
	}
}

func TestARuleThatGoesLosesARaceAndStays(t *testing.T) {
	w := newWorld(t, aServer(tainted(wiring)), aRule("r", "Net", deleted))
	w.during = func(api client.Client) {
		s := w.stored(t)
		s.Spec.Taints = append(s.Spec.Taints, theirs)
		if err := api.Update(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if again := w.look(t, w.rule, "r"); again.RequeueAfter == 0 || w.gone(t, "r") {
		t.Error("the rule does not wait for its taint")
	}
	w.look(t, w.rule, "r")
	w.wantTaints(t, theirs)
	if !w.gone(t, "r") {
		t.Error("the rule stays")
	}
}

func TestWhichChangesOfAServerAreLookedAt(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.Server)
		want   bool
	}{
		"another power state is not": {func(s *v1alpha1.Server) { s.Status.PowerState = v1alpha1.PowerStateOn }, false},
		"a condition's message is not": {func(s *v1alpha1.Server) {
			s.Status.Conditions = []metav1.Condition{{Type: "Net", Status: "True", Message: "now"}}
		}, false},
		"a condition's status is":  {func(s *v1alpha1.Server) { s.Status.Conditions = []metav1.Condition{{Type: "Net", Status: "False"}} }, true},
		"a condition that goes is": {func(s *v1alpha1.Server) { s.Status.Conditions = nil }, true},
		"a taint is":               {tainted(theirs), true},
		"a label is":               {func(s *v1alpha1.Server) { s.Labels["rack"] = "r2" }, true},
		"an annotation is":         {ignored, true},
	} {
		t.Run(name, func(t *testing.T) {
			was := aServer(func(s *v1alpha1.Server) { s.Status.Conditions = []metav1.Condition{{Type: "Net", Status: "True"}} })
			now := was.DeepCopy()
			c.change(now)
			if got := serverChanges().Update(event.UpdateEvent{ObjectOld: was, ObjectNew: now}); got != c.want {
				t.Errorf("looked at: %t", got)
			}
		})
	}
}
