// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/maintenance"
)

// errCrash is what a write answers after which the manager is gone.
var errCrash = errors.New("the manager is killed")

// world is a scheduler on a fake API server that counts what is written.
type world struct {
	t      *testing.T
	api    client.Client
	s      *scheduler
	policy *maintenance.Policy
	held   string
	at     time.Time
	// writes are the writes of the scheduler, in order; reads those past the cache.
	writes, reads []string
	// denied are the verbs that makers lack.
	denied []string
	// crashAfter is after how many more writes the manager is killed; 0 is never.
	crashAfter int
	mode       Mode
	// refuse is the error with which a patch of an object is answered; nil stores it.
	refuse func(client.Object) error
}

// Active, Held and Changed implement Bundles.
func (w *world) Active() *bundle.Bundle {
	return &bundle.Bundle{Manifest: bundle.Manifest{Settings: bundle.Settings{Maintenance: w.policy}}}
}
func (w *world) Held(string) (string, bool) { return w.held, w.held != "" }
func (w *world) Changed(func())             {}

// kinds are the kinds that the fake API server knows.
var kinds = sync.OnceValues(func() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, policyv1alpha1.AddToScheme, corev1.AddToScheme, authorizationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
})

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme, err := kinds()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, at: noon, policy: &maintenance.Policy{PerClaim: true, Expected: time.Hour}, mode: On}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.Server{}, &v1alpha1.ServerMaintenance{}, &v1alpha1.ServerClaim{}, &v1alpha1.ServerBootConfiguration{}).Build()
	w.restart()
	return w
}

// restart has another manager come after the one that was.
func (w *world) restart() {
	under, ok := w.api.(client.WithWatch)
	if !ok {
		w.t.Fatal("the fake API server cannot be watched")
	}
	counting := interceptor.NewClient(under, interceptor.Funcs{Create: w.create, Patch: w.patch, SubResourcePatch: w.patchStatus, Delete: w.remove})
	live := interceptor.NewClient(under, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
		opts ...client.GetOption) error {
		w.reads = append(w.reads, kindOf(o)+" "+key.Name)
		return c.Get(ctx, key, o, opts...)
	}})
	now := func() time.Time { return w.at }
	w.s = newScheduler(counting, live, Options{Mode: w.mode, Bundles: w, Gate: &fleet.Gate{Client: w.api, Reader: w.api, Now: now},
		Namespace: "metalaw-system", Now: now})
}

func kindOf(o client.Object) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1alpha1.")
}

// wrote counts a write. A manager that is killed does not learn what became of its write, which took place.
func (w *world) wrote(verb string, o client.Object, err error) error {
	if err != nil {
		return err
	}
	w.writes = append(w.writes, verb+" "+kindOf(o)+" "+o.GetName())
	if w.crashAfter > 0 {
		if w.crashAfter--; w.crashAfter == 0 {
			return errCrash
		}
	}
	return nil
}

func (w *world) create(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	switch of := o.(type) {
	case *authorizationv1.SubjectAccessReview:
		w.reads = append(w.reads, "review "+of.Spec.ResourceAttributes.Verb+" "+of.Spec.ResourceAttributes.Name)
		of.Status.Allowed = !slices.Contains(w.denied, of.Spec.ResourceAttributes.Verb)
		return nil
	case *corev1.ConfigMap:
		return c.Create(ctx, o, opts...)
	}
	return w.wrote("create", o, c.Create(ctx, o, opts...))
}

func (w *world) patch(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	if w.refuse != nil {
		if err := w.refuse(o); err != nil {
			return err
		}
	}
	return w.wrote("patch", o, c.Patch(ctx, o, p, opts...))
}

func (w *world) patchStatus(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	return w.wrote("status of", o, c.SubResource(sub).Patch(ctx, o, p, opts...))
}

func (w *world) remove(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
	return w.wrote("delete", o, c.Delete(ctx, o, opts...))
}

// pass runs the scheduler until it writes no more.
func (w *world) pass() {
	w.t.Helper()
	for range 20 {
		before := len(w.writes)
		if _, err := w.s.Reconcile(w.t.Context(), pass{}); err != nil {
			if !errors.Is(err, errCrash) {
				w.t.Fatal(err)
			}
			w.restart()
			continue
		}
		if len(w.writes) == before {
			return
		}
	}
	w.t.Fatalf("it writes again and again: %v", w.writes[max(0, len(w.writes)-10):])
}

// after lets time go by, and looks again.
func (w *world) after(d time.Duration) {
	w.t.Helper()
	w.at = w.at.Add(d)
	w.pass()
}

func change[T client.Object](w *world, o T, change func(T)) {
	w.t.Helper()
	if err := w.api.Get(w.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		w.t.Fatal(err)
	}
	status := o.DeepCopyObject().(T)
	change(o)
	if err := w.api.Update(w.t.Context(), o.DeepCopyObject().(T)); err != nil {
		w.t.Fatal(err)
	}
	if err := w.api.Get(w.t.Context(), client.ObjectKeyFromObject(o), status); err != nil {
		w.t.Fatal(err)
	}
	change(status)
	if err := w.api.Status().Update(w.t.Context(), status); err != nil {
		w.t.Fatal(err)
	}
}

