// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
)

func TestACredentialYoungerThanTheCacheIsFound(t *testing.T) {
	stale := serverOf("srv", uuid, "former", metalv1alpha1.ProbePurposeProbe)
	f := newFleet(t, func(_ *metalv1alpha1.Server, o *Options) { o.Reader = fakeClient(stale) })
	f.registry.options.Live = f.client
	if got := f.do("POST", "/register", "mine", report(uuid, least)); got.Code != http.StatusCreated {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
}

// A cache lags behind the report that the registry has just stored, as after a watch that was cut.
func TestAWipeIsNotRefusedForAReportYoungerThanTheCache(t *testing.T) {
	f := newFleet(t, func(server *metalv1alpha1.Server, o *Options) {
		asWipe(server, o)
		o.Reader = fakeClient(server.DeepCopy(), emptyInventory())
	}, emptyInventory())
	f.registry.options.Live = f.client
	for _, step := range []struct{ path, body string }{{"/register", report(uuid, twoDisks)}, {"/wipe", verified}} {
		if got := f.do("POST", step.path, "mine", step.body); got.Code >= 300 {
			t.Fatalf("%s: got %d %s", step.path, got.Code, got.Body)
		}
	}
	if got := f.inventory(uuid).Wipe; got == nil || got.State != "Verified" {
		t.Errorf("the wipe is %+v", got)
	}
}

func TestABootStateIsNotRefusedForAConfigurationYoungerThanTheCache(t *testing.T) {
	f := newFleet(t, func(server *metalv1alpha1.Server, o *Options) { o.Reader = fakeClient(server.DeepCopy()) })
	f.registry.options.Live = f.client
	if got := f.do("POST", "/bootstate", "mine", `{"systemUUID":"`+uuid+`","booted":true}`); got.Code != http.StatusOK {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
}

func TestAReportYoungerThanTheCacheIsFound(t *testing.T) {
	f := newFleet(t, func(server *metalv1alpha1.Server, o *Options) { o.Reader = fakeClient(server.DeepCopy()) })
	f.registry.options.Live = f.client
	f.do("POST", "/register", "mine", report(uuid, least))
	if got := f.do("GET", "/systems/"+uuid, "mine", ""); got.Code != http.StatusOK {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
}

func TestABootStateIsNotRefusedForWhatACacheShowsOfTheServersConfiguration(t *testing.T) {
	for name, stale := range map[string]*metalv1alpha1.ObjectReference{
		"none yet":                      nil,
		"one that is gone by now":       {Namespace: "metalaw-system", Name: "former"},
		"one in a namespace that isn't": {Namespace: "gone", Name: "srv"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, func(server *metalv1alpha1.Server, o *Options) {
				cached := server.DeepCopy()
				cached.Spec.BootConfigurationRef = stale
				o.Reader = fakeClient(cached)
			})
			f.registry.options.Live = f.client
			if got := f.do("POST", "/bootstate", "mine", `{"systemUUID":"`+uuid+`","booted":true}`); got.Code != http.StatusOK {
				t.Errorf("got %d %s", got.Code, got.Body)
			}
		})
	}
}

// The cache shows no inventory. What the API server has counts, and the registry asks it for no more than it needs.
func TestAnInventoryYoungerThanTheCacheCounts(t *testing.T) {
	bound := emptyInventory()
	bound.Enrolment = &policyv1alpha1.Enrolment{Entry: 7, KeyHash: metalprobe.HashToken(strings.Repeat("a", 64))}
	for name, c := range map[string]struct {
		stored []client.Object
		status int
		reads  int
	}{
		"none stands: the other byte order is looked for":                         {nil, http.StatusCreated, 1},
		"one stands: it is read when the create fails":                            {[]client.Object{emptyInventory()}, http.StatusCreated, 2},
		"one stands that is bound to another agent, and may owe a record of that": {[]client.Object{bound}, http.StatusForbidden, 3},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, func(server *metalv1alpha1.Server, o *Options) { o.Reader = fakeClient(server.DeepCopy()) }, c.stored...)
			reads := 0
			f.registry.options.Live = interceptor.NewClient(f.client.(client.WithWatch), interceptor.Funcs{
				Get: func(ctx context.Context, live client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if _, is := o.(*policyv1alpha1.ServerInventory); is {
						reads++
					}
					return live.Get(ctx, key, o, options...)
				},
			})
			if got := f.do("POST", "/register", "mine", report(uuid, least)); got.Code != c.status || reads != c.reads {
				t.Errorf("got %d %s after %d reads of the inventory, want %d after %d", got.Code, got.Body, reads, c.status, c.reads)
			}
		})
	}
}

// A request that has read the inventory past the cache writes what it read: the API server refuses it if another wrote meanwhile.
func TestTheEndOfAWipeIsWrittenFromWhatItsRequestRead(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile bool
		reads     int
	}{
		"as it was read":                    {false, 1},
		"unless another wrote it meanwhile": {true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, asWipe)
			for _, step := range []struct{ path, body string }{{"/register", report(uuid, twoDisks)}, {"/wipe", running}} {
				if got := f.do("POST", step.path, "mine", step.body); got.Code >= 300 {
					t.Fatalf("%s: got %d %s", step.path, got.Code, got.Body)
				}
			}
			reads := 0
			f.registry.options.Live = interceptor.NewClient(f.client.(client.WithWatch), interceptor.Funcs{
				Get: func(ctx context.Context, live client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					err := live.Get(ctx, key, o, options...)
					if _, is := o.(*policyv1alpha1.ServerInventory); !is {
						return err
					}
					if reads++; reads == 1 && c.meanwhile {
						other := f.inventory(uuid)
						other.Custody.Marks = []string{"Stranger"}
						if err := live.Update(ctx, other); err != nil {
							t.Error(err)
						}
					}
					return err
				},
			})
			if got := f.do("POST", "/wipe", "mine", verified); got.Code != http.StatusOK || reads != c.reads {
				t.Errorf("got %d %s after %d reads of the inventory, want %d", got.Code, got.Body, reads, c.reads)
			}
			if i := f.inventory(uuid); i.Wipe.State != policyv1alpha1.WipeVerified || (len(i.Custody.Marks) > 0) != c.meanwhile {
				t.Errorf("stored %+v, %+v", i.Wipe, i.Custody)
			}
		})
	}
}
