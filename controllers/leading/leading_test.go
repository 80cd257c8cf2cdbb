// SPDX-License-Identifier: Apache-2.0

package leading

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

const lasts = 15 * time.Second

func lease(holder string, renewed time.Time) *coordinationv1.Lease {
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "metalaw-system", Name: "metalaw-leader"}}
	l.Spec.HolderIdentity, l.Spec.RenewTime = &holder, ptr.To(metav1.NewMicroTime(renewed))
	return l
}

func TestWhenALeaseShowsThatAProcessLeads(t *testing.T) {
	never := lease("me", noon)
	never.Spec.RenewTime = nil
	nobody := lease("me", noon)
	nobody.Spec.HolderIdentity = nil
	for name, c := range map[string]struct {
		lease *coordinationv1.Lease
		want  string
	}{
		"it was just renewed":             {lease("me", noon), ""},
		"it was renewed a while ago":      {lease("me", noon.Add(-14*time.Second)), ""},
		"it has run out":                  {lease("me", noon.Add(-15*time.Second)), "was renewed 15s ago, and lasts 15s"},
		"another process holds it":        {lease("other", noon), `is held by "other", and not by this process`},
		"its holder gave it back":         {lease("", noon), `is held by "", and not by this process`},
		"it has no holder":                {nobody, `is held by "", and not by this process`},
		"it was never renewed":            {never, "was never renewed"},
		"the clock was set back since":    {lease("me", noon.Add(time.Hour)), "was renewed 1h0m0s ahead of the clock of this process"},
		"the clock was set forward since": {lease("me", noon.Add(-time.Hour)), "was renewed 1h0m0s ago, and lasts 15s"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Lost(c.lease, "me", noon, lasts); got != c.want {
				t.Errorf("Lost() = %q, want %q", got, c.want)
			}
		})
	}
}

// leader is a process that has led since a second ago, and the reasons for which it was ended.
func leader(t *testing.T, api client.Reader) (*Leader, *[]string) {
	t.Helper()
	var ended []string
	return &Leader{Reader: api, Lease: types.NamespacedName{Namespace: "metalaw-system", Name: "metalaw-leader"}, Identity: "me", Lasts: lasts,
		Exit: func(why string) { ended = append(ended, why) }}, &ended
}

func TestAWriteIsFencedByTheStoredLease(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	down := errors.New("the API server is down")
	for name, c := range map[string]struct {
		objects []client.Object
		fails   error
		passes  bool
	}{
		"this process leads":       {objects: []client.Object{lease("me", time.Now().Add(-time.Second))}, passes: true},
		"another one leads":        {objects: []client.Object{lease("other", time.Now())}},
		"there is no Lease":        {},
		"the Lease cannot be read": {objects: []client.Object{lease("me", time.Now())}, fails: down},
	} {
		t.Run(name, func(t *testing.T) {
			reads := 0
			l, ended := leader(t, fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.objects...).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					reads++
					if c.fails != nil {
						return c.fails
					}
					return api.Get(ctx, key, o, opts...)
				}}).Build())
			if err := l.Fence(t.Context()); (err == nil) != c.passes || c.fails != nil && !errors.Is(err, c.fails) {
				t.Errorf("%v", err)
			}
			if reads != 1 || len(*ended) > 0 {
				t.Errorf("%d reads, ended %q", reads, *ended)
			}
		})
	}
}

func TestAProcessThatStoodStillEnds(t *testing.T) {
	for name, c := range map[string]struct {
		stands time.Duration
		ends   bool
	}{
		"not by running":                    {0, false},
		"not for less than its lease lasts": {14 * time.Second, false},
		"for as long as its lease lasts":    {15 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var late time.Duration // by how much the clock ran on while the process stood still
				l, ended := leader(t, nil)
				l.Now = func() time.Time { return time.Now().Add(late) }
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { _ = l.Start(ctx) }()
				time.Sleep(time.Hour + tick/2)
				synctest.Wait()
				late = c.stands
				l.runs() // as the fence of its next write does
				if got := len(*ended) > 0; got != c.ends {
					t.Errorf("ended %q, want %t", *ended, c.ends)
				}
			})
		})
	}
}
