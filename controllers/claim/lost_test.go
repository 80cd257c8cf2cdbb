// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"strings"
	"testing"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestALostClaimIsAdvisedWhatTheStateOfItsServerTakes(t *testing.T) {
	const release = "release the server (metalaw server release), then retry it (metalaw server retry)"
	for state, want := range map[v1alpha1.ServerState]string{
		v1alpha1.StateReserved: "delete the claim and let an operator release the server (metalaw server release)",
		v1alpha1.StateError:    "delete the claim and let an operator " + release,
		v1alpha1.StateObserving: "delete the claim and let an operator take the machine over, which switches it off where it may " +
			"(annotation policy.metalaw.dev/consent=take-over on the server); should it stop in Error then, let them " + release,
		v1alpha1.StateParked: "delete the claim and let an operator unpark the server; should it stop in Error then, let them " + release,
		v1alpha1.StateInitial: "delete the claim and wait until the server, which is in state Initial, has come to rest; " +
			"should it stop in Error, let an operator " + release,
	} {
		f := bound()
		f.server.Spec.ServerClaimRef = nil
		f.server.Status.State = state
		if s := judge(f); s.reason != v1alpha1.ReasonBindingLost || !strings.HasSuffix(s.message, want) {
			t.Errorf("in %s: %s: %s\nwant ... %s", state, s.reason, s.message, want)
		}
	}
}

func TestALostClaimIsAdvisedHowToHaveItsMachineBack(t *testing.T) {
	const written = "let an operator write the claim into spec.serverClaimRef of the server"
	for state, want := range map[v1alpha1.ServerState]string{
		v1alpha1.StateError:     written + " and then retry it (metalaw server retry). To give",
		v1alpha1.StateParked:    written + " and then unpark it (metalaw server unpark). To give",
		v1alpha1.StateObserving: written + ". To give",
	} {
		f := bound()
		f.server.Spec.ServerClaimRef = nil
		f.server.Status.State = state
		if s := judge(f); !strings.Contains(s.message, want) {
			t.Errorf("in %s: %s", state, s.message)
		}
	}
}
