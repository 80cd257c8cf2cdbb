// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net/http"
	"testing"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
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
