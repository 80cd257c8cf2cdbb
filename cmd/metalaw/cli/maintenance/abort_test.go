// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
)

func TestAnAbortSaysAtWhichPointTheMaintenanceStops(t *testing.T) {
	holding := handedTo("a", "u-a")
	const then = "Then:        state Failed, reason Aborted; kubectl delete servermaintenance -n ops a removes it\n"
	for name, c := range map[string]struct {
		server  *v1alpha1.Server
		is      *v1alpha1.ServerMaintenance
		denied  []string
		force   string
		outcome string
		want    string
	}{
		"one that waits":           {node1(), aMaintenance("a", waiting), nil, "", "asked", "Stops:       at once: it holds no server\n" + then},
		"one without a boot":       {node1(holding), aMaintenance("a", granted), nil, "", "asked", "Stops:       at once: it boots no image, so the machine is left as it is\n" + then},
		"one whose machine is off": {node1(holding, off), aMaintenance("a", granted, booting), nil, "", "asked", "Stops:       at once: the machine is off\n" + then},
		"one whose machine runs an image": {node1(holding), aMaintenance("a", granted, booting), nil, "", "asked",
			"Stops:       when the machine is off: its operating system is asked to shut down, and the power is never cut; --force-off allows that\n" + then},
		"one whose machine may be cut off": {node1(holding), aMaintenance("a", granted, booting), nil, "no tool runs", "asked",
			"Stops:       when the machine is off: its operating system is asked to shut down, and the power is cut if it does not\n" + then},
		"one that another program handed the server to": {node1(handedTo("a", "")), aMaintenance("a", granted), nil, "", "asked",
			"Stops:       never: the manager did not grant the server to it; another program or a user wrote spec.serverMaintenanceRef, and has to clear it\n" + then},
		"one whose server the reader may not see": {node1(), aMaintenance("a", waiting), []string{"servers"}, "", "asked",
			"Stops:       where its machine is off, if it booted an image; else at once\n" + then + `note: you cannot see the Server node-1 (forbidden: User "tina" cannot get ` +
				`resource "servers" in API group "metal.ironcore.dev" at the cluster scope; it takes the verb "get" on servers.metal.ironcore.dev; ` +
				"the ClusterRole metalaw-fleet-viewer has it)\n"},
		"one that was aborted": {node1(), aMaintenance("a", in("Failed"), annotated(v1alpha1.AbortAnnotation, "before")), nil, "", "unchanged",
			"Stops:       it holds no server\nIt says:     it was aborted before\n"},
	} {
		t.Run(name, func(t *testing.T) {
			api := cluster(t, c.denied, c.server, c.is)
			r := &abortRequest{reason: "wrong image", forceOff: c.force}
			a, err := r.do(t.Context(), api, types.NamespacedName{Namespace: "ops", Name: "a"})
			if err != nil {
				t.Fatal(err)
			}
			term, out := screen()
			a.text(term)
			if diff := cmp.Diff("ops/a  "+c.outcome+"\n"+c.want, out.String()); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
			now, err := get(t.Context(), api, types.NamespacedName{Namespace: "ops", Name: "a"})
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"policy.metalaw.dev/abort": "wrong image"}
			if c.force != "" {
				want["policy.metalaw.dev/force-off-reason"] = c.force
			}
			if diff := cmp.Diff(want, now.Annotations); diff != "" && c.outcome == asked {
				t.Errorf("annotations: - want, + got:\n%s", diff)
			}
		})
	}
}

func TestAnAbortWaitsUntilTheServerIsGivenBack(t *testing.T) {
	key := types.NamespacedName{Namespace: "ops", Name: "a"}
	for name, c := range map[string]struct {
		happens func(t *testing.T, api client.Client, m *v1alpha1.ServerMaintenance, s *v1alpha1.Server)
		outcome string
		message string
	}{
		"it stops": {func(t *testing.T, api client.Client, m *v1alpha1.ServerMaintenance, s *v1alpha1.Server) {
			m.Status.State, s.Spec.ServerMaintenanceRef = v1alpha1.ServerMaintenanceStateFailed, nil
			update(t, api, m, s)
		}, stopped, "its server is given back"},
		"it is deleted": {func(t *testing.T, api client.Client, m *v1alpha1.ServerMaintenance, _ *v1alpha1.Server) {
			if err := api.Delete(t.Context(), m); err != nil {
				t.Error(err)
			}
		}, stopped, "the ServerMaintenance was deleted"},
		"it does not stop": {func(*testing.T, client.Client, *v1alpha1.ServerMaintenance, *v1alpha1.Server) {}, timedOut,
			"it is stored, and has not stopped in 50ms; Granted is True (ServerGranted): approved by claim shop/web"},
	} {
		t.Run(name, func(t *testing.T) {
			m, s := aMaintenance("a", granted, booting), node1(handedTo("a", "u-a"))
			api := cluster(t, nil, m, s)
			looks := 0
			api = interceptor.NewClient(api, interceptor.Funcs{Get: func(ctx context.Context, inner client.WithWatch, at client.ObjectKey, into client.Object, given ...client.GetOption) error {
				if looks++; looks == 5 { // the third look of the wait begins
					now, _ := get(ctx, inner, key)
					server := &v1alpha1.Server{}
					if err := inner.Get(ctx, types.NamespacedName{Name: "node-1"}, server); err != nil {
						return err
					}
					c.happens(t, inner, now, server)
				}
				return inner.Get(ctx, at, into, given...)
			}})
			r := &abortRequest{reason: "wrong image", wait: true, timeout: 50 * time.Millisecond, every: time.Millisecond}
			a, err := r.do(t.Context(), api, key)
			if err != nil {
				t.Fatal(err)
			}
			if a.Outcome != c.outcome || a.Message != c.message {
				t.Errorf("got %s %q", a.Outcome, a.Message)
			}
		})
	}
}

func update(t *testing.T, api client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := api.Update(t.Context(), o); err != nil {
			t.Error(err)
		}
	}
}

func TestAnAbortThatMakesNoSense(t *testing.T) {
	for name, c := range map[string]struct {
		request abortRequest
		forced  bool
		want    string
	}{
		"no reason":             {abortRequest{reason: " "}, false, "--reason is required: the maker of the maintenance wants to know why it stopped"},
		"a long reason":         {abortRequest{reason: strings.Repeat("a", 1025)}, false, "a reason has at most 1024 characters"},
		"a cut without reason":  {abortRequest{reason: "r"}, true, "--force-off takes the reason for which cutting the power is safe"},
		"a wait without a time": {abortRequest{reason: "r", wait: true}, false, "--timeout must be more than 0"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.request.check(c.forced); !usage.Is(err) || err.Error() != c.want {
				t.Errorf("got %v", err)
			}
		})
	}
}