// lifecycle moves each server as its own controller does: into Maintenance while it names one, and out of it afterwards. There it boots
// what the maintenance has a template for, and shuts the machine down when that ends.
func (w *world) lifecycle() {
	w.t.Helper()
	defer w.boot()
	var list v1alpha1.ServerList
	if err := w.api.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		change(w, &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: list.Items[i].Name}}, func(s *v1alpha1.Server) {
			was := s.Status.State
			switch {
			case s.Spec.ServerMaintenanceRef != nil:
				s.Status.State = v1alpha1.StateMaintenance
			case was == v1alpha1.StateMaintenance && s.Spec.ServerClaimRef != nil:
				s.Status.State = v1alpha1.StateReserved
			case was == v1alpha1.StateMaintenance:
				s.Status.State = v1alpha1.StateInitial
			}
		})
	}
}

// boot boots and shuts down the server s1 as the maintenance asks that holds it.
func (w *world) boot() {
	w.t.Helper()
	ref := w.server().Spec.ServerMaintenanceRef
	m := &v1alpha1.ServerMaintenance{}
	if ref == nil || w.api.Get(w.t.Context(), types.NamespacedName(*ref), m) != nil || m.Spec.ServerBootConfigurationTemplate == nil {
		return
	}
	power := v1alpha1.PowerStateOff
	if m.DeletionTimestamp.IsZero() && m.Annotations[v1alpha1.AbortAnnotation] == "" {
		power = v1alpha1.PowerStateOn
		if err := w.api.Create(w.t.Context(), bootOf(m, v1alpha1.ServerBootConfigurationStateReady)); client.IgnoreAlreadyExists(err) != nil {
			w.t.Fatal(err)
		}
	}
	change(w, &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "s1"}}, func(s *v1alpha1.Server) {
		s.Spec.MaintenanceBootConfigurationRef = ref
		s.Status.PowerState = power
	})
}

func (w *world) remake(o client.Object) {
	w.t.Helper()
	if err := w.api.Create(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) delete(o client.Object) {
	w.t.Helper()
	if err := w.api.Delete(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) server() *v1alpha1.Server { return readBack(w, &v1alpha1.Server{}, "", "s1") }

func (w *world) claim() *v1alpha1.ServerClaim {
	return readBack(w, &v1alpha1.ServerClaim{}, "team", "db")
}

func (w *world) sm(name string) *v1alpha1.ServerMaintenance {
	return readBack(w, &v1alpha1.ServerMaintenance{}, "ops", name)
}

func readBack[T client.Object](w *world, o T, namespace, name string) T {
	w.t.Helper()
	if err := w.api.Get(w.t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, o); err != nil {
		w.t.Fatal(err)
	}
	return o
}

// said is the state of a maintenance and the reason of its condition Granted.
func (w *world) said(name string) string {
	w.t.Helper()
	m := w.sm(name)
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionGranted)
	if c == nil {
		return string(m.Status.State)
	}
	return string(m.Status.State) + " " + c.Reason
}

func (w *world) is(name, want string) {
	w.t.Helper()
	if got := w.said(name); got != want {
		w.t.Errorf("maintenance %s is %q, want %q", name, got, want)
	}
}

func free(change ...func(*v1alpha1.Server)) *v1alpha1.Server {
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "s1", UID: "uid-s1"}}
	s.Spec.SystemUUID = "uuid-1"
	s.Status.State, s.Status.PowerState = v1alpha1.StateAvailable, v1alpha1.PowerStateOff
	s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 3}
	for _, c := range change {
		c(s)
	}
	return s
}

func claimed(s *v1alpha1.Server) {
	s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "team", Name: "db"}
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ClaimUIDAnnotation, "uid-db")
	s.Status.State, s.Status.PowerState = v1alpha1.StateReserved, v1alpha1.PowerStateOn
}

func claim(change ...func(*v1alpha1.ServerClaim)) *v1alpha1.ServerClaim {
	c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "db", UID: "uid-db"}}
	c.Spec.ServerRef = &corev1.LocalObjectReference{Name: "s1"}
	c.Status.Phase = v1alpha1.PhaseBound
	for _, f := range change {
		f(c)
	}
	return c
}

func approve(c *v1alpha1.ServerClaim) {
	metav1.SetMetaDataLabel(&c.ObjectMeta, v1alpha1.MaintenanceApprovedLabel, "yes")
}

func sm(name string, change ...func(*v1alpha1.ServerMaintenance)) *v1alpha1.ServerMaintenance {
	m := &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name, UID: types.UID("uid-" + name),
		CreationTimestamp: metav1.NewTime(noon.Add(time.Hour)), Annotations: map[string]string{v1alpha1.MakerAnnotation: `{"username":"jane"}`}}}
	m.Spec.ServerRef.Name = "s1"
	for _, c := range change {
		c(m)
	}
	return m
}

func enforced(m *v1alpha1.ServerMaintenance) {
	m.Spec.Policy = v1alpha1.ServerMaintenancePolicyEnforced
}

func boots(m *v1alpha1.ServerMaintenance) {
	m.Spec.ServerPower = v1alpha1.PowerOn
	m.Spec.ServerBootConfigurationTemplate = &v1alpha1.ServerBootConfigurationTemplate{Name: "t",
		Spec: v1alpha1.ServerBootConfigurationSpec{ServerRef: m.Spec.ServerRef}}
}

// bootOf is the boot configuration of a maintenance, as the server controller makes it.
func bootOf(m *v1alpha1.ServerMaintenance, state v1alpha1.ServerBootConfigurationState) *v1alpha1.ServerBootConfiguration {
	b := &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: "uid-boot",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ServerMaintenance", Name: m.Name, UID: m.UID,
			Controller: ptr.To(true)}}}}
	b.Spec.ServerRef = m.Spec.ServerRef
	b.Status.State = state
	return b
}
