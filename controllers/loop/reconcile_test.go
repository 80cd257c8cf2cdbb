// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

const testFinalizer = "test/finalizer"

// plan is a scope of a server that ends as the test says. It decides nothing.
type plan struct {
	outcome Outcome
	ending  Progress
	record  func()
}

type nothing struct{}

func (p *plan) Decide() nothing                                                   { return nothing{} }
func (p *plan) Finalize(context.Context) Progress                                 { return p.ending }
func (p *plan) Observe(context.Context, *v1alpha1.Server) (Scope[nothing], error) { return p, nil }
func (p *plan) Apply(context.Context, nothing) Outcome {
	if p.record != nil {
		p.record()
	}
	return p.outcome
}

// running is the loop over one server, named a.
func running(t *testing.T, p *plan, s *v1alpha1.Server) (*Reconciler[*v1alpha1.Server, nothing], client.Client) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	s.Name, s.UID, s.Finalizers = "a", "uid-a", []string{testFinalizer}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(s).WithStatusSubresource(s).Build()
	return &Reconciler[*v1alpha1.Server, nothing]{
		Client: api, Subject: p, Finalizer: testFinalizer, New: func() *v1alpha1.Server { return &v1alpha1.Server{} },
	}, api
}

func look(t *testing.T, r *Reconciler[*v1alpha1.Server, nothing]) (ctrl.Result, error) {
	t.Helper()
	return r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "a"}})
}

var errMissing = apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "b")

func TestAnEffectThatMissesAnotherObjectGoesBackToTheQueue(t *testing.T) {
	p := &plan{outcome: Outcome{Effect: "A", Progress: Broken(errMissing), Again: time.Minute}}
	r, _ := running(t, p, &v1alpha1.Server{})
	if result, err := look(t, r); err == nil && result.RequeueAfter == 0 {
		t.Error("the server is forgotten, and its deadline with it")
	}
}

func TestAnEndThatMissesAnotherObjectGoesBackToTheQueue(t *testing.T) {
	now := metav1.Now()
	r, _ := running(t, &plan{ending: Broken(errMissing)}, &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}})
	if result, err := look(t, r); err == nil && result.RequeueAfter == 0 {
		t.Error("the server is forgotten, and never goes")
	}
}

func TestAnObjectThatWentWhileItWasLookedAtIsNoError(t *testing.T) {
	p := &plan{outcome: Outcome{Again: time.Minute}}
	s := &v1alpha1.Server{}
	r, api := running(t, p, s)
	p.record = func() {
		s.Finalizers = nil
		if err := api.Update(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if err := api.Delete(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	r.Subject = changing{p}
	if result, err := look(t, r); err != nil || !result.IsZero() {
		t.Errorf("got %v, %v", result, err)
	}
}

// unobserved is a subject of which nothing can be observed.
type unobserved struct{ err error }

func (u unobserved) Observe(context.Context, *v1alpha1.Server) (Scope[nothing], error) {
	return nil, u.err
}

func TestARaceLostWhileObservingIsNoErrorAndIsRunAgain(t *testing.T) {
	r, _ := running(t, nil, &v1alpha1.Server{})
	r.Subject = unobserved{apierrors.NewConflict(schema.GroupResource{Resource: "serverclaims"}, "c", errors.New("changed"))}
	if result, err := look(t, r); err != nil || result.RequeueAfter == 0 {
		t.Errorf("got %v, %v", result, err)
	}
}

func TestWhatIsCutOffByTheEndOfTheManagerIsNoError(t *testing.T) {
	cut := fmt.Errorf("get bmcs: %w", context.Canceled)
	for name, c := range map[string]struct {
		stops bool
		err   error
		want  bool
	}{
		"cut off as the manager stops":             {true, cut, false},
		"another error as the manager stops":       {true, errors.New("down"), true},
		"cut off though the manager does not stop": {false, cut, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := running(t, nil, &v1alpha1.Server{})
			r.Subject = unobserved{c.err}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if c.stops {
				stop()
			}
			if _, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Name: "a"}}); (err != nil) != c.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

// changing is a plan that has something to write.
type changing struct{ *plan }

func (c changing) Observe(_ context.Context, s *v1alpha1.Server) (Scope[nothing], error) {
	s.Labels = map[string]string{"rack": "7"}
	return c.plan, nil
}

func TestWhatWasLetGoIsNotWrittenOnceMoreWhileTheCacheStillShowsIt(t *testing.T) {
	now := metav1.Now()
	r, api := running(t, &plan{ending: Holds()}, &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}})
	shown := &v1alpha1.Server{}
	if err := api.Get(t.Context(), types.NamespacedName{Name: "a"}, shown); err != nil {
		t.Fatal(err)
	}
	patches := 0
	r.Client = interceptor.NewClient(api.(client.WithWatch), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			shown.DeepCopyInto(o.(*v1alpha1.Server))
			return nil
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			patches++
			return c.Patch(ctx, o, p, opts...)
		},
	})
	for range 3 {
		if _, err := look(t, r); err != nil {
			t.Fatal(err)
		}
	}
	if patches != 1 {
		t.Errorf("written %d times", patches)
	}
	shown.UID = "uid-b" // made anew under its name, and deleted
	_, _ = look(t, r)
	if patches != 2 {
		t.Error("what has come in its place is not looked at")
	}
}

// patient is a plan whose record waits until the model is known.
type patient struct{ *plan }

