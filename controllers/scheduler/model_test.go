// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

func TestClaimsAndServersStayOneToOneWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.gate = newGate()
		names := []string{"a", "b", "c", "d", "e", "f"}
		generation := 0
		pick := rapid.SampledFrom(names)
		begin := func(t *rapid.T) { // a manager that was not seen before
			w.gate.drawnFrom(t)
			w.gate.meanwhile = func() { w.between(t) }
			w.restart()
		}
		begin(t)
		find := func() *v1alpha1.ServerClaim {
			all := w.claims()
			if len(all) == 0 {
				return nil
			}
			return all[rapid.IntRange(0, len(all)-1).Draw(t, "claim")]
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { w.check() },
			"server": func(t *rapid.T) {
				name := pick.Draw(t, "server")
				if err := w.api.Get(context.Background(), types.NamespacedName{Name: name}, &v1alpha1.Server{}); err == nil {
					t.Skip("it is there")
				}
				rack := "r1"
				if name > "c" {
					rack = "r2"
				}
				w.addServer(aServer(name, labelled(policies.RackMetadata, rack)))
			},
			"claim": func(t *rapid.T) {
				name := pick.Draw(t, "name")
				if err := w.api.Get(context.Background(), types.NamespacedName{Namespace: "ns", Name: name}, &v1alpha1.ServerClaim{}); err == nil {
					t.Skip("it is there")
				}
				generation++
				asks := rapid.SampledFrom(asks).Draw(t, "asks")
				w.addClaim(aClaim(name, asks, func(c *v1alpha1.ServerClaim) { c.UID = types.UID(fmt.Sprintf("uid-%s-%d", name, generation)) }))
			},
			"another size": func(t *rapid.T) {
				c := find()
				if c == nil || c.Spec.ServerRef != nil || policies.GangOf(c) == nil {
					t.Skip("no member that waits")
				}
				inGang(rapid.IntRange(2, 3).Draw(t, "size"))(c)
				w.must(w.api.Update(context.Background(), c))
				w.shown(c)
			},
			"end": func(t *rapid.T) {
				if c := find(); c != nil {
					w.endClaim(c)
				}
			},
			"user names a server": func(t *rapid.T) {
				c, server := find(), pick.Draw(t, "server")
				if c == nil || c.Spec.ServerRef != nil {
					t.Skip("nothing to name")
				}
				naming(server)(c)
				w.must(w.api.Update(context.Background(), c))
				w.shown(c)
			},
			"server moves on": func(t *rapid.T) {
				for _, s := range w.servers() {
					if s.Spec.ServerClaimRef != nil && s.Status.State == v1alpha1.StateAvailable {
						w.changeServer(s, inState(v1alpha1.StateReserved), func(s *v1alpha1.Server) { s.Status.Lifecycle = &v1alpha1.LifecycleStatus{} })
						return
					}
				}
				t.Skip("none is held")
			},
			"server boots": func(t *rapid.T) {
				for _, s := range w.servers() {
					for _, c := range w.claims() {
						if s.Status.State == v1alpha1.StateReserved && policies.Bound(s, c) {
							w.changeServer(s, dirty)
							return
						}
					}
				}
				t.Skip("none is bound")
			},
			"server changes": func(t *rapid.T) {
				all := w.servers()
				if len(all) == 0 {
					t.Skip("none")
				}
				s := all[rapid.IntRange(0, len(all)-1).Draw(t, "server")]
				w.changeServer(s, func(s *v1alpha1.Server) { s.Spec.Unclaimable = !s.Spec.Unclaimable })
			},
			"watch": func(t *rapid.T) { w.deliver(rapid.IntRange(1, 4).Draw(t, "events")) },
			"pass": func(t *rapid.T) {
				_ = w.pass()
				w.check()
				if w.gate.crashed() {
					begin(t)
				}
			},
			"time":    func(*rapid.T) { w.now = w.now.Add(10 * time.Second) },
			"restart": begin,
			"rest": func(t *rapid.T) {
				w.settle()
				begin(t)
			},
		})
		w.settle()
		w.check()
		w.checkMistakes()
		w.checkCalm()
	})
}

// asks are what the claims of the model ask for.
var asks = []func(*v1alpha1.ServerClaim){
	func(*v1alpha1.ServerClaim) {}, placed(`where: server.rack == "r1"`), inGang(2), inGang(3), inGang(3),
	placed("where: server.rack == \"r2\"\ngang: {name: db, size: 3}"), placed("spread: {key: rack}\ngang: {name: pair, size: 2}"),
	placed("spread: {key: rack, claims: {}}"),
}

func TestWhatRestsIsComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.gate = newGate()
		w.gate.choose = func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "worker") }
		w.restart()
		servers, claims := rapid.IntRange(0, 5).Draw(t, "servers"), rapid.IntRange(0, 5).Draw(t, "claims")
		for i := range servers {
			w.addServer(aServer(fmt.Sprintf("s%d", i)))
		}
		for i := range claims {
			w.addClaim(aClaim(fmt.Sprintf("c%d", i)))
		}
		faults := rapid.IntRange(0, 4).Draw(t, "faults")
		w.after = func(client.Object) error {
			if faults--; faults >= 0 {
				return errors.New("injected: the answer got lost")
			}
			return nil
		}
		w.deliver(rapid.IntRange(0, 10).Draw(t, "events"))
		for range 5 {
			_ = w.pass()
			w.check()
			w.deliver(rapid.IntRange(0, 3).Draw(t, "events"))
			if rapid.Bool().Draw(t, "crash") {
				w.restart()
			}
			if all := w.claims(); len(all) > 0 && rapid.Bool().Draw(t, "end") {
				w.endClaim(all[0])
			}
		}
		w.settle()
		w.check()
		w.checkRest()
	})
}

// between is what happens while workers are at work: the watch goes on, and somebody else changes a server.
func (w *world) between(t *rapid.T) {
	switch rapid.SampledFrom([]string{"", "", "", "watch", "server", "end"}).Draw(t, "meanwhile") {
	case "watch":
		w.deliver(rapid.IntRange(1, 3).Draw(t, "events"))
	case "server":
		if all := w.servers(); len(all) > 0 {
			s := all[rapid.IntRange(0, len(all)-1).Draw(t, "server")]
			w.changeServer(s, func(s *v1alpha1.Server) { s.Spec.Unclaimable = !s.Spec.Unclaimable })
		}
	case "end":
		if all := w.claims(); len(all) > 0 {
			w.endClaim(all[rapid.IntRange(0, len(all)-1).Draw(t, "claim")])
		}
	}
}
