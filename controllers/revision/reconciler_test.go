// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/testkit"
	"github.com/metalaw/metalaw/policies"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// leads is a leader over a fake API in which everything is seen at once.
type leads struct {
	*reconciler
	api    client.Client
	events *events.FakeRecorder
}

func newLeader(t *testing.T, objects ...client.Object) *leads {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, policyv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&policyv1alpha1.PolicyRevision{}).Build()
	l := &leads{api: api, events: events.NewFakeRecorder(100)}
	l.reconciler = &reconciler{Options: Options{Store: storeOf(t, ""), Shadows: &Shadows{}, Probation: &Probation{}, Namespace: "ns", Identity: "self", Client: api, Live: api, Interval: countInterval,
		Now: func() time.Time { return epoch }}, bundles: api, parts: api, recorder: l.events}
	return l
}

// look lets the leader look once, and returns the events.
func (l *leads) look(t *testing.T) []string {
	t.Helper()
	if _, err := l.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
	var told []string
	for len(l.events.Events) > 0 {
		told = append(told, <-l.events.Events)
	}
	return told
}

// named is a bundle with its version. What is shipped has none here, so that a test follows a new version.
func named(name, version string) string {
	if name == policies.DefaultBundle && version == testkit.Version {
		return name
	}
	return name + " " + version
}

func (l *leads) stored(t *testing.T) string {
	t.Helper()
	var list policyv1alpha1.PolicyRevisionList
	if err := l.api.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var all []string
	for i := range list.Items {
		r := &list.Items[i]
		all = append(all, fmt.Sprintf("%s %s %d", named(r.Spec.Bundle, r.Spec.Version), r.Status.Stage, r.Promotion()))
	}
	return strings.Join(all, ", ")
}

// fleet is a ConfigMap with the default bundle as fleet 1.0.0.
func fleet(t *testing.T, stage string, change func(*corev1.ConfigMap)) *corev1.ConfigMap {
	t.Helper()
	files, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		t.Fatal(err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "fleet",
		Labels: map[string]string{policyv1alpha1.BundleLabel: "fleet", policyv1alpha1.StageLabel: stage}}, Data: map[string]string{}}
	testkit.Rename(files, "fleet", "1.0.0")
	for name, data := range files {
		cm.Data[name] = string(data)
	}
	if change != nil {
		change(cm)
	}
	return cm
}

func TestWhatBecomesOfAHead(t *testing.T) {
	const builtIn = "default Embedded 1"
	for name, c := range map[string]struct {
		stage  string
		change func(*corev1.ConfigMap)
		stored string
		told   string
	}{
		"an active one is accepted and promoted": {"active", nil, "default Superseded 1, fleet 1.0.0 Active 2", "Normal BundleAccepted"},
		"a draft is not stored":                  {"draft", nil, builtIn, "Normal InForce " + testkit.Default},
		"one without a stage is a draft":         {"", nil, builtIn, "Normal InForce " + testkit.Default},
		"a broken draft concerns admission alone": {"draft", func(cm *corev1.ConfigMap) { cm.Data["lifecycle.yaml"] = "a: [" }, builtIn,
			"Normal InForce " + testkit.Default},
		"a broken shadow shows its errors": {"shadow", func(cm *corev1.ConfigMap) { cm.Data["lifecycle.yaml"] = "a: [" }, builtIn,
			"Warning BundleRefused lifecycle.yaml:1:"},
		"a stage that nobody knows": {"live", nil, builtIn,
			`Warning BundleRefused label policy.metalaw.dev/stage is "live"; write draft, shadow, canary or active`},
		"a label that is not the bundle's name": {"active", func(cm *corev1.ConfigMap) { cm.Labels[policyv1alpha1.BundleLabel] = "other" }, builtIn,
			`Warning BundleRefused label policy.metalaw.dev/bundle says "other" and bundle.yaml says "fleet"; give them the same name`},
		"binary data": {"active", func(cm *corev1.ConfigMap) { cm.BinaryData = map[string][]byte{"a": {0}} }, builtIn, "Warning BundleRefused it has binaryData"},
		"a part that carries another bundle's label does not count": {"active", func(cm *corev1.ConfigMap) {
			cm.Data[bundle.PartsFile] = "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Manifest\nfiles:\n" +
				"- {name: x_test.rego, configMap: foreign, digest: sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881}\n"
		}, builtIn, "Warning BundleIncomplete manifest.yaml:4:3: error: x_test.rego: ConfigMap foreign does not hold x_test.rego"},
		"what is left out is filled in": {"shadow", func(cm *corev1.ConfigMap) { delete(cm.Data, "lifecycle.yaml") }, builtIn + ", fleet 1.0.0 Shadow 0",
			"Normal BundleAccepted"},
		"a canary of nobody": {"canary", nil, builtIn + ", fleet 1.0.0 Draft 0", "Normal BundleAccepted"},
	} {
		t.Run(name, func(t *testing.T) {
			foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "foreign"}, Data: map[string]string{"x_test.rego": "x"}}
			l := newLeader(t, fleet(t, c.stage, c.change), foreign)
			told := l.look(t)
			if diff := cmp.Diff(c.stored, l.stored(t)); diff != "" {
				t.Errorf("stored (-want +got)\n%s", diff)
			}
			if len(told) == 0 || !strings.HasPrefix(told[0], c.told) {
				t.Errorf("told %q, want %q", told, c.told)
			}
			if again := l.look(t); len(again) > 0 {
				t.Errorf("told again %q", again)
			}
		})
	}
}

