// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe/registry/record"
)

func (f *fleet) records() []policyv1alpha1.SanitizationRecord {
	f.t.Helper()
	var list policyv1alpha1.SanitizationRecordList
	if err := f.client.List(f.t.Context(), &list); err != nil {
		f.t.Fatal(err)
	}
	return list.Items
}

// sinkFunc is a Sink.
type sinkFunc func(*policyv1alpha1.SanitizationRecord) error

func (s sinkFunc) Append(_ context.Context, r *policyv1alpha1.SanitizationRecord) error { return s(r) }

func (s sinkFunc) Has(context.Context, string, int64) (bool, error) { return false, nil }

func TestTheRecordOfAWipe(t *testing.T) {
	config := &metalv1alpha1.ServerBootConfiguration{
		ObjectMeta: metav1.ObjectMeta{Namespace: "metalaw-system", Name: "wipe"},
		Spec:       metalv1alpha1.ServerBootConfigurationSpec{ServerRef: corev1.LocalObjectReference{Name: "srv"}, Image: "probe@sha256:1"},
	}
	revision := &policyv1alpha1.PolicyRevision{ObjectMeta: metav1.ObjectMeta{Name: "rev"}, Spec: policyv1alpha1.PolicyRevisionSpec{Digest: "sha256:2"}}
	held := emptyInventory()
	held.Custody = &policyv1alpha1.Custody{LastHolder: &policyv1alpha1.Holder{Namespace: "team", Name: "web", UID: "holder"}}
	f := newFleet(t, func(s *metalv1alpha1.Server, o *Options) {
		asWipe(s, o)
		s.Spec.BootConfigurationRef.Name = "wipe"
		s.Status.Lifecycle.Revision = "rev"
		s.Annotations[metalv1alpha1.ClaimEndedByAnnotation] = "holder jane"
	}, config, revision, held)
	f.do("POST", "/register", "mine", `{"systemUUID":"`+uuid+`","agentVersion":"1.2","data":`+twoDisks+`}`)
	f.do("POST", "/wipe", "mine", running)
	if got := f.records(); len(got) != 0 {
		t.Fatalf("a wipe that runs has records: %+v", got)
	}
	f.now = start.Add(time.Hour)
	if got := f.do("POST", "/wipe", "mine", verified); got.Code != http.StatusOK {
		t.Fatalf("got %d %s", got.Code, got.Body)
	}
	all := f.records()
	if len(all) != 1 {
		t.Fatalf("records %+v", all)
	}
	s := all[0].Spec
	if s.Holder.Name != "web" || s.EndedBy != "jane" || s.PolicyDigest != "sha256:2" || s.AgentImage != "probe@sha256:1" || s.AgentVersion != "1.2" ||
		s.Entry != 7 || s.State != "Verified" || len(s.Media) != 2 || !s.StartedAt.Time.Equal(start) || !s.RecordedAt.Time.Equal(f.now) {
		t.Errorf("record %+v", s)
	}
	if err := record.Verify(all); err != nil {
		t.Error(err)
	}
	last := f.inventory(uuid).LastRecord
	if last == nil || *last != *record.Reference(&all[0]) {
		t.Errorf("the inventory remembers %+v", last)
	}
	f.do("POST", "/wipe", "mine", verified)
	if got := f.records(); len(got) != 1 {
		t.Errorf("the same end again made another record: %+v", got)
	}
}

func TestAFailedWipeIsRecordedAsTheRegistryJudgedIt(t *testing.T) {
	f := newFleet(t, asWipe)
	f.do("POST", "/register", "mine", report(uuid, twoDisks))
	f.do("POST", "/wipe", "mine", `{"systemUUID":"`+uuid+`","state":"Verified","disks":[{"path":"/dev/sda","serial":"A","state":"Verified"}]}`)
	if got := f.records(); len(got) != 1 || got[0].Spec.State != "Failed" || !strings.Contains(got[0].Spec.Message, "sdb (wwid B)") {
		t.Errorf("records %+v", got)
	}
}

// What is not recorded does not count: the wipe stays as it runs, and the agent is asked to come again.
func TestAWipeWithoutARecordDoesNotEnd(t *testing.T) {
	refused := errors.New("disk full")
	for name, breaks := range map[string]func(*fleet) func(){
		"as long as the API server takes no record": func(f *fleet) func() {
			f.registry.options.Writer = interceptor.NewClient(f.client.(client.WithWatch), interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
					if _, is := o.(*policyv1alpha1.SanitizationRecord); is {
						return apierrors.NewForbidden(policyv1alpha1.GroupVersion.WithResource("sanitizationrecords").GroupResource(), o.GetName(), refused)
					}
					return c.Create(ctx, o, options...)
				},
			})
			return func() { f.registry.options.Writer = f.client }
		},
		"as long as the sink takes none": func(f *fleet) func() {
			f.registry.options.Sink = sinkFunc(func(*policyv1alpha1.SanitizationRecord) error { return refused })
			return func() {
				f.registry.options.Sink = sinkFunc(func(*policyv1alpha1.SanitizationRecord) error { return nil })
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, asWipe)
			f.do("POST", "/register", "mine", report(uuid, twoDisks))
			mend := breaks(f)
			for range 2 {
				got := f.do("POST", "/wipe", "mine", verified)
				if got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") != "10" || strings.Contains(got.Body.String(), "disk full") {
					t.Fatalf("got %d %v %s", got.Code, got.Header(), got.Body)
				}
				f.now = f.now.Add(time.Minute)
			}
			if got := f.inventory(uuid); got.Wipe.State != "Running" || got.LastRecord != nil {
				t.Fatalf("the inventory is %+v", got)
			} else if heard := got.Wipe.UpdatedAt.Time; !heard.Equal(f.now.Add(-time.Minute)) {
				t.Errorf("the agent was heard last at %s, so that it loses its power as a silent one", heard)
			}
			mend()
			if got := f.do("POST", "/wipe", "mine", verified); got.Code != http.StatusOK {
				t.Fatalf("mended: %d %s", got.Code, got.Body)
			}
			all := f.records()
			if len(all) != 1 || !all[0].Spec.StartedAt.Time.Equal(start) {
				t.Errorf("records %+v", all)
			}
			if got := f.inventory(uuid); got.Wipe.State != "Verified" || got.LastRecord == nil {
				t.Errorf("the inventory is %+v", got)
			}
		})
	}
}

