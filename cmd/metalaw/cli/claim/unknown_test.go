// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// Nobody is told that a server will never do of which nobody knows yet what it is.
func TestAServerOfWhichNobodyKnowsYetWhatItIsMayDo(t *testing.T) {
	const gpus = v1alpha1.InventoryLabelPrefix + "gpus"
	placed := func(c *v1alpha1.ServerClaim) {
		c.Annotations = map[string]string{v1alpha1.PlacementAnnotation: "where: server.gpus > 0"}
	}
	selects := func(c *v1alpha1.ServerClaim) {
		c.Annotations, c.Spec.ServerSelector = nil, &metav1.LabelSelector{MatchLabels: map[string]string{gpus: "8"}}
	}
	const state, never = "its state is Discovery and not Available", "placement: the claim's placement asks where server.gpus > 0"
	for name, c := range map[string]struct {
		asks            func(*v1alpha1.ServerClaim)
		state           v1alpha1.ServerState
		waitsFor, words string
	}{
		"a placement, of a server in Discovery": {placed, v1alpha1.StateDiscovery,
			"s: " + state + " (not-available), and 1 more in its way", state + "; then " + never + " (that passes perhaps by itself, else not, as the claim is)"},
		"a placement, of a server that is known": {placed, v1alpha1.StateCleanup,
			"a change of the claim, or other servers; the nearest is s: the claim's placement asks where server.gpus > 0 (placement), and 1 more in its way", "its state is Cleanup and not Available; then " + never},
		"a label of the inventory, of a server in Discovery": {selects, v1alpha1.StateDiscovery,
			"a server that it asks for: none matches its serverRef and serverSelector; whether 1 of them may is known once it is reported what they are made of",
			"the claim's selector does not match its labels"},
		"a label of the inventory, of a server that is known": {selects, v1alpha1.StateAvailable,
			"a server that it asks for: none matches its serverRef and serverSelector", "the claim's selector does not match its labels"},
	} {
		t.Run(name, func(t *testing.T) {
			server := aServer("s", "")
			server.Status.State = c.state
			claim := aMember("web", func(m *v1alpha1.ServerClaim) { m.Spec.Image = "os"; c.asks(m) })
			e, err := explain(t.Context(), aCluster(t, inForce(t), &server, &claim), "team", "web", false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{c.waitsFor, c.words}, []string{e.WaitsFor, words(&e.Servers[0])}); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
