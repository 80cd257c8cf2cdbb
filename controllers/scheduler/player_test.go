// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/policies"
)

// player does to a world at random what users, servers, networks and crashes do.
type player struct {
	*world
	asks []string
	// generation tells claims of one name apart.
	generation int
}

// names are those of servers, and of claims.
var names = []string{"a", "b", "c", "d", "e", "f"}

// play goes through a random story, and sees after every step that nothing happened that must never happen, and at every rest that
// nothing is left over.
// Where there are servers from the first, there is a gang as well.
func play(t *rapid.T, asks []string, least int) *world {
	p := &player{world: newWorld(t), asks: asks}
	p.gate = newGate()
	p.policy = best{most: rapid.IntRange(1, 3).Draw(t, "ranked")}
	for _, name := range names[:rapid.IntRange(least, len(names)).Draw(t, "servers")] {
		p.newServer(name)
	}
	for range rapid.IntRange(min(least, 1), 2).Draw(t, "gangs") {
		p.gangOf(rapid.SampledFrom(p.gangs()).Draw(t, "asks"))
	}
	p.begin(t)
	t.Repeat(map[string]func(*rapid.T){
		"":                    func(*rapid.T) { p.check() },
		"server":              p.server,
		"claim":               p.claim,
		"gang":                p.gang,
		"another placement":   p.anotherPlacement,
		"end":                 p.end,
		"user names a server": p.userNamesAServer,
		"server moves on":     p.serverMovesOn,
		"server boots":        p.serverBoots,
		"server changes":      p.serverChanges,
		"server is locked":    p.serverIsLocked,
		"watch":               func(t *rapid.T) { p.deliver(rapid.IntRange(1, 4).Draw(t, "events")) },
		"pass":                p.onePass,
		"another pass":        p.onePass,
		"pass that knows all": func(t *rapid.T) {
			p.deliver(len(p.events))
			p.onePass(t)
		},
		"time":    func(*rapid.T) { p.now = p.now.Add(10 * time.Second) },
		"restart": p.begin,
		"rest":    p.rest,
	})
	p.settle()
	p.checkSettled()
	return p.world
}

// begin is a manager that was not seen before.
func (p *player) begin(t *rapid.T) {
	p.trouble(t)
	p.restart()
}

// trouble draws what goes wrong with writes from now on, and what happens meanwhile.
func (p *player) trouble(t *rapid.T) {
	p.gate.drawnFrom(t)
	p.gate.meanwhile = func() { p.between(t) }
}

func (p *player) onePass(t *rapid.T) {
	_ = p.pass()
	p.check()
	p.meet()
	if p.gate.crashed() {
		p.begin(t)
	}
}

// rest lets everything come to rest. The manager goes on, with what it knows.
func (p *player) rest(t *rapid.T) {
	p.settle()
	p.checkSettled()
	p.trouble(t)
}

func (p *player) find(t *rapid.T) *v1alpha1.ServerClaim {
	all := p.claims()
	if len(all) == 0 {
		t.Skip("no claim")
	}
	return all[rapid.IntRange(0, len(all)-1).Draw(t, "claim")]
}

func (p *player) newServer(name string) {
	rack := "r1"
	if name > "c" {
		rack = "r2"
	}
	p.addServer(aServer(name, labelled(policies.RackMetadata, rack)))
}

func (p *player) server(t *rapid.T) {
	name := rapid.SampledFrom(names).Draw(t, "server")
	if p.api.Get(context.Background(), types.NamespacedName{Name: name}, &v1alpha1.Server{}) == nil {
		t.Skip("it is there")
	}
	p.newServer(name)
}

// newClaim makes a claim, unless there is one of that name.
func (p *player) newClaim(name, asks string) bool {
	if p.api.Get(context.Background(), types.NamespacedName{Namespace: "ns", Name: name}, &v1alpha1.ServerClaim{}) == nil {
		return false
	}
	p.generation++
	p.addClaim(aClaim(name, placedIf(asks), func(c *v1alpha1.ServerClaim) { c.UID = types.UID(fmt.Sprintf("uid-%s-%d", name, p.generation)) }))
	return true
}

func (p *player) claim(t *rapid.T) {
	if !p.newClaim(rapid.SampledFrom(names).Draw(t, "name"), rapid.SampledFrom(p.asks).Draw(t, "asks")) {
		t.Skip("it is there")
	}
}

// gangs are those of the asks that are of a gang.
func (p *player) gangs() []string {
	var asked []string
	for _, asks := range p.asks {
		if policies.GangOf(aClaim("", placedIf(asks))) != nil {
			asked = append(asked, asks)
		}
	}
	return asked
}