// The chain in the sink has no gap either: a wipe that another end followed while the sink was away is in it.
func TestARecordThatTheSinkDidNotTakeIsKeptBeforeTheNext(t *testing.T) {
	f := newFleet(t, asWipe)
	away := true
	var kept []policyv1alpha1.SanitizationRecord
	f.registry.options.Sink = sinkFunc(func(r *policyv1alpha1.SanitizationRecord) error {
		if away {
			return errors.New("no route")
		}
		kept = append(kept, *r)
		return nil
	})
	f.do("POST", "/register", "mine", report(uuid, twoDisks))
	if got := f.do("POST", "/wipe", "mine", verified); got.Code != http.StatusServiceUnavailable {
		t.Fatalf("got %d %s", got.Code, got.Body)
	}
	away = false
	if got := f.do("POST", "/wipe", "mine", strings.Replace(verified, `"Verified","disks"`, `"Failed","disks"`, 1)); got.Code != http.StatusOK {
		t.Fatalf("got %d %s", got.Code, got.Body)
	}
	if err := record.Verify(kept); err != nil || len(kept) != 2 {
		t.Errorf("the sink has %d records: %v", len(kept), err)
	}
}

// The record is there and in the sink before anything says that the server is clean.
func TestTheRecordComesBeforeTheEndOfTheWipe(t *testing.T) {
	f := newFleet(t, asWipe)
	var order []string
	f.registry.options.Sink = sinkFunc(func(*policyv1alpha1.SanitizationRecord) error {
		order = append(order, "sink")
		return nil
	})
	f.do("POST", "/register", "mine", report(uuid, twoDisks))
	f.do("POST", "/wipe", "mine", running)
	f.registry.options.Writer = interceptor.NewClient(f.client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			order = append(order, "record")
			return c.Create(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			order = append(order, "inventory")
			return c.Patch(ctx, o, p, options...)
		},
	})
	f.do("POST", "/wipe", "mine", verified)
	if got := strings.Join(order, " "); got != "record sink inventory" {
		t.Errorf("the order was %q", got)
	}
}

func TestAReplicaThatDiesAfterTheRecordLeavesOneRecord(t *testing.T) {
	for name, again := range map[string]struct {
		body string
		want int
	}{
		"where the agent repeats the end":        {verified, 1},
		"and two where it says another end then": {strings.Replace(verified, `"Verified","disks"`, `"Failed","disks"`, 1), 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, asWipe)
			f.do("POST", "/register", "mine", report(uuid, twoDisks))
			f.do("POST", "/wipe", "mine", running)
			f.registry.options.Writer = interceptor.NewClient(f.client.(client.WithWatch), interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return errors.New("killed")
				},
			})
			if got := f.do("POST", "/wipe", "mine", verified); got.Code != http.StatusInternalServerError {
				t.Fatalf("got %d %s", got.Code, got.Body)
			}
			f.registry.options.Writer = f.client
			f.now = start.Add(time.Hour)
			if got := f.do("POST", "/wipe", "mine", again.body); got.Code != http.StatusOK {
				t.Fatalf("got %d %s", got.Code, got.Body)
			}
			all := f.records()
			if len(all) != again.want {
				t.Errorf("%d records", len(all))
			}
			if err := errors.Join(record.Verify(all), record.Reaches(all, f.inventory(uuid).LastRecord)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTheChainGoesOn(t *testing.T) {
	for name, forget := range map[string]bool{"as the inventory remembers it": false, "though the inventory is new": true} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, asWipe)
			for entry := int64(7); entry < 10; entry++ {
				var server metalv1alpha1.Server
				if err := f.client.Get(t.Context(), client.ObjectKey{Name: "srv"}, &server); err != nil {
					t.Fatal(err)
				}
				server.Status.Lifecycle.Entry, server.Status.Lifecycle.Credential.Entry = entry, entry
				if err := f.client.Update(t.Context(), &server); err != nil {
					t.Fatal(err)
				}
				f.do("POST", "/register", "mine", report(uuid, twoDisks))
				if got := f.do("POST", "/wipe", "mine", verified); got.Code != http.StatusOK {
					t.Fatalf("entry %d: %d %s", entry, got.Code, got.Body)
				}
				if forget {
					if err := f.client.Delete(t.Context(), f.inventory(uuid)); err != nil {
						t.Fatal(err)
					}
				}
			}
			all := f.records()
			if err := record.Verify(all); err != nil || len(all) != 3 {
				t.Errorf("%d records: %v", len(all), err)
			}
		})
	}
}
