// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

// blind is a cache that never shows a Server.
func blind(api client.WithWatch) client.WithWatch {
	return interceptor.NewClient(api, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*v1alpha1.ServerList); ok {
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	})
}

// live counts the reads of Servers past the cache.
type live struct {
	client.Reader
	lists, gets int
}

func (l *live) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*v1alpha1.ServerList); ok {
		l.lists++
	}
	return l.Reader.List(ctx, list, opts...)
}

func (l *live) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, ok := o.(*v1alpha1.Server); ok {
		l.gets++
	}
	return l.Reader.Get(ctx, key, o, opts...)
}

func (w *world) machines() []string {
	w.t.Helper()
	var list v1alpha1.ServerList
	w.must(w.api.List(w.t.Context(), &list))
	var all []string
	for i := range list.Items {
		all = append(all, list.Items[i].Name+" "+list.Items[i].Spec.SystemUUID)
	}
	return all
}

func TestNewSystemsCostNoListEach(t *testing.T) {
	inWorld(t, func(w *world) {
		reader := &live{Reader: w.api}
		w.subject.Reader = reader
		w.devices["b"].change(func(d *device) {
			for i := range 20 {
				uri := fmt.Sprintf("/redfish/v1/Systems/n%d", i)
				d.manager.SystemURIs = append(d.manager.SystemURIs, uri)
				d.systems[uri] = redfish.Identity{UUID: fmt.Sprintf("33333333-3333-3333-3333-3333333333%02d", i)}
			}
		})
		w.rest("b")
		if n := len(w.machines()); n != 21 || reader.lists != 1 || reader.gets != 0 {
			t.Errorf("%d Servers after %d lists and %d gets past the cache, want 21, 1 and 0", n, reader.lists, reader.gets)
		}
	})
}

func TestACacheThatLagsMakesNoSecondServer(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*world)
		want   string // the one Server; b-system-0 unless said otherwise
	}{
		"of one that stood before this process":            {func(*world) {}, ""},
		"of one that this process made":                    {func(w *world) { w.must(w.api.Delete(w.t.Context(), server1())); w.look2() }, ""},
		"of one that another made under the expected name": {func(w *world) { w.must(w.subject.servers.load(w.t.Context(), none{})) }, ""},
		"of one that stood before under another name": {func(w *world) {
			w.must(w.api.Delete(w.t.Context(), server1()))
			w.create(&v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}, Spec: v1alpha1.ServerSpec{SystemUUID: uuid1}})
		}, "elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.subject.Client = blind(w.api)
				c.before(w)
				for range 5 {
					w.look2()
				}
				if got := w.machines(); len(got) != 1 || got[0] != cmp.Or(c.want, "b-system-0")+" "+uuid1 {
					t.Errorf("Servers %v", got)
				}
			})
		})
	}
}

func TestAServerThatIsGoneIsMadeAnew(t *testing.T) {
	inWorld(t, func(w *world) {
		w.rest("b")
		w.must(w.subject.servers.load(t.Context(), w.api))
		w.must(w.api.Delete(t.Context(), server1()))
		w.rest("b")
		if got := w.machines(); len(got) != 1 {
			t.Errorf("Servers %v", got)
		}
	})
}

func server1() *v1alpha1.Server {
	return &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "b-system-0"}}
}

// none is an API server without a single Server.
type none struct{ client.Reader }

func (none) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// look2 is a reconcile and, where it began a read, the one that follows it.
func (w *world) look2() {
	w.t.Helper()
	for range 2 {
		_, err := w.look("b")
		w.must(err)
		synctest.Wait()
	}
}
