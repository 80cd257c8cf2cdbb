// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
)

// keyHash gives the hash of the key that a request shows; empty where it shows none. A text that is no key is refused.
func keyHash(request *http.Request) (string, *refusal) {
	key := request.Header.Get(metalprobe.KeyHeader)
	switch {
	case key == "":
		return "", nil
	case !metalprobe.ValidKey(key):
		return "", &refusal{
			status: http.StatusUnprocessableEntity, outcome: OutcomeInvalid,
			message: "header " + metalprobe.KeyHeader + " is no key", remedy: "send 64 hex digits, or leave the header out",
		}
	}
	return metalprobe.HashToken(key), nil
}

// enrol binds the entry to the key of the first agent that writes in it, and refuses every other agent of that entry. An agent
// without a token binds nothing: anybody could be first.
func enrol(stored *policyv1alpha1.ServerInventory, g grant, now time.Time) *refusal {
	if refused := enrolled(stored, g); refused != nil || g.unauthenticated {
		return refused
	}
	if e := stored.Enrolment; e == nil || e.Entry != g.entry || e.KeyHash != g.keyHash {
		stored.Enrolment = &policyv1alpha1.Enrolment{Entry: g.entry, KeyHash: g.keyHash, At: metav1.NewMicroTime(now)}
	}
	return nil
}

// enrolled refuses an agent whose key is not that of the entry. What is not bound yet refuses nobody.
func enrolled(stored *policyv1alpha1.ServerInventory, g grant) *refusal {
	if stored == nil || stored.Enrolment == nil || stored.Enrolment.Entry != g.entry {
		return nil
	}
	switch e := stored.Enrolment; {
	case e.Voided:
		return &refusal{
			status: http.StatusForbidden, outcome: OutcomeVoided, server: g.server,
			message: "two agents with different keys reported for this entry of the server's lifecycle, so that no agent is believed in it",
			remedy:  "stop; the manager boots the server again in a new entry",
		}
	case g.unauthenticated, e.KeyHash == g.keyHash, bootedSince(g.server, e.At.Time):
		return nil
	}
	return &refusal{
		status: http.StatusForbidden, outcome: OutcomeKeyConflict, server: g.server,
		message: "another agent reported for this entry of the server's lifecycle with another key",
		remedy:  "stop; find out who else has the credential of this server, and retry the server",
	}
}

// enrolledIn does what enrolled does for a question, which writes nothing by itself: another key voids the entry all the same.
func (r *Registry) enrolledIn(ctx context.Context, g grant, stored *policyv1alpha1.ServerInventory) *refusal {
	refused := enrolled(stored, g)
	if isConflict(refused) || isVoided(refused) {
		_, refused = r.store(ctx, g, func(*policyv1alpha1.ServerInventory) *refusal { return nil }, basis{})
	}
	return refused
}

// isConflict says that another key was shown than the one to which the entry is bound.
func isConflict(refused *refusal) bool {
	return refused != nil && refused.outcome == OutcomeKeyConflict
}

// bootedSince says that the manager switched the machine on after a time. The agent of that boot has another key.
func bootedSince(server *metalv1alpha1.Server, at time.Time) bool {
	l := server.Status.Lifecycle
	if l == nil {
		return false
	}
	for _, begun := range l.Begun {
		on := begun.Action == string(policyv1alpha1.ActionPowerOn) || begun.Action == string(policyv1alpha1.ActionPowerCycle)
		if on && begun.At.After(at) {
			return true
		}
	}
	return false
}
