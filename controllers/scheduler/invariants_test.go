// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// accepts says whether a claim's placement accepts a server, whatever its spread counts.
func accepts(c *v1alpha1.ServerClaim, s *v1alpha1.Server) bool {
	p, _ := policies.PlacementOf(c)
	candidate := policies.CandidateOf(s, policies.Hardware{})
	return p.Brief(&candidate).Accepted
}

// checkPlacement tells if a server was given to a claim whose placement does not accept it. One that names the claim already is not
// chosen but adopted.
func (w *world) checkPlacement(before, s *v1alpha1.Server) {
	ref := s.Spec.ServerClaimRef
	if ref == nil || before.Spec.ServerClaimRef != nil {
		return
	}
	c := &v1alpha1.ServerClaim{}
	if w.api.Get(context.Background(), types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, c) == nil && holds(c, s) && !accepts(c, s) {
		w.mistake("server %s was given to claim %s, whose placement does not accept it", s.Name, c.Name)
	}
}

// noteGangs remembers of which gangs the scheduler knows the claims to be now, and which of these are committed.
func (w *world) noteGangs() {
	for _, n := range w.s.pending.ofNamespace("ns") {
		if w.commits != nil && n.ask.Gang() != nil && n.claim.Spec.ServerRef != nil {
			w.commits[n.ask.GangName()] = true
		}
		if known := w.gangs[n.claim.UID]; w.gangs != nil && (len(known) == 0 || known[len(known)-1] != n.ask.Gang()) {
			w.gangs[n.claim.UID] = append(known, n.ask.Gang())
		}
	}
}

// noteCommit remembers that a member of a gang has named its server: the others may follow, also where it ends meanwhile.
func (w *world) noteCommit(c *v1alpha1.ServerClaim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, gang := range w.gangs[c.UID] {
		if gang != nil && w.commits != nil {
			w.commits[gang.Name] = true
		}
	}
}

// checkGang tells if a member of a gang is about to name its server while another one has none. A claim that was changed while the
// pass was under way may be written by what it said before.
func (w *world) checkGang(c *v1alpha1.ServerClaim) {
	gangs := w.gangs[c.UID]
	if len(gangs) == 0 || c.Spec.ServerRef != nil {
		return
	}
	for _, gang := range gangs {
		if gang == nil || w.reservedFor(gang.Name) >= gang.Size || w.committed(gang.Name) || w.noted(gang.Name) {
			return
		}
	}
	gang := gangs[len(gangs)-1]
	w.mistake("claim %s of gang %s names a server while %d of %d members have one", c.Name, gang.Name, w.reservedFor(gang.Name), gang.Size)
}

// noted says that a commit of a gang was noted.
func (w *world) noted(gang string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.commits[gang]
}

// reservedFor counts the members of a gang for which a server is written.
func (w *world) reservedFor(gang string) int64 {
	reserved := map[types.UID]bool{}
	for _, s := range w.servers() {
		uid := types.UID(s.Annotations[v1alpha1.ClaimUIDAnnotation])
		for _, of := range w.gangs[uid] {
			if s.Spec.ServerClaimRef != nil && of != nil && of.Name == gang {
				reserved[uid] = true
			}
		}
	}
	return int64(len(reserved))
}

// checkSettled is what must hold once everything has come to rest.
func (w *world) checkSettled() {
	w.t.Helper()
	w.check()
	w.checkMistakes()
	w.checkLeftovers()
	w.checkCalm()
}

// checkLeftovers tells of a server that is written for a claim which does not name it: the claim is gone, its gang is not bound, or
// what it asks for cannot be read. Only what has left Available is for the server's lifecycle, and one that is locked stays with the
// former claim of the name of one that would take it over.
func (w *world) checkLeftovers() {
	w.t.Helper()
	named := map[types.UID]string{}
	wanted := map[string]bool{}
	for _, c := range w.claims() {
		for _, s := range w.servers() {
			wanted[s.Name] = wanted[s.Name] || policies.RelationOf(s, c) == policies.Adoptable
		}
		if c.Spec.ServerRef != nil {
			named[c.UID] = c.Spec.ServerRef.Name
		}
	}
	for _, s := range w.servers() {
		if uid := types.UID(s.Annotations[v1alpha1.ClaimUIDAnnotation]); Untouched(s) && named[uid] != s.Name && !(w.locked[s.Name] && wanted[s.Name]) {
			w.t.Fatalf("server %s stays reserved for claim %s, which names %q", s.Name, uid, named[uid])
		}
	}
}

