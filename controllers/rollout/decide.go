// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/api/equality"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/diag"
)

// decision is a Look on its way to an Outcome.
type decision struct {
	Look
	all []*subject
	// live are the running managers.
	live []*Replica
	// inForce is what governs; nil where a promotion is missing, and where not even the built-in revision is stored yet.
	inForce *subject
	again   time.Duration
}

// subject is one revision while it is decided about.
type subject struct {
	*Revision
	st policyv1alpha1.PolicyRevisionStatus
	// was is the label that was recorded before this look.
	was policyv1alpha1.LabelledStage
	// head is the usable ConfigMap whose label counts; nil where none holds the revision.
	head *Head
	// note is what is wrong with its ConfigMap.
	note string
	// leftOut is how many ConfigMaps with this content are not looked at.
	leftOut int
	// newcomer says that its promotion is asked for in this look, promoted that it takes effect in it.
	newcomer, promoted bool
	// pending says that its promotion waits, conflict that another one came at the same time.
	pending, conflict bool
	// awaits is whom it waits for.
	awaits string
	// crowdedBy names the shadows that leave no place for it among them; empty where it has one, or asks for none.
	crowdedBy []string
}

// Decide says what is to be written. The same Look always gives the same Outcome, and a Look at what was written writes
// nothing more.
func Decide(l Look) Outcome {
	d := &decision{Look: l}
	for i := range l.Replicas {
		if r := &l.Replicas[i]; r.live(l.Now) {
			d.live = append(d.live, r)
		}
	}
	slices.SortFunc(d.live, func(a, b *Replica) int { return strings.Compare(a.Name, b.Name) })
	for i := range l.Revisions {
		r := &l.Revisions[i]
		s := &subject{Revision: r, st: *r.Status.DeepCopy(), was: r.Status.LabelledStage}
		s.st.Promotion = max(s.st.Promotion, r.Promotion)
		d.all = append(d.all, s)
	}
	slices.SortFunc(d.all, func(a, b *subject) int { return strings.Compare(a.Name, b.Name) })
	d.inForce = d.incumbent()
	d.readLabels()
	d.numberBuiltIn()
	d.promote()
	d.takeEffect()
	d.placeShadows()
	for _, s := range d.all {
		d.stage(s)
	}
	for _, s := range d.all {
		d.describe(s)
	}
	return d.outcome()
}

// incumbent is the revision with the highest promotion that took effect; where none did, the built-in one that governs, or the
// one of this manager. There is none while a promotion is missing.
func (d *decision) incumbent() *subject {
	var found *subject
	if d.Missing != "" {
		return nil
	}
	for _, s := range d.all {
		if s.Promotion > 0 && (found == nil || s.Promotion > found.Promotion) {
			found = s
		}
	}
	if found != nil {
		return found
	}
	for _, s := range d.all {
		if s.Status.Stage == policyv1alpha1.StageEmbedded {
			return s
		}
		if s.Name == d.Embedded {
			found = s
		}
	}
	return found
}

// numberBuiltIn makes the built-in revision that governs where nobody has promoted any the first promotion. So the one that is
// built into a newer manager is one more revision, which takes effect only when somebody promotes it, on all managers alike.
func (d *decision) numberBuiltIn() {
	in := d.inForce
	if in == nil || in.Promotion > 0 {
		return
	}
	for _, s := range d.all {
		if s.st.Promotion > 0 { // it waits, and comes after
			s.st.Promotion++
		}
	}
	in.st.Promotion, in.promoted = 1, true
}

// promote numbers the promotion that is asked for in this look. Of several that come at once the one in force stays if it
// is among them, else the highest version is promoted; the others are in conflict. A revision in force that has lost its
// status is among them, and so is the restored one whose promotion is missing: their labels came back with them.
func (d *decision) promote() {
	var asking []*subject
	last := d.Last
	for _, s := range d.all {
		if s.newcomer {
			asking = append(asking, s)
		}
		last = max(last, s.st.Promotion, s.Elsewhere) // a former version compares both
	}
	if len(asking) == 0 {
		return
	}
	winner := slices.MaxFunc(asking, compareVersions)
	for _, s := range d.all {
		if s == d.inForce && (s.newcomer || s.lost() && s.Name != d.Embedded) || s.Name == d.Missing && s.lost() {
			winner = s
		}
	}
	for _, s := range asking {
		s.conflict = s != winner || last >= policyv1alpha1.MaxPromotion // what is in force stays
	}
	if winner.newcomer && !winner.conflict {
		winner.st.Promotion = last + 1
	}
}

func compareVersions(a, b *subject) int {
	va, errA := semver.NewVersion(a.Version)
	vb, errB := semver.NewVersion(b.Version)
	if errA != nil || errB != nil {
		return cmp.Or(strings.Compare(a.Version, b.Version), strings.Compare(a.Name, b.Name))
	}
	return cmp.Or(va.Compare(vb), strings.Compare(a.Name, b.Name))
}

// takeEffect puts the last promotion in force once every running manager has compiled the revision. One that is not
// labelled active any more is taken back, and one that was overtaken before it took effect is over: it would else come into
// force by itself when the later one is taken back.
func (d *decision) takeEffect() {
	next := d.next()
	for _, s := range d.all {
		if s != next && !s.promoted {
			s.st.Promotion = s.Promotion
		}
	}
	if next == nil {
		return
	}
	if next != d.inForce {
		if next.awaits = d.awaited(next); next.awaits != "" {
			next.pending = true
			return
		}
	}
	next.promoted = true
	d.inForce = next
}

// next is the last promotion that is asked for still and has not taken effect; nil where there is none after that in force.
func (d *decision) next() *subject {
	var next *subject
	for _, s := range d.all {
		waits := s.st.Promotion > s.Promotion && s.st.LabelledStage == policyv1alpha1.LabelledActive && !s.promoted
		if waits && (next == nil || s.st.Promotion > next.st.Promotion) {
			next = s
		}
	}
	if next != nil && d.inForce != nil && next.st.Promotion < d.inForce.Promotion {
		return nil
	}
	return next
}

// awaited names the running managers that have not compiled a revision; empty where all have.
func (d *decision) awaited(s *subject) string {
	if len(d.live) == 0 {
		return "no running manager has said yet what it compiled"
	}
	var missing []string
	for _, r := range d.live {
		why, refused := r.Refused[s.Digest]
		switch {
		case refused:
			missing = append(missing, r.Name+" refuses it: "+firstLine(why))
		case !r.Compiled[s.Digest]:
			missing = append(missing, r.Name+" has not compiled it yet")
		default:
			continue
		}
		if left := r.RenewedAt.Add(r.Lasts).Sub(d.Now); d.again == 0 || left < d.again {
			d.again = max(left, time.Second)
		}
	}
	return strings.Join(missing, "; ")
}

func (d *decision) outcome() Outcome {
	o := Outcome{Again: d.again, Obsolete: d.obsolete()}
	if d.inForce != nil {
		o.InForce = d.inForce.Name
	}
	var promoted []Write
	for _, s := range d.all {
		w := Write{Revision: s.Name, Status: s.st}
		if s.promoted {
			w.Promotion = s.st.Promotion
			promoted = append(promoted, w)
		} else if !equality.Semantic.DeepEqual(s.st, s.Status) {
			o.Writes = append(o.Writes, w)
		}
	}
	// In their order, so that a manager which is stopped between two leaves none without its number.
	slices.SortFunc(promoted, func(a, b Write) int { return cmp.Compare(a.Promotion, b.Promotion) })
	o.Writes = append(promoted, o.Writes...)
	return o
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return diag.Shortened(line, 300)
}
