// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/canary"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/webhooks/bundles"
)

// anotherLifecycle is the default bundle with one text of its lifecycle replaced.
func anotherLifecycle(t testing.TB, was, is string) *bundle.Bundle {
	t.Helper()
	files, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		t.Fatal(err)
	}
	text := string(files["lifecycle.yaml"])
	if strings.Count(text, was) != 1 {
		t.Fatalf("%q is in the lifecycle %d times", was, strings.Count(text, was))
	}
	return withFiles(t, map[string]string{"lifecycle.yaml": strings.Replace(text, was, is, 1)})
}

func TestABundleThatDropsAStateInUseIsRefused(t *testing.T) {
	const attic = "  Attic:\n    means: Nobody comes here.\n    stable: true\n    exits:\n    - {rule: Down, to: Initial, when: parkAsked}\n\n  Observing:\n"
	older := anotherLifecycle(t, "  Observing:\n", attic)
	migrates := anotherLifecycle(t, "states:\n", "migrate: {Attic: Initial, Barn: Initial}\n\nstates:\n")
	in := func(name, rack string, state v1alpha1.ServerState) client.Object {
		return &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"rack": rack}},
			Status: v1alpha1.ServerStatus{State: state, Lifecycle: &v1alpha1.LifecycleStatus{Revision: "older"}}}
	}
	servers := []client.Object{in("a", "r1", "Attic"), in("b", "r3", "Attic"), in("c", "r1", "Available"), in("d", "r1", "Elsewhere")}
	lost := in("e", "r3", "Barn")
	lost.(*v1alpha1.Server).Status.Lifecycle.Revision = "gone"
	servers = append(servers, lost)
	says := func(what string) string {
		return "Forbidden\n" + stageField + "Forbidden: " + what + "; say in lifecycle.yaml where each of them leads, as migrate: {Attic: Initial}, and raise version"
	}
	head := bundleHead(staged("shadow"))
	for name, c := range map[string]struct {
		content  *bundle.Bundle
		promoted string
		after    *corev1.ConfigMap
		want     string
		warnings []string
	}{
		"where it would be in force": {defaults(t), "", bundleHead(staged("active"), activated),
			says("3 servers are in states that bundle fleet 1.0.0 neither defines nor migrates: Attic 2, Barn 1"), nil},
		"as a canary, in its scope": {defaults(t), "", bundleHead(staged("canary"), rackCanary, activated),
			says("1 server is in states that bundle fleet 1.0.0 neither defines nor migrates: Attic 1"), nil},
		"not as a canary elsewhere":  {defaults(t), "", bundleHead(staged("canary"), noted(policyv1alpha1.CanaryServersAnnotation, "rack=r9"), activated), "", nil},
		"not as a shadow":            {defaults(t), "", head, "", nil},
		"not where it migrates them": {migrates, "", bundleHead(staged("active"), activated), "", nil},
		"not where it is gone back to": {defaults(t), "3", bundleHead(staged("active"), activated), "", []string{
			"3 servers are in states that bundle fleet 1.0.0 neither defines nor migrates: Attic 2, Barn 1; it was in force before and is gone back to: " +
				"they stay under their revision until they leave these states"}},
	} {
		t.Run(name, func(t *testing.T) {
			stored := revisionOf(t, head)
			if c.promoted != "" {
				promotion(c.promoted)(stored)
			}
			w, a := bundleWorld(t, append(servers, stored)...)
			hooks, err := handlers(Options{
				Bundles: revisions{active: defaults(t), byName: map[string]*bundle.Bundle{stored.Name: c.content, "older": older}},
				Client:  w.cached, Reader: w.stored, ManagerUser: manager, Namespace: "metalaw-system", Registry: prometheus.NewRegistry(),
				Rights: reviewer{}, Accept: a.accept}, w.clock)
			if err != nil {
				t.Fatal(err)
			}
			w.hooks = hooks
			got, warnings := w.ask(PathValidateBundle, user, admissionv1.Update, head, c.after, activates)
			if diff := cmp.Diff(c.want, got) + cmp.Diff(c.warnings, warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// slowRevisions count how often they are asked for one revision, and answer once somebody lets them.
type slowRevisions struct {
	revisions
	asked  *int
	answer chan struct{}
}

func (r slowRevisions) Revision(name string) (*bundle.Bundle, bool) {
	*r.asked++
	<-r.answer
	return r.revisions.Revision(name)
}

func TestARevisionThatManyServersArePinnedToIsAskedForOnceAndNotBeyondTheRequestsTime(t *testing.T) {
	var servers []client.Object
	for _, name := range []string{"a", "b", "c"} {
		servers = append(servers, &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: v1alpha1.ServerStatus{State: "Attic", Lifecycle: &v1alpha1.LifecycleStatus{Revision: "older"}}})
	}
	for name, c := range map[string]struct {
		answers bool
		want    string
		err     error
	}{
		"one that answers": {true, "3 servers are in states that bundle fleet 1.0.0 neither defines nor migrates: Attic 3", nil},
		"one that does not answer in time, where nothing is known of the state": {false, "", context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _ := bundleWorld(t, servers...)
				slow := slowRevisions{asked: new(int), answer: make(chan struct{})}
				if c.answers {
					close(slow.answer)
				} else {
					defer close(slow.answer)
				}
				l := &bundles.Rules{Cache: w.cached, Bundles: slow}
				ctx, cancel := context.WithTimeout(t.Context(), bundles.Time)
				defer cancel()
				got, _, err := l.Dropped(ctx, &bundles.Examined{Name: "fleet", Version: "1.0.0", Bundle: defaults(t)}, canary.Scope{}.Matcher("fleet"))
				if got != c.want || !errors.Is(err, c.err) || *slow.asked != 1 {
					t.Errorf("got %q, error %v, asked %d times; want %q, error %v, once", got, err, *slow.asked, c.want, c.err)
				}
			})
		})
	}
}
