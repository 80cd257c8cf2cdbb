// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

func onRack(rack string) func(*v1alpha1.Server) { return labelled(policies.RackMetadata, rack) }

const spreadOverRacks = "spread: {key: rack, claims: {}}"

// passesDue has passes run as long as an event of the watch, or what a pass left, asks for one. The clock stands still.
func (w *world) passesDue() {
	for range 9 {
		if !w.asked() && !w.s.pending.anyDue() {
			return
		}
		_ = w.pass()
	}
}

// Rack r1 has a claim and a free server, and two claims get the servers of rack r2. Only what is written for them gives rack r1 room.
func TestAClaimThatIsSpreadGetsTheRoomThatAWriteWithoutAnAnswerGave(t *testing.T) {
	for name, loses := range map[string]func(client.Object) bool{
		"that names a server":    func(o client.Object) bool { _, is := o.(*v1alpha1.ServerClaim); return is },
		"that reserves a server": func(o client.Object) bool { _, is := o.(*v1alpha1.Server); return is },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.gate = newGate() // so that two bindings are under way side by side
			w.gate.fault = func(o client.Object) fault {
				if loses(o) && o.GetName() != "s1" && o.GetName() != "waits" {
					return fault{after: errors.New("injected: the answer got lost")}
				}
				return fault{}
			}
			w.restart()
			w.addServer(aServer("s0", onRack("r1"), writtenFor("has", "uid-has")))
			w.addServer(aServer("s1", onRack("r1")))
			w.addServer(aServer("s2", onRack("r2")))
			w.addServer(aServer("s3", onRack("r2")))
			w.addClaim(aClaim("has", naming("s0")))
			w.addClaim(aClaim("a", placed("where: server.rack == \"r2\"")))
			w.addClaim(aClaim("b", placed("where: server.rack == \"r2\"")))
			w.addClaim(aClaim("waits", placed(spreadOverRacks)))
			w.passesDue()
			if diff := cmp.Diff([]string{"a", "b", "has", "waits"}, w.boundClaims()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Rack r1 has no free server, so that rack r2 may have one claim. The server that another one gets in vain is none that the first asks for.
func TestAClaimThatIsSpreadGetsTheRoomOfAWriteThatCameToNothing(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{}, "small", errors.New("injected"))
	for name, tc := range map[string]struct {
		err  error
		then func(w *world)
	}{
		"because the server changed": {conflict, func(*world) {}},
		"because it was denied":      {apierrors.NewForbidden(schema.GroupResource{}, "small", errors.New("injected")), func(*world) {}},
		"and was looked up": {apierrors.NewServiceUnavailable("injected"), func(w *world) {
			w.changeServer(w.server("small"), func(s *v1alpha1.Server) { s.Spec.Unclaimable = true })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.gate = newGate()
			w.gate.fault = func(o client.Object) fault {
				if o.GetName() == "small" {
					return fault{before: tc.err}
				}
				return fault{}
			}
			w.restart()
			w.addServer(aServer("clean", onRack("r1"), labelled("size", "large"), inState("Cleanup")))
			w.addServer(aServer("small", onRack("r2"), labelled("size", "small")))
			w.addServer(aServer("large", onRack("r2"), labelled("size", "large")))
			w.addClaim(aClaim("a", selecting("size", "small")))
			w.addClaim(aClaim("waits", selecting("size", "large"), placed(spreadOverRacks)))
			w.deliver(9)
			_ = w.pass()
			tc.then(w)
			w.passesDue()
			if diff := cmp.Diff([]string{"waits"}, w.boundClaims()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
