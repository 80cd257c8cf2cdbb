// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
)

var (
	ours   = strings.Repeat("ab", 32)
	forged = strings.Repeat("cd", 32)
)

// says sends a request of token "mine" with a key; an empty key sends none.
func (f *fleet) says(method, path, key, body string) *httptest.ResponseRecorder {
	f.t.Helper()
	request := httptest.NewRequestWithContext(f.t.Context(), method, path, strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer mine")
	if key != "" {
		request.Header.Set(metalprobe.KeyHeader, key)
	}
	recorder := httptest.NewRecorder()
	f.registry.ServeHTTP(recorder, request)
	return recorder
}

func TestTheFirstWriteBindsAnEntryToItsKey(t *testing.T) {
	for name, c := range map[string]struct {
		first, second string
		wants         int
	}{
		"the same key is welcome":             {ours, ours, http.StatusCreated},
		"agents without a key stay welcome":   {"", "", http.StatusCreated},
		"another key is refused":              {ours, forged, http.StatusForbidden},
		"no key is refused after one":         {ours, "", http.StatusForbidden},
		"a key is refused after none":         {"", ours, http.StatusForbidden},
		"what is no key is refused by itself": {ours, "abc", http.StatusUnprocessableEntity},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, nil)
			if got := f.says("POST", "/register", c.first, report(uuid, least)); got.Code != http.StatusCreated {
				t.Fatalf("got %d %s", got.Code, got.Body)
			}
			bound := f.inventory(uuid).Enrolment
			if bound == nil || bound.Entry != 7 || !bound.At.Time.Equal(start) || (bound.KeyHash == "") != (c.first == "") || strings.Contains(bound.KeyHash, ours) {
				t.Errorf("bound %+v", bound)
			}
			if got := f.says("POST", "/register", c.second, report(uuid, `{"cpu":[{"id":1}]}`)); got.Code != c.wants {
				t.Errorf("got %d %s", got.Code, got.Body)
			}
			if got := f.inventory(uuid).Enrolment.Voided; got != (c.wants == http.StatusForbidden) {
				t.Errorf("voided: %t", got)
			}
		})
	}
}

func TestNoAgentIsBelievedInAVoidedEntry(t *testing.T) {
	f := newFleet(t, asWipe)
	f.says("POST", "/register", ours, report(uuid, twoDisks))
	if got := f.says("GET", "/wipe/"+uuid, ours, ""); got.Code != http.StatusOK {
		t.Fatalf("may it erase? %d %s", got.Code, got.Body)
	}
	if got := f.says("GET", "/wipe/"+uuid, forged, ""); got.Code != http.StatusForbidden {
		t.Errorf("may the other erase? %d %s", got.Code, got.Body)
	}
	if event := f.heard(); !strings.Contains(event, "AgentKeyConflict") {
		t.Errorf("event %q", event)
	}
	if !f.inventory(uuid).Enrolment.Voided {
		t.Error("the question voided nothing")
	}
	if got := f.says("POST", "/wipe", forged, running); got.Code != http.StatusForbidden || f.inventory(uuid).Wipe != nil {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
	for _, call := range [][3]string{
		{"POST", "/register", report(uuid, twoDisks)}, {"POST", "/wipe", verified}, {"GET", "/wipe/" + uuid, ""},
		{"GET", "/systems/" + uuid, ""}, {"DELETE", "/delete/" + uuid, ""}, {"POST", "/phase", phase("wipe", 0)},
	} {
		for _, key := range []string{ours, forged, ""} {
			if got := f.says(call[0], call[1], key, call[2]); got.Code != http.StatusForbidden || !strings.Contains(got.Body.String(), "different keys") {
				t.Errorf("%s %s: %d %s", call[0], call[1], got.Code, got.Body)
			}
		}
	}
	var server metalv1alpha1.Server
	if err := f.client.Get(t.Context(), client.ObjectKey{Name: "srv"}, &server); err != nil {
		t.Fatal(err)
	}
	server.Status.Lifecycle.Entry, server.Status.Lifecycle.Credential.Entry = 8, 8
	if err := f.client.Update(t.Context(), &server); err != nil {
		t.Fatal(err)
	}
	if got := f.says("POST", "/register", forged, report(uuid, twoDisks)); got.Code != http.StatusCreated {
		t.Errorf("in the next entry: %d %s", got.Code, got.Body)
	}
}

func TestAnotherBootOfOursBringsAnotherKey(t *testing.T) {
	for name, c := range map[string]struct {
		action string
		at     time.Duration
		wants  int
	}{
		"after the manager switched the machine on again":   {"PowerOn", time.Minute, http.StatusCreated},
		"after the manager cycled its power":                {"PowerCycle", time.Minute, http.StatusCreated},
		"not for a power-on before the binding":             {"PowerOn", -time.Minute, http.StatusForbidden},
		"not after the manager only switched something off": {"ForcedOff", time.Minute, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, func(s *metalv1alpha1.Server, _ *Options) {
				s.Status.Lifecycle.Begun = []metalv1alpha1.BegunAction{{Action: c.action, At: metav1.NewMicroTime(start.Add(c.at))}}
			})
			f.says("POST", "/register", ours, report(uuid, least))
			f.now = start.Add(2 * time.Minute)
			if got := f.says("POST", "/register", forged, report(uuid, least)); got.Code != c.wants {
				t.Errorf("got %d %s", got.Code, got.Body)
			}
		})
	}
}

func TestAPowerOnThatTheCacheDoesNotKnowIsLookedFor(t *testing.T) {
	f := newFleet(t, func(s *metalv1alpha1.Server, o *Options) {
		o.Reader = fakeClient(s.DeepCopy())
		s.Status.Lifecycle.Begun = []metalv1alpha1.BegunAction{{Action: "PowerOn", At: metav1.NewMicroTime(start.Add(time.Minute))}}
	})
	f.registry.options.Live = f.client
	f.says("POST", "/register", ours, report(uuid, least))
	if got := f.says("POST", "/register", forged, report(uuid, least)); got.Code != http.StatusCreated {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
}

func TestAnAgentWithoutATokenBindsNothing(t *testing.T) {
	f := newFleet(t, func(_ *metalv1alpha1.Server, o *Options) {
		o.AllowUnauthenticated = func(*metalv1alpha1.Server) (bool, error) { return true, nil }
	})
	f.do("POST", "/register", "-", report(uuid, least))
	if got := f.inventory(uuid).Enrolment; got != nil {
		t.Errorf("bound %+v", got)
	}
	if got := f.says("POST", "/register", ours, report(uuid, least)); got.Code != http.StatusCreated {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
	if got := f.do("POST", "/phase", "-", phase("network", 0)); got.Code != http.StatusOK || f.inventory(uuid).Enrolment.Voided {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
}