// checkCalm is what must hold once everything has come to rest: nobody waits for what could be had.
func (w *world) checkCalm() {
	w.t.Helper()
	kept := w.s.fleet.Assumed()
	var free []*v1alpha1.Server
	for _, s := range w.servers() {
		if ok, _, _ := selection.Eligible(selection.ClaimSpec{}, policies.ServerStateOf(s)); ok && !w.locked[s.Name] {
			free = append(free, s)
		}
	}
	gangs := map[string][]*v1alpha1.ServerClaim{}
	for _, c := range w.claims() {
		p, found := policies.PlacementOf(c)
		if found.Err() != nil {
			continue
		}
		if gang := p.Gang(); gang != nil {
			gangs[gang.Name] = append(gangs[gang.Name], c)
			continue
		}
		if c.Spec.ServerRef != nil || w.holding(c) != nil {
			continue
		}
		for _, s := range free {
			if kept[s.Name] == "" && accepts(c, s) && w.mayStand(p.Spread(), c, s) {
				v, _ := w.s.Verdict(c.UID)
				w.t.Fatalf("claim %s waits while server %s is free: %s %s", c.Name, s.Name, v.Reason, v.Message)
			}
		}
	}
	for name, members := range gangs {
		w.checkGangCalm(name, members, slices.DeleteFunc(slices.Clone(free), func(s *v1alpha1.Server) bool {
			return kept[s.Name] != "" && !slices.ContainsFunc(members, func(c *v1alpha1.ServerClaim) bool { return string(c.UID) == kept[s.Name] })
		}))
	}
}

// mayStand says that a claim which keeps apart may have a server in any case: whether or not the gangs get what is kept for them.
func (w *world) mayStand(spread *placement.Spread, c *v1alpha1.ServerClaim, s *v1alpha1.Server) bool {
	if spread == nil {
		return true
	}
	kept, place := w.s.fleet.Assumed(), policies.RackOf(s)
	written, both := map[string]int64{}, map[string]int64{}
	for _, one := range w.servers() {
		rack := policies.RackOf(one)
		written[rack], both[rack] = written[rack]+0, both[rack]+0
		for _, other := range w.claims() {
			gang := ""
			if g := policies.GangOf(other); g != nil {
				gang = g.Name
			}
			relation := policies.RelationOf(one, other)
			switch has := relation == policies.Holds || relation == policies.Adoptable; {
			case other.UID == c.UID || !spread.Counts(other.Labels, gang):
			case has:
				written[rack]++
				both[rack]++
			case kept[one.Name] == string(other.UID):
				both[rack]++
			}
		}
	}
	least := both[place]
	for rack, n := range written {
		if rack != place {
			least = min(least, n)
		}
	}
	now, _ := spread.Allows(place, both)
	return now && both[place]+1-least <= spread.MaxSkew
}

func (w *world) checkGangCalm(name string, members []*v1alpha1.ServerClaim, free []*v1alpha1.Server) {
	w.t.Helper()
	sizes, waiting := []int64{}, []*v1alpha1.ServerClaim{}
	for _, c := range members {
		p, _ := policies.PlacementOf(c)
		sizes = append(sizes, p.Gang().Size)
		s := w.holding(c)
		if c.Spec.ServerRef != nil && (s == nil || s.Name != c.Spec.ServerRef.Name) || p.Spread() != nil {
			return // somebody named a server that is not to be had
		}
		if s == nil && c.Spec.ServerRef == nil {
			waiting = append(waiting, c)
		}
	}
	if muster, _ := placement.MusterOf(sizes); muster == placement.Complete && len(waiting) > 0 && canAll(waiting, free) {
		v, _ := w.s.Verdict(waiting[0].UID)
		w.t.Fatalf("gang %s waits while servers for all its members are free: %s %s", name, v.Reason, v.Message)
	}
}

// holding is a server that is written for a claim.
func (w *world) holding(c *v1alpha1.ServerClaim) *v1alpha1.Server {
	for _, s := range w.servers() {
		if policies.RelationOf(s, c) == policies.Holds {
			return s
		}
	}
	return nil
}

