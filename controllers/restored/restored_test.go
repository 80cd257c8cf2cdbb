// SPDX-License-Identifier: Apache-2.0

package restored

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/restored"
)

const machine = "1a2b3c4d-0000-0000-0000-000000000001"

func cluster(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), policyv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func inState(state v1alpha1.ServerState, value string) *v1alpha1.Server {
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{v1alpha1.RestoredDoubtAnnotation: value,
		v1alpha1.RestoredReasonAnnotation: "INC-7", v1alpha1.RestoredByAnnotation: "jane", "other": "kept"}}}
	s.Spec.SystemUUID = machine
	s.Status.State = state
	return s
}

// settle looks at the server until nothing is written any more.
func settle(t *testing.T, c client.Client) (*v1alpha1.Server, *policyv1alpha1.ServerInventory) {
	t.Helper()
	k := &keeper{client: c, live: c, now: func() time.Time { return time.Unix(100, 0) }}
	for range 4 {
		if _, err := k.keep(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "a"}}); err != nil {
			t.Fatal(err)
		}
	}
	s, i := &v1alpha1.Server{}, &policyv1alpha1.ServerInventory{}
	if err := c.Get(t.Context(), types.NamespacedName{Name: "a"}, s); err != nil {
		t.Fatal(err)
	}
	if err := client.IgnoreNotFound(c.Get(t.Context(), types.NamespacedName{Name: machine}, i)); err != nil {
		t.Fatal(err)
	}
	return s, i
}

func TestADoubtIsKeptWhereItOutlivesTheServer(t *testing.T) {
	c := cluster(t, inState("Available", restored.Doubted))
	_, i := settle(t, c)
	d := restored.On(i)
	if d == nil || d.By != "jane" || d.Reason != "INC-7" || i.Custody.ServerName != "a" {
		t.Fatalf("custody %+v", i.Custody)
	}
	fresh := inState("", "")
	if err := errors.Join(c.Delete(t.Context(), inState("", "")), func() error { fresh.Annotations = nil; return c.Create(t.Context(), fresh) }()); err != nil {
		t.Fatal(err)
	}
	if s, _ := settle(t, c); s.Annotations[v1alpha1.RestoredDoubtAnnotation] != restored.Doubted {
		t.Errorf("a new Server of the machine: %v", s.Annotations)
	}
}

// A Server made anew bears no doubt, and its inventory does not change.
func TestAServerIsLookedAtForItsMachineToo(t *testing.T) {
	doubted := &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: machine},
		Custody: &policyv1alpha1.Custody{Doubt: &policyv1alpha1.RestoredDoubt{}}}
	bare := inState("Available", "")
	bare.Annotations = nil
	for name, c := range map[string]struct {
		server *v1alpha1.Server
		stored []client.Object
		want   int
	}{
		"that bears the doubt":          {inState("Available", restored.Doubted), nil, 1},
		"whose machine is in doubt":     {bare, []client.Object{doubted}, 1},
		"whose machine is in no doubt":  {bare, []client.Object{&policyv1alpha1.ServerInventory{ObjectMeta: doubted.ObjectMeta}}, 0},
		"of whose machine none is kept": {bare, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			k := &keeper{client: cluster(t, c.stored...)}
			if got := k.ofServer(t.Context(), c.server); len(got) != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestAConfirmedDoubtEnds(t *testing.T) {
	held := inState("Reserved", restored.Confirmed)
	held.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "shop", Name: "web"}
	clean := &policyv1alpha1.CleanRecord{Cause: policyv1alpha1.CleanWiped}
	inventory := &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: machine}, Custody: &policyv1alpha1.Custody{
		Marks: []string{"Dirty"}, Clean: clean, Doubt: &policyv1alpha1.RestoredDoubt{Since: metav1.NewMicroTime(time.Unix(50, 0))}}}
	s, i := settle(t, cluster(t, held, inventory))
	if restored.Marked(s) || restored.On(i) != nil || len(i.Custody.Marks) != 1 || i.Custody.Clean == nil || len(s.Annotations) != 1 {
		t.Errorf("%v %+v", s.Annotations, i.Custody)
	}
	s, i = settle(t, cluster(t, inState("Observing", restored.Confirmed), inventory.DeepCopy()))
	if restored.Marked(s) || restored.On(i) != nil || i.Custody.Clean != nil {
		t.Errorf("a former wipe of a machine that was found running counts: %v %+v", s.Annotations, i.Custody)
	}
	s, i = settle(t, cluster(t, inState("Available", restored.Confirmed), inventory.DeepCopy()))
	if restored.Of(s, i) != restored.Inspection {
		t.Errorf("a free one is to be inspected: %v %+v", s.Annotations, i.Custody)
	}
}

