// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

func TestNobodySpeaksForAMachineThatWasNotSeenOn(t *testing.T) {
	disks := `{"systemUUID":"` + uuid + `","state":"Running","disks":[{"path":"/dev/sda","state":"Erasing"}]}`
	notSeen := func(s *metalv1alpha1.Server, _ *Options) { s.Status.Lifecycle.Credential.ShownAt = nil }
	wiping := func(s *metalv1alpha1.Server, o *Options) { asWipe(s, o); notSeen(s, o) }
	for name, c := range map[string]struct {
		change       func(*metalv1alpha1.Server, *Options)
		method, path string
		body         string
		after        int // the status once it was seen
	}{
		"a report of its hardware": {notSeen, "POST", "/register", report(uuid, least), http.StatusCreated},
		"a report of a wipe":       {wiping, "POST", "/wipe", disks, http.StatusOK},
		"a question about a wipe":  {wiping, "GET", "/wipe/" + uuid, "", http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, c.change)
			got := f.do(c.method, c.path, "mine", c.body)
			if got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") != "5" || len(f.stored()) != 0 {
				t.Errorf("before: %d %s, Retry-After %q, stored %d", got.Code, got.Body, got.Header().Get("Retry-After"), len(f.stored()))
			}
			f.seenOn()
			if got := f.do(c.method, c.path, "mine", c.body); got.Code != c.after {
				t.Errorf("after: %d %s", got.Code, got.Body)
			}
		})
	}
}

func TestAMachineForWhichNoTokenStandsMayBeRunning(t *testing.T) {
	f := newFleet(t, func(s *metalv1alpha1.Server, o *Options) {
		s.Status.Lifecycle.Credential = nil
		o.AllowUnauthenticated = func(*metalv1alpha1.Server) bool { return true }
	})
	if got := f.do("POST", "/register", "-", report(uuid, least)); got.Code != http.StatusCreated {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

// seenOn is what the manager writes when the BMC shows the machine on.
func (f *fleet) seenOn() {
	f.t.Helper()
	s := &metalv1alpha1.Server{}
	if err := f.client.Get(f.t.Context(), client.ObjectKey{Name: "srv"}, s); err != nil {
		f.t.Fatal(err)
	}
	s.Status.Lifecycle.Credential.ShownAt = &metav1.MicroTime{Time: start.Add(-time.Minute)}
	if err := f.client.Update(f.t.Context(), s); err != nil {
		f.t.Fatal(err)
	}
}
