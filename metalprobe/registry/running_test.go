// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

func TestNobodySpeaksForAMachineThatWasNotSeenOn(t *testing.T) {
	disks := `{"systemUUID":"` + uuid + `","state":"Running","disks":[{"path":"/dev/sda","state":"Erasing"}]}`
	notSeen := func(s *metalv1alpha1.Server, _ *Options) { s.Status.Lifecycle.SeenOnAt = nil }
	wiping := func(s *metalv1alpha1.Server, o *Options) { asWipe(s, o); notSeen(s, o) }
	open := func(s *metalv1alpha1.Server, o *Options) {
		notSeen(s, o)
		o.AllowUnauthenticated = func(*metalv1alpha1.Server) (bool, error) { return true, nil }
	}
	unminted := func(s *metalv1alpha1.Server, o *Options) { open(s, o); s.Status.Lifecycle.Credential = nil }
	for name, c := range map[string]struct {
		change       func(*metalv1alpha1.Server, *Options)
		method, path string
		body         string
		token        string
		after        int // the status once it was seen
	}{
		"a report of its hardware":                             {notSeen, "POST", "/register", report(uuid, least), "mine", http.StatusCreated},
		"a report without a token":                             {open, "POST", "/register", report(uuid, least), "-", http.StatusCreated},
		"a report without a token, before one has been minted": {unminted, "POST", "/register", report(uuid, least), "-", http.StatusCreated},
		"a report of a wipe":                                   {wiping, "POST", "/wipe", disks, "mine", http.StatusOK},
		"a boot state":                                         {notSeen, "POST", "/bootstate", `{"systemUUID":"` + uuid + `","booted":true}`, "mine", http.StatusOK},
		"a boot state without a token":                         {open, "POST", "/bootstate", `{"systemUUID":"` + uuid + `","booted":true}`, "-", http.StatusOK},
		"a deletion of what it reported":                       {notSeen, "DELETE", "/delete/" + uuid, "", "mine", http.StatusNotFound},
		"a question about a wipe":                              {wiping, "GET", "/wipe/" + uuid, "", "mine", http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, c.change)
			got := f.do(c.method, c.path, c.token, c.body)
			if got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") != "5" || len(f.stored()) != 0 {
				t.Errorf("before: %d %s, Retry-After %q, stored %d", got.Code, got.Body, got.Header().Get("Retry-After"), len(f.stored()))
			}
			f.seenOn()
			if got := f.do(c.method, c.path, c.token, c.body); got.Code != c.after {
				t.Errorf("after: %d %s", got.Code, got.Body)
			}
		})
	}
}

func TestOnlyWhatIsRefusedForMinutesIsTold(t *testing.T) {
	f := newFleet(t, func(s *metalv1alpha1.Server, _ *Options) { s.Status.Lifecycle.SeenOnAt = nil })
	var told []string
	for second := 0; second <= 200; second += 5 {
		f.now = start.Add(time.Duration(second) * time.Second)
		f.do("POST", "/register", "mine", report(uuid, least))
		if event := f.heard(); event != "" {
			told = append(told, fmt.Sprintf("%d s: %s", second, event))
		}
	}
	if len(told) != 1 || !strings.HasPrefix(told[0], "180 s: Warning ProbeReportRefused NotShownOn POST /register: the BMC has not shown") {
		t.Errorf("told %q", told)
	}
	if diff := cmp.Diff(map[string]float64{"NotYetShownOn": 36, "NotShownOn": 5}, f.outcomes()); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

func TestThePatienceBeginsAnewWithAnEntryAndAfterAPause(t *testing.T) {
	u := newUnseenReports()
	of := func(entry int64) grant { return grant{server: serverOf("srv", uuid, "mine", "Probe"), entry: entry} }
	for _, step := range []struct {
		minute int
		entry  int64
		want   bool
	}{{0, 1, false}, {1, 1, false}, {2, 1, false}, {3, 1, true}, {3, 2, false}, {4, 1, true}, {6, 1, false}, {7, 1, false}} {
		if got := u.long(of(step.entry), start.Add(time.Duration(step.minute)*time.Minute)); got != step.want {
			t.Errorf("minute %d, entry %d: %t", step.minute, step.entry, got)
		}
	}
}

// outcomes are the counters by outcome.
func (f *fleet) outcomes() map[string]float64 {
	f.t.Helper()
	families, err := f.metrics.Gather()
	if err != nil {
		f.t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "outcome" {
					got[label.GetValue()] += metric.GetCounter().GetValue()
				}
			}
		}
	}
	return got
}

// seenOn is what the manager writes when the BMC shows the machine on.
func (f *fleet) seenOn() {
	f.t.Helper()
	s := &metalv1alpha1.Server{}
	if err := f.client.Get(f.t.Context(), client.ObjectKey{Name: "srv"}, s); err != nil {
		f.t.Fatal(err)
	}
	s.Status.Lifecycle.SeenOnAt = &metav1.MicroTime{Time: start.Add(-time.Minute)}
	if err := f.client.Update(f.t.Context(), s); err != nil {
		f.t.Fatal(err)
	}
}
