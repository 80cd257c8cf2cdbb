// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// rounds has scheduler and servers do their work in turns until both have nothing left to do.
func (w *world) rounds() {
	w.t.Helper()
	for range 5 {
		w.pass()
		w.lifecycle()
	}
	w.pass()
}

func TestAManagerThatIsKilledAfterAnyWriteLeavesNothingBehind(t *testing.T) {
	for name, c := range map[string]struct {
		objects func() []client.Object
		all     []string
	}{
		"a free server":                    {func() []client.Object { return []client.Object{free(), sm("a")} }, []string{"a"}},
		"a free server that boots":         {func() []client.Object { return []client.Object{free(), sm("a", boots)} }, []string{"a"}},
		"a claimed server":                 {func() []client.Object { return []client.Object{free(claimed), claim(approve), sm("a")} }, []string{"a"}},
		"a claimed server that boots":      {func() []client.Object { return []client.Object{free(claimed), claim(approve), sm("a", boots)} }, []string{"a"}},
		"an enforced one":                  {func() []client.Object { return []client.Object{free(claimed), claim(), sm("a", enforced)} }, []string{"a"}},
		"two after each other":             {func() []client.Object { return []client.Object{free(claimed), claim(approve), sm("a"), sm("b", boots)} }, []string{"a", "b"}},
		"two of which the first one boots": {func() []client.Object { return []client.Object{free(), sm("a", boots), sm("b")} }, []string{"a", "b"}},
	} {
		for crash := 1; crash <= 20; crash++ {
			t.Run(fmt.Sprintf("%s, killed after write %d", name, crash), func(t *testing.T) {
				w := newWorld(t, c.objects()...)
				w.crashAfter = crash
				w.rounds()
				for _, one := range c.all {
					w.is(one, "InMaintenance ServerGranted")
					w.delete(sm(one))
					w.rounds()
				}
				for _, one := range c.all {
					w.gone(one)
				}
				nothingLeft(w)
			})
		}
	}
}

// nothingLeft says that neither labels nor boot configurations are left.
func nothingLeft(w *world) {
	w.t.Helper()
	var boots v1alpha1.ServerBootConfigurationList
	if err := w.api.List(w.t.Context(), &boots); err != nil || len(boots.Items) > 0 {
		w.t.Errorf("%d boot configurations are left (error %v)", len(boots.Items), err)
	}
	var claims v1alpha1.ServerClaimList
	if err := w.api.List(w.t.Context(), &claims); err != nil {
		w.t.Fatal(err)
	}
	for _, c := range claims.Items {
		if len(c.Labels)+len(c.Annotations) > 0 {
			w.t.Errorf("claim %s still bears %v %v", c.Name, c.Labels, c.Annotations)
		}
	}
}

func TestAMaintenanceThatIsDeletedAfterAnyWriteLeavesNothingBehind(t *testing.T) {
	for name, objects := range map[string]func() []client.Object{
		"of a free server that boots":    func() []client.Object { return []client.Object{free(), sm("a", boots)} },
		"of a claimed server that boots": func() []client.Object { return []client.Object{free(claimed), claim(), sm("a", boots, enforced)} },
		"of a claim that does not agree": func() []client.Object { return []client.Object{free(claimed), claim(), sm("a")} },
	} {
		for crash := 1; crash <= 8; crash++ {
			t.Run(fmt.Sprintf("%s, deleted after write %d", name, crash), func(t *testing.T) {
				w := newWorld(t, objects()...)
				w.crashAfter = crash
				for range 4 {
					if _, err := w.s.Reconcile(t.Context(), pass{}); err != nil {
						break
					}
					w.lifecycle()
				}
				w.restart()
				w.delete(sm("a"))
				w.rounds()
				w.gone("a")
				nothingLeft(w)
			})
		}
	}
}
