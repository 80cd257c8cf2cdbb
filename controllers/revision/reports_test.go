// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/internal/canary"
)

// taking is a store that knows a revision "closed", which is in force and takes no report without a token, a canary "open" of rack r1,
// which does, and a revision "refused", which does and is held.
func taking(t *testing.T) *Store {
	t.Helper()
	s := storeOf(t, "")
	scheme := runtime.NewScheme()
	if err := policyv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	s.Reader = fake.NewClientBuilder().WithScheme(scheme).Build()
	known := func(name string, open bool, found diag.List) *bundle.Bundle {
		b := *s.embedded
		b.Revision = engine.Revision{Name: name, Digest: name}
		b.Settings.AllowUnauthenticated = open
		s.put(&b, found)
		return &b
	}
	known("refused", true, diag.List{{Severity: diag.Error, Message: "a scenario fails"}})
	scope := canary.Scope{Selector: "rack=r1"}
	s.rule.Store(&rule{active: known("closed", false, nil), canaries: []canaryRule{
		{bundle: known("open", true, nil), scope: scope, matcher: scope.Matcher("fleet")}}})
	return s
}

func TestTheRevisionThatGovernsAServerSaysWhoReportsWithoutAToken(t *testing.T) {
	pinned := func(revision string) *v1alpha1.LifecycleStatus { return &v1alpha1.LifecycleStatus{Revision: revision} }
	for name, c := range map[string]struct {
		rack      string
		lifecycle *v1alpha1.LifecycleStatus
		want      string
	}{
		"a server under the canary is asked for no token":                            {"r1", pinned("open"), "yes"},
		"a server under what is in force is asked for one":                           {"r2", pinned("closed"), "no"},
		"a server in the scope of a canary under which it is not yet":                {"r1", pinned("closed"), "no"},
		"a server that is still under the canary and has left its scope":             {"r2", pinned("open"), "yes"},
		"a server that no revision governs yet is asked as the canary does":          {"r1", pinned(""), "yes"},
		"a server that no revision governs yet outside of it as what is in force":    {"r2", pinned(""), "no"},
		"a server without any lifecycle, in the scope of the canary":                 {"r1", nil, "yes"},
		"nobody knows under a revision that is not to be found":                      {"r1", pinned("gone"), "unknown"},
		"nobody knows under a revision that is held, whatever the one in force says": {"r2", pinned("refused"), "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			s := taking(t)
			server := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"rack": c.rack}}}
			server.Status.Lifecycle = c.lifecycle
			server.Spec.BootConfigurationRef = &v1alpha1.ObjectReference{Namespace: "a", Name: "b"}
			for state, may := range map[v1alpha1.ServerState]func(*v1alpha1.Server) (bool, error){
				v1alpha1.StateDiscovery: s.MayReport, v1alpha1.StateReserved: s.MayReportBootState} {
				server.Status.State = state
				if got := said(may(server)); got != c.want {
					t.Errorf("in %s: %s, want %s", state, got, c.want)
				}
			}
		})
	}
}

func said(allowed bool, err error) string {
	switch {
	case err != nil:
		return "unknown"
	case allowed:
		return "yes"
	}
	return "no"
}

func TestWhatDoesNotCompileSaysNothingOfServersThatAreToComeUnderIt(t *testing.T) {
	s := taking(t)
	standsIn := *s.embedded
	standsIn.Settings.AllowUnauthenticated, standsIn.StandsIn = true, true
	s.rule.Store(&rule{active: &standsIn})
	if got := said(s.MayReport(&v1alpha1.Server{Status: v1alpha1.ServerStatus{State: v1alpha1.StateDiscovery}})); got != "unknown" {
		t.Error(got)
	}
}

func TestWhoMayReportWithoutAToken(t *testing.T) {
	ref := &v1alpha1.ObjectReference{Namespace: "a", Name: "b"}
	for name, c := range map[string]struct {
		state        v1alpha1.ServerState
		ref          *v1alpha1.ObjectReference
		revision     string
		report, boot string
	}{
		"nobody, where the bundle does not say so":                      {v1alpha1.StateReserved, ref, "closed", "no", "no"},
		"no probe either, where the bundle does not say so":             {v1alpha1.StateDiscovery, ref, "closed", "no", "no"},
		"the operating system of a claim, its boot state":               {v1alpha1.StateReserved, ref, "open", "no", "yes"},
		"nothing that runs before there is a boot configuration":        {v1alpha1.StateReserved, nil, "open", "no", "no"},
		"a probe, its report and no boot state":                         {v1alpha1.StateDiscovery, ref, "open", "yes", "no"},
		"nothing on a server that is being wiped":                       {v1alpha1.StateCleanup, ref, "open", "no", "no"},
		"nothing on a server whose claim has ended and whose data stay": {v1alpha1.StateReleased, ref, "open", "no", "no"},
	} {
		t.Run(name, func(t *testing.T) {
			store := taking(t)
			s := &v1alpha1.Server{Spec: v1alpha1.ServerSpec{BootConfigurationRef: c.ref},
				Status: v1alpha1.ServerStatus{State: c.state, Lifecycle: &v1alpha1.LifecycleStatus{Revision: c.revision}}}
			if got := said(store.MayReport(s)); got != c.report {
				t.Errorf("report: %s", got)
			}
			if got := said(store.MayReportBootState(s)); got != c.boot {
				t.Errorf("boot state: %s", got)
			}
		})
	}
}