func (p patient) Observe(_ context.Context, s *v1alpha1.Server) (Scope[nothing], error) {
	s.Status.ObservedGeneration, s.Status.Model = 7, s.Labels["model"]
	return p, nil
}

func waitsForModel(_, after *v1alpha1.Server) time.Duration {
	if after.Status.Model == "" {
		return time.Minute
	}
	return 0
}

func TestAStatusThatIsDeferredIsStoredWithTheNextWrite(t *testing.T) {
	r, api := running(t, nil, &v1alpha1.Server{})
	r.Subject, r.Defers = patient{&plan{outcome: Outcome{MayWait: true}}}, waitsForModel
	stored := func() *v1alpha1.Server {
		t.Helper()
		if _, err := look(t, r); err != nil {
			t.Fatal(err)
		}
		s := &v1alpha1.Server{}
		if err := api.Get(t.Context(), types.NamespacedName{Name: "a"}, s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := stored()
	if s.Status.ObservedGeneration != 0 {
		t.Errorf("stored at once: %+v", s.Status)
	}
	s.Labels = map[string]string{"model": "X"}
	if err := api.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if s := stored(); s.Status.ObservedGeneration != 7 || s.Status.Model != "X" {
		t.Errorf("not stored with what came: %+v", s.Status)
	}
}

func TestWhatIsRequestedIsStoredBefore(t *testing.T) {
	for name, c := range map[string]struct {
		requests, mayWait bool
		refused           error
		want              int64
		done              int
	}{
		"a record that requests something is never deferred":      {requests: true, mayWait: true, want: 7, done: 1},
		"one that requests nothing may be":                        {mayWait: true},
		"what could not be stored is not requested":               {requests: true, refused: errors.New("down")},
		"what another wrote in between is not requested":          {requests: true, refused: apierrors.NewConflict(schema.GroupResource{}, "a", nil)},
		"what was stored without a word of that is not requested": {requests: true, refused: errLost, want: 7},
		"what is gone by then is not requested":                   {requests: true, refused: apierrors.NewNotFound(schema.GroupResource{}, "a")},
		"a record that has no leave to wait is stored":            {requests: true, want: 7, done: 1},
	} {
		t.Run(name, func(t *testing.T) {
			done := 0
			p := &plan{outcome: Outcome{MayWait: c.mayWait}}
			if c.requests {
				p.outcome.Requests = []func(){func() { done++ }}
			}
			r, api := running(t, p, &v1alpha1.Server{})
			r.Subject, r.Defers = observing{p}, func(_, _ *v1alpha1.Server) time.Duration { return time.Minute }
			r.Client = refusing(api, c.refused)
			_, _ = look(t, r)
			s := &v1alpha1.Server{}
			if err := api.Get(t.Context(), types.NamespacedName{Name: "a"}, s); err != nil {
				t.Fatal(err)
			}
			if s.Status.ObservedGeneration != c.want || done != c.done {
				t.Errorf("stored generation %d, requested %d times", s.Status.ObservedGeneration, done)
			}
		})
	}
}

// observing is a plan that records what it observes.
type observing struct{ *plan }

func (o observing) Observe(_ context.Context, s *v1alpha1.Server) (Scope[nothing], error) {
	s.Status.ObservedGeneration = 7
	return o.plan, nil
}

// errLost is a write that was stored and whose answer never came.
var errLost = errors.New("connection reset")

// refusing is an API server that answers each write of a status with an error.
func refusing(api client.Client, err error) client.Client {
	return interceptor.NewClient(api.(client.WithWatch), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err == nil || errors.Is(err, errLost) {
				if stored := c.SubResource(sub).Patch(ctx, o, p, opts...); stored != nil {
					return stored
				}
			}
			return err
		},
	})
}

func TestAReportThatFailsIsMadeOnceMore(t *testing.T) {
	now := metav1.Now()
	r, _ := running(t, &plan{}, &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}})
	r.HandsOff = func(*v1alpha1.Server) bool { return true }
	told := 0
	r.Withheld = func(context.Context, *v1alpha1.Server) error {
		if told++; told == 1 {
			return errors.New("down")
		}
		return nil
	}
	if _, err := look(t, r); err == nil {
		t.Error("a report that failed is no error")
	}
	for range 3 {
		if _, err := look(t, r); err != nil {
			t.Fatal(err)
		}
	}
	if told != 2 {
		t.Errorf("reported %d times", told)
	}
}

func TestWhatIsDeletedWhileNobodyMayTouchItIsReportedOnce(t *testing.T) {
	now := metav1.Now()
	deleted := metav1.ObjectMeta{DeletionTimestamp: &now}
	for name, c := range map[string]struct {
		object    metav1.ObjectMeta
		finalizer string
		handsOff  bool
		want      int
	}{
		"deleted and left alone":             {deleted, testFinalizer, true, 1},
		"left alone":                         {metav1.ObjectMeta{}, testFinalizer, true, 0},
		"deleted, and kept by somebody else": {deleted, "", true, 0},
		"deleted":                            {deleted, testFinalizer, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := running(t, &plan{ending: Waiting("", "", 0)}, &v1alpha1.Server{ObjectMeta: c.object})
			r.Finalizer, r.HandsOff = c.finalizer, func(*v1alpha1.Server) bool { return c.handsOff }
			told := 0
			r.Withheld = func(context.Context, *v1alpha1.Server) error { told++; return nil }
			for range 3 {
				if _, err := look(t, r); err != nil {
					t.Fatal(err)
				}
			}
			if told != c.want {
				t.Errorf("reported %d times, want %d", told, c.want)
			}
		})
	}
}
