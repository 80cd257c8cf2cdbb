// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/restored"
	"github.com/metalaw/metalaw/metalprobe/registry/sink"
)

// askedSink is a Sink that says what it has.
type askedSink struct {
	sinkFunc
	has   func(systemUUID string, sequence int64) (bool, error)
	asked []string
}

func (s *askedSink) Has(_ context.Context, systemUUID string, sequence int64) (bool, error) {
	s.asked = append(s.asked, fmt.Sprintf("%s %d", systemUUID, sequence))
	return s.has(systemUUID, sequence)
}

func TestNoDiskOfAServerInDoubtIsErased(t *testing.T) {
	now := metav1.NewMicroTime(start)
	inventoried := func(d policyv1alpha1.RestoredDoubt) *policyv1alpha1.ServerInventory {
		i := emptyInventory()
		i.Custody = &policyv1alpha1.Custody{Doubt: &d}
		return i
	}
	for name, c := range map[string]struct {
		annotation string
		inventory  *policyv1alpha1.ServerInventory
		held       bool
	}{
		"by its annotation":                     {restored.Doubted, emptyInventory(), true},
		"by its annotation, without inventory":  {restored.Doubted, nil, true},
		"by its inventory alone":                {"", inventoried(policyv1alpha1.RestoredDoubt{Since: now}), true},
		"that was confirmed, but not yet ended": {restored.Confirmed, inventoried(policyv1alpha1.RestoredDoubt{Since: now}), true},
		"but of one whose data was found by the inspection and is to go": {restored.Inspect,
			inventoried(policyv1alpha1.RestoredDoubt{Since: now, InspectSince: &now}), false},
		"but of one that is not in doubt": {"", emptyInventory(), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, func(s *metalv1alpha1.Server, o *Options) {
				asWipe(s, o)
				if c.annotation != "" {
					s.Annotations[metalv1alpha1.RestoredDoubtAnnotation] = c.annotation
				}
			})
			if c.inventory != nil {
				if err := f.client.Create(t.Context(), c.inventory); err != nil {
					t.Fatal(err)
				}
			}
			got := f.do("GET", "/wipe/"+uuid, "mine", "")
			if held := got.Code == http.StatusServiceUnavailable; held != c.held || held && !strings.Contains(got.Body.String(), "metalaw restored --confirm srv") {
				t.Errorf("got %d %s", got.Code, got.Body)
			}
		})
	}
}

func TestNoWipeBeginsWhoseRecordTheSinkHas(t *testing.T) {
	third := policyv1alpha1.SanitizationRecord{ObjectMeta: metav1.ObjectMeta{Name: uuid + "-000003",
		Labels: map[string]string{policyv1alpha1.RecordMachineLabel: uuid}}, Spec: policyv1alpha1.SanitizationRecordSpec{Sequence: 3}}
	second := emptyInventory()
	second.LastRecord = &policyv1alpha1.RecordReference{Name: uuid + "-000002", Sequence: 2}
	f := newFleet(t, asWipe)
	s := &askedSink{has: func(_ string, n int64) (bool, error) { return n == 3, nil }}
	f.registry.options.Sink = s
	if err := f.client.Create(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	got := f.do("GET", "/wipe/"+uuid, "mine", "")
	if got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") == "" || !strings.Contains(got.Body.String(), "metalaw restored") {
		t.Fatalf("got %d %s", got.Code, got.Body)
	}
	if err := f.client.Create(t.Context(), &third); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := f.do("GET", "/wipe/"+uuid, "mine", ""); got.Code != http.StatusOK {
			t.Fatalf("with the record back from the sink: %d %s", got.Code, got.Body)
		}
	}
	if want := []string{uuid + " 3", uuid + " 4"}; fmt.Sprint(s.asked) != fmt.Sprint(want) {
		t.Errorf("asked %q", s.asked)
	}
}

func TestAWipeWaitsForASinkThatCannotBeAsked(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"one that does not answer":                                  {errors.New("no route"), http.StatusServiceUnavailable},
		"but not for one that tells nothing, as a former build did": {fmt.Errorf("s3: %w", sink.ErrNotAllowed), http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, asWipe)
			f.registry.options.Sink = &askedSink{has: func(string, int64) (bool, error) { return false, c.err }}
			if got := f.do("GET", "/wipe/"+uuid, "mine", ""); got.Code != c.want {
				t.Errorf("got %d %s", got.Code, got.Body)
			}
		})
	}
}