func TestWhatWasFilledInStaysWhenTheDefaultChanges(t *testing.T) {
	head := fleet(t, "active", func(cm *corev1.ConfigMap) { delete(cm.Data, "macprefixes.yaml") })
	l := newLeader(t, head)
	l.look(t)
	files, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		t.Fatal(err)
	}
	files[bundle.MACPrefixesFile] = append(files[bundle.MACPrefixesFile], "\n# a newer list\n"...)
	newer, found, err := bundle.Compile(files, policies.Vocabulary())
	if err != nil || newer == nil {
		t.Fatal(err, found)
	}
	l.Store = NewStore(nil, newer)
	l.look(t)
	got := strings.Split(l.stored(t), ", ")
	slices.Sort(got) // the two defaults are listed by their digests
	if want := []string{"default Draft 0", "default Superseded 1", "fleet 1.0.0 Active 2"}; !slices.Equal(got, want) {
		t.Error(got)
	}
}

func TestAVersionMeansOneContent(t *testing.T) {
	l := newLeader(t, fleet(t, "active", nil), fleet(t, "active", func(cm *corev1.ConfigMap) {
		cm.Name = "other"
		cm.Data["admission.rego"] += "\n# otherwise\n"
	}))
	told := strings.Join(l.look(t), "\n")
	if !strings.Contains(told, "Warning VersionTaken") || l.stored(t) != "default Superseded 1, fleet 1.0.0 Active 2" {
		t.Errorf("stored %s, told\n%s", l.stored(t), told)
	}
	if refused := *l.refused.Load(); refused[policyv1alpha1.ReasonVersionTaken] != 1 {
		t.Errorf("counted %v", refused)
	}
}

func TestALeaseCountsByWhenItWasSeenToBeRenewed(t *testing.T) {
	lease := func(name string, age time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: leasePrefix + name,
			Labels:      map[string]string{policyv1alpha1.ReplicaLabel: "true"},
			Annotations: map[string]string{policyv1alpha1.LoadedAnnotation: `{"engine":"1.0.0","compiled":["d1"],"refused":{"d2":"why"}}`}},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: ptr.To(int32(90)),
				RenewTime: &metav1.MicroTime{Time: epoch.Add(-age)}}}
	}
	behind, killed := lease("behind", time.Hour), lease("killed", 0) // the clock of one goes wrong by an hour
	l := newLeader(t, lease("self", 0), behind, killed)
	for _, look := range []struct {
		after  time.Duration
		renews bool
		want   []string
		leases int
	}{
		{0, false, []string{"behind 0s", "killed 0s"}, 3},
		{30 * time.Second, true, []string{"behind 0s", "killed 30s"}, 3},
		{2 * time.Minute, true, []string{"behind 0s", "killed 2m0s"}, 3},
		{17 * time.Minute, true, []string{"behind 0s"}, 2},
	} {
		now := epoch.Add(look.after)
		if look.renews {
			behind.Spec.RenewTime = &metav1.MicroTime{Time: now.Add(-time.Hour)}
			if err := l.api.Update(t.Context(), behind); err != nil {
				t.Fatal(err)
			}
		}
		all, err := l.replicas(t.Context(), now)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range all[1:] {
			got = append(got, fmt.Sprintf("%s %s", r.Name, now.Sub(r.RenewedAt)))
			if r.EngineVersion != "1.0.0" || !r.Compiled["d1"] || r.Refused["d2"] != "why" {
				t.Errorf("of %s is known %+v", r.Name, r)
			}
		}
		var left coordinationv1.LeaseList
		if err := l.api.List(t.Context(), &left); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(look.want, got); diff != "" || all[0].Name != "self" || len(left.Items) != look.leases {
			t.Errorf("after %s, with %d leases left (-want +got)\n%s", look.after, len(left.Items), diff)
		}
	}
}

func TestWhatStandsInForADamagedRevisionIsNotStoredUnderItsName(t *testing.T) {
	l := newLeader(t)
	damaged := fleetVersion(t, "1.0.0", 7, policyv1alpha1.PolicyRevisionStatus{})
	damaged.Spec.Content = damaged.Spec.Content[:100]
	if err := l.Store.follow(t.Context(), []policyv1alpha1.PolicyRevision{damaged}); err != nil {
		t.Fatal(err)
	}
	l.look(t) // somebody has deleted it, to restore it
	if got := l.stored(t); got != "default Embedded 1" {
		t.Error(got)
	}
}