// versions answers lists with resource versions of a store, one after the other.
func versions(c client.WithWatch, all ...string) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			if err := c.List(ctx, list, o...); err != nil {
				return err
			}
			list.SetResourceVersion(all[0])
			all = all[1:]
			return nil
		},
	})
}

// gauge is what the watch shows of the freeze.
func gauge(t *testing.T, w *watch) float64 {
	t.Helper()
	all := prometheus.NewRegistry()
	all.MustRegister(w.frozen)
	families, err := all.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families[0].GetMetric()[0].GetGauge().GetValue()
}

func freezes(t *testing.T, c client.Client) []policyv1alpha1.Freeze {
	t.Helper()
	var control policyv1alpha1.FleetControl
	if err := client.IgnoreNotFound(c.Get(t.Context(), types.NamespacedName{Name: policyv1alpha1.FleetControlName}, &control)); err != nil {
		t.Fatal(err)
	}
	return control.Spec.Freezes
}

func TestAManagerThatRanOnThroughARestoreFreezesTheFleetOnce(t *testing.T) {
	other := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName}}
	other.Spec.Freezes = []policyv1alpha1.Freeze{{Name: "recall", Level: policyv1alpha1.FreezeDestructive}}
	narrow := other.DeepCopy()
	narrow.Spec.Freezes = []policyv1alpha1.Freeze{{Name: FreezeName, Level: policyv1alpha1.FreezeMaintenance}}
	for name, c := range map[string]struct {
		control *policyv1alpha1.FleetControl
		want    int
	}{
		"where there is no FleetControl":             {nil, 1},
		"beside other freezes":                       {other, 2},
		"in place of a weaker one that has its name": {narrow, 1},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{}
			if c.control != nil {
				objects = append(objects, c.control.DeepCopy())
			}
			store := cluster(t, objects...)
			w := newWatch(store, versions(store, "90", "95", "40", "41", "42", "43"), nil, time.Second)
			before := len(freezes(t, store))
			for i := range 3 {
				if err := w.look(t.Context()); err != nil || len(freezes(t, store)) != before {
					t.Fatalf("look %d: %v", i, err)
				}
			}
			if err := w.look(t.Context()); err != nil {
				t.Fatal(err)
			}
			all := freezes(t, store)
			last := all[len(all)-1]
			if len(all) != c.want || last.Name != FreezeName || last.Level != policyv1alpha1.FreezeAll || !strings.Contains(last.Reason, "from resource version 95 to 41") {
				t.Fatalf("freezes %+v", all)
			}
			if got := gauge(t, w); got != 1 {
				t.Errorf("the gauge is %v", got)
			}
			control := &policyv1alpha1.FleetControl{}
			if err := store.Get(t.Context(), types.NamespacedName{Name: policyv1alpha1.FleetControlName}, control); err != nil {
				t.Fatal(err)
			}
			control.Spec.Freezes = nil
			if err := store.Update(t.Context(), control); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := w.look(t.Context()); err != nil || len(freezes(t, store)) != 0 {
					t.Errorf("it is frozen anew: %v %v", err, freezes(t, store))
				}
				if got := gauge(t, w); got != 0 {
					t.Errorf("the gauge is %v once the freeze is lifted", got)
				}
			}
		})
	}
}

func TestAFreezeThatCannotBeStoredIsTriedAgain(t *testing.T) {
	store := cluster(t)
	refuses := true
	writer := interceptor.NewClient(store, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if refuses {
				return errors.New("no route")
			}
			return c.Create(ctx, o, options...)
		},
	})
	w := newWatch(writer, versions(store, "90", "40", "41", "42"), nil, time.Second)
	var err error
	for range 3 {
		err = w.look(t.Context())
	}
	if err == nil {
		t.Fatal("the failure is not told")
	}
	refuses = false
	if err := w.look(t.Context()); err != nil || len(freezes(t, store)) != 1 {
		t.Errorf("%v %v", err, freezes(t, store))
	}
}