// gangOf makes the members that a gang lacks. It says whether it lacks any.
func (p *player) gangOf(asks string) bool {
	gang := policies.GangOf(aClaim("", placedIf(asks)))
	missing := gang.Size
	for _, c := range p.claims() {
		if other := policies.GangOf(c); other != nil && other.Name == gang.Name {
			missing--
		}
	}
	found := missing > 0
	for _, name := range names {
		if missing > 0 && p.newClaim(name, asks) {
			missing--
		}
	}
	return found
}

func (p *player) gang(t *rapid.T) {
	if !p.gangOf(rapid.SampledFrom(p.gangs()).Draw(t, "asks")) {
		t.Skip("it is whole")
	}
}

// changes are placements that a claim is changed to. They accept every server, so that what is written by the one before is
// accepted.
var changes = []string{ofTwo, ofThree, ofPair, "gang: {", ""}

// placedIf gives a claim a placement, or none.
func placedIf(asks string) func(*v1alpha1.ServerClaim) {
	if asks == "" {
		return func(c *v1alpha1.ServerClaim) { delete(c.Annotations, v1alpha1.PlacementAnnotation) }
	}
	return placed(asks)
}

func (p *player) anotherPlacement(t *rapid.T) {
	c := p.find(t)
	if c.Spec.ServerRef != nil {
		t.Skip("it has its server")
	}
	placedIf(rapid.SampledFrom(changes).Draw(t, "asks"))(c)
	p.must(p.api.Update(context.Background(), c))
	p.shown(c)
}

func (p *player) end(t *rapid.T) { p.endClaim(p.find(t)) }

func (p *player) userNamesAServer(t *rapid.T) {
	c := p.find(t)
	if c.Spec.ServerRef != nil {
		t.Skip("it names one")
	}
	naming(rapid.SampledFrom(names).Draw(t, "server"))(c)
	p.must(p.api.Update(context.Background(), c))
	p.shown(c)
}

func (p *player) serverMovesOn(t *rapid.T) {
	for _, s := range p.servers() {
		if s.Spec.ServerClaimRef != nil && s.Status.State == v1alpha1.StateAvailable && (!p.binding(s) || rapid.IntRange(0, 9).Draw(t, "stale") == 9) {
			p.changeServer(s, inState(v1alpha1.StateReserved), func(s *v1alpha1.Server) { s.Status.Lifecycle = &v1alpha1.LifecycleStatus{} })
			return
		}
	}
	t.Skip("none is held")
}

// binding says that a server is written for a claim that does not name any yet: its lifecycle waits for that, unless it knows an
// older claim.
func (p *player) binding(s *v1alpha1.Server) bool {
	for _, c := range p.claims() {
		if policies.RelationOf(s, c) == policies.Holds && c.Spec.ServerRef == nil {
			return true
		}
	}
	return false
}

// meet notes what a pass left of the gangs.
func (p *player) meet() {
	bound := map[placement.Gang]int64{}
	for _, c := range p.claims() {
		gang, s := policies.GangOf(c), p.holding(c)
		switch {
		case gang == nil || s == nil:
		case c.Spec.ServerRef == nil:
			p.met.parted = p.met.parted || Untouched(s)
		default:
			bound[*gang]++
			p.met.bound = p.met.bound || bound[*gang] == gang.Size
		}
	}
}

func (p *player) serverBoots(t *rapid.T) {
	for _, s := range p.servers() {
		for _, c := range p.claims() {
			if s.Status.State == v1alpha1.StateReserved && policies.Bound(s, c) {
				p.changeServer(s, dirty)
				return
			}
		}
	}
	t.Skip("none is bound")
}

func (p *player) serverChanges(t *rapid.T) {
	all := p.servers()
	if len(all) == 0 {
		t.Skip("none")
	}
	s := all[rapid.IntRange(0, len(all)-1).Draw(t, "server")]
	p.changeServer(s, func(s *v1alpha1.Server) { s.Spec.Unclaimable = !s.Spec.Unclaimable })
}

// serverIsLocked has nobody get a server, or ends that. Nothing shows it but what becomes of writes.
func (p *player) serverIsLocked(t *rapid.T) {
	name := rapid.SampledFrom(names).Draw(t, "server")
	p.locked[name] = !p.locked[name]
}

// between is what happens while workers are at work: the watch goes on, and somebody else changes a server or ends a claim.
func (p *player) between(t *rapid.T) {
	servers, claims := p.servers(), p.claims()
	switch rapid.SampledFrom([]string{"", "", "", "", "watch", "server", "end"}).Draw(t, "meanwhile") {
	case "watch":
		p.deliver(rapid.IntRange(1, 3).Draw(t, "events"))
	case "server":
		if len(servers) > 0 {
			p.serverChanges(t)
		}
	case "end":
		if len(claims) > 0 {
			p.end(t)
		}
	}
}