// revisionCalled is the stored revision of a bundle, which the store follows.
func revisionCalled(t *testing.T, l *leads, name string) policyv1alpha1.PolicyRevision {
	t.Helper()
	var list policyv1alpha1.PolicyRevisionList
	if err := l.api.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	if err := l.Store.follow(t.Context(), list.Items); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list.Items, func(r policyv1alpha1.PolicyRevision) bool { return r.Spec.Bundle == name })
	if i < 0 {
		t.Fatalf("there is no revision of %s", name)
	}
	return list.Items[i]
}

func TestARevisionTellsOfServersInStatesThatItHasDropped(t *testing.T) {
	server := func(name string, state v1alpha1.ServerState, revision string) *v1alpha1.Server {
		return &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
			Status: v1alpha1.ServerStatus{State: state, Lifecycle: &v1alpha1.LifecycleStatus{Revision: revision}}}
	}
	l := newLeader(t, fleet(t, "active", nil), server("a", "Attic", "old"), server("b", "Attic", "old"), server("c", "Barn", "old"),
		server("d", v1alpha1.StateAvailable, "old"))
	l.look(t)
	var list policyv1alpha1.PolicyRevisionList
	for range 2 { // the store follows, and the next look tells
		if err := l.api.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		if err := l.Store.follow(t.Context(), list.Items); err != nil {
			t.Fatal(err)
		}
		l.look(t)
	}
	const want = "; servers stay under their former revision in states that it neither defines nor migrates (Attic 2, Barn 1): say migrate in a new version"
	for i := range list.Items {
		c := meta.FindStatusCondition(list.Items[i].Status.Conditions, policyv1alpha1.ConditionActive)
		if got := strings.HasSuffix(c.Message, want); got != (list.Items[i].Spec.Bundle == "fleet") {
			t.Errorf("%s says %q", list.Items[i].Name, c.Message)
		}
	}
}

func TestOnlyWhatIsPromotedHereIsMarkedSo(t *testing.T) {
	files := fleet(t, "active", nil)
	promoted := fleetVersion(t, "1.0.0", 0, policyv1alpha1.PolicyRevisionStatus{Stage: policyv1alpha1.StageDraft})
	promoted.UID = "1"
	restored := fleetVersion(t, "0.9.0", 7, policyv1alpha1.PolicyRevisionStatus{})
	restored.UID = "2"
	inForce := *restored.DeepCopy()
	inForce.Status.Stage = policyv1alpha1.StageActive
	unmarked := fleetVersion(t, "1.0.0", 7, policyv1alpha1.PolicyRevisionStatus{Stage: policyv1alpha1.StageActive})
	delete(unmarked.Annotations, policyv1alpha1.PromotedObjectAnnotation)
	restoredUnmarked := fleetVersion(t, "0.9.0", 7, policyv1alpha1.PolicyRevisionStatus{})
	delete(restoredUnmarked.Annotations, policyv1alpha1.PromotedObjectAnnotation)
	for name, c := range map[string]struct {
		objects  []client.Object
		revision policyv1alpha1.PolicyRevision
		want     bool
	}{
		"one whose label became active":                          {[]client.Object{files, &promoted}, promoted, true},
		"one from a backup":                                      {[]client.Object{&restored}, restored, false},
		"one from a backup that an earlier version put in force": {[]client.Object{&inForce}, inForce, true},
		"one that an earlier version promoted":                   {[]client.Object{&unmarked}, unmarked, true},
		"one from a backup of an earlier version":                {[]client.Object{&restoredUnmarked}, restoredUnmarked, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLeader(t, c.objects...)
			l.look(t)
			l.look(t)
			var r policyv1alpha1.PolicyRevision
			if err := l.api.Get(t.Context(), client.ObjectKeyFromObject(&c.revision), &r); err != nil {
				t.Fatal(err)
			}
			marked := r.Annotations[policyv1alpha1.PromotedObjectAnnotation] == string(r.UID)
			if r.PromotedHere() != c.want || marked != c.want || (r.Status.Stage == policyv1alpha1.StageActive) != c.want {
				t.Errorf("promoted here %v, %s, %v", r.PromotedHere(), r.Status.Stage, r.Annotations)
			}
		})
	}
}

func TestWhatTheLeaderStoresAgainIsPromotedHere(t *testing.T) {
	l := newLeader(t)
	l.Client = interceptor.NewClient(l.api.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, to client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			o.SetUID("new")
			return to.Create(ctx, o, opts...)
		},
	})
	l.Store.rule.Store(&rule{active: l.Store.embedded, promotion: 3})
	l.look(t)
	var r policyv1alpha1.PolicyRevision
	if err := l.api.Get(t.Context(), types.NamespacedName{Name: l.Store.embedded.Revision.Name}, &r); err != nil {
		t.Fatal(err)
	}
	if !r.PromotedHere() || r.Promotion() != 3 {
		t.Error(r.Annotations)
	}
}