// canAll tries every way to give each claim a server.
func canAll(claims []*v1alpha1.ServerClaim, free []*v1alpha1.Server) bool {
	if len(claims) == 0 {
		return true
	}
	for i, s := range free {
		if accepts(claims[0], s) && canAll(claims[1:], slices.Delete(slices.Clone(free), i, i+1)) {
			return true
		}
	}
	return false
}

func TestSpreadHoldsAfterEveryPass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.policy = best{most: rapid.IntRange(1, 3).Draw(t, "ranked")}
		w.gate = newGate() // so that bindings are under way side by side
		w.gate.choose = func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "worker") }
		w.restart()
		skew := rapid.IntRange(1, 2).Draw(t, "maxSkew")
		spread := placed(fmt.Sprintf("spread: {key: rack, maxSkew: %d, claims: {}}", skew))
		servers, claims := 0, 0
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			for range rapid.IntRange(0, 5).Draw(t, "servers") {
				rack := fmt.Sprintf("r%d", rapid.IntRange(1, 3).Draw(t, "rack"))
				w.addServer(aServer(fmt.Sprintf("s%02d", servers), labelled(policies.RackMetadata, rack)))
				servers++
			}
			for range rapid.IntRange(0, 5).Draw(t, "claims") {
				w.addClaim(aClaim(fmt.Sprintf("c%02d", claims), spread))
				claims++
			}
			if all := w.claims(); len(all) > 0 && rapid.Bool().Draw(t, "end") {
				c := all[rapid.IntRange(0, len(all)-1).Draw(t, "claim")]
				if s := w.holding(c); s != nil {
					w.changeServer(s, ForgetBinding)
				}
				w.endClaim(c)
			}
			before := w.perRack()
			w.gate.drawnFrom(t) // some bindings come to nothing, on which others may have counted
			for range 3 {
				w.deliver(len(w.events))
				_ = w.pass()
				if w.gate.crashed() {
					w.gate.drawnFrom(t)
					w.restart()
				}
				w.checkSpread(before, int64(skew))
			}
			w.settle()
			w.check()
			w.checkSpread(before, int64(skew))
			w.checkNoneWaits(int64(skew))
		}
	})
}

// perRack counts the servers by rack that are written for a claim.
func (w *world) perRack() map[string]int64 {
	counts := map[string]int64{}
	for _, s := range w.servers() {
		rack := policies.RackOf(s)
		counts[rack] += 0
		if s.Spec.ServerClaimRef != nil {
			counts[rack]++
		}
	}
	return counts
}

// checkSpread is what must hold after claims that are spread were bound, whatever became of others meanwhile: no rack that got one
// has too many.
func (w *world) checkSpread(before map[string]int64, skew int64) {
	w.t.Helper()
	counts := w.perRack()
	least := placement.Emptiest(counts)
	for rack, n := range counts {
		if n > before[rack] && n-least > skew {
			w.t.Fatalf("rack %s has %d of %v", rack, n, counts)
		}
	}
}

// checkNoneWaits is what must hold at rest: none waits for a free server in a rack that may have one more.
func (w *world) checkNoneWaits(skew int64) {
	w.t.Helper()
	counts := w.perRack()
	least := placement.Emptiest(counts)
	waiting := 0
	for _, c := range w.claims() {
		if c.Spec.ServerRef == nil {
			waiting++
		}
	}
	for _, s := range w.servers() {
		if waiting > 0 && s.Spec.ServerClaimRef == nil && counts[policies.RackOf(s)]+1-least <= skew {
			w.t.Fatalf("%d claims wait while server %s is free; %v", waiting, s.Name, counts)
		}
	}
}

// ofNamespace are the claims of a namespace, open or not.
func (p *pending) ofNamespace(namespace string) []*namespaceClaim {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.all[namespace]))
}

// anyDue says whether the next cycle has to look at any claim.
func (p *pending) anyDue() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.claims {
		if w.due || w.class != nil && w.class.offered {
			return true
		}
	}
	return false
}

// made is when a claim was made, after so many seconds.
func made(seconds int) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) {
		c.CreationTimestamp = metav1.NewTime(epoch.Add(time.Duration(seconds) * time.Second))
	}
}
