// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/maintenance/grant"
	"github.com/metalaw/metalaw/internal/rights"
	"github.com/metalaw/metalaw/internal/stored"
)

// rightsLast is how long an answer about a right is good.
const rightsLast = time.Minute

// makers asks for the rights of those who made maintenances, and remembers the answers for a while.
type makers struct {
	client client.Client
	now    func() time.Time
	// unknown says that no maker is known, because admission did not write who it is.
	unknown bool
	known   map[rightOf]rightKnown
	// lacking are the maintenances whose makers lacked a right when they were to be granted.
	lacking map[types.UID]lack
}

type rightOf struct {
	maker string
	rights.Right
}

type rightKnown struct {
	holds bool
	until time.Time
}

// lack is a right that the maker of a maintenance lacked.
type lack struct {
	answer grant.Answer
	// enforce says that it is the right to enforce, without which the holder is asked.
	enforce bool
	until   time.Time
}

// makerOf is who made a maintenance; false where nobody knows.
func (r *makers) makerOf(m *v1alpha1.ServerMaintenance) (rights.Maker, bool) {
	if r.unknown {
		return rights.Maker{}, false
	}
	maker, err := rights.ParseMaker(m.Annotations[v1alpha1.MakerAnnotation])
	return maker, err == nil
}

// mayEnforce says that the maker of a maintenance is known, and was not found to lack the right to enforce.
func (r *makers) mayEnforce(m *v1alpha1.ServerMaintenance) bool {
	_, known := r.makerOf(m)
	l, lacks := r.lacking[m.UID]
	return known && !(lacks && l.enforce && l.until.After(r.now()))
}

// refused says which right the maker of a maintenance was found to lack; empty where none.
func (r *makers) refused(m *v1alpha1.ServerMaintenance) grant.Answer {
	if l := r.lacking[m.UID]; !l.enforce && l.until.After(r.now()) {
		return l.answer
	}
	return grant.Answer{}
}

// again is when a maker may be asked again for a right that it lacked; zero where none did.
func (r *makers) again() time.Time {
	var first time.Time
	for _, l := range r.lacking {
		if first.IsZero() || l.until.Before(first) {
			first = l.until
		}
	}
	return first
}

// forget drops what holds no more.
func (r *makers) forget() {
	now := r.now()
	for key, k := range r.known {
		if !k.until.After(now) {
			delete(r.known, key)
		}
	}
	for uid, l := range r.lacking {
		if !l.until.After(now) {
			delete(r.lacking, uid)
		}
	}
}

// permit asks whether the maker of a maintenance holds what its grant takes. The rights of an unknown maker are not asked: the holder of
// the claim is, in any case, and no image is booted beside data. So is the holder where the maker may not enforce. What is lacking is
// remembered, for the grants.
func (r *makers) permit(ctx context.Context, m *v1alpha1.ServerMaintenance, s *v1alpha1.Server, claim *v1alpha1.ServerClaim) (bool, error) {
	maker, known := r.makerOf(m)
	inventory, err := stored.Inventory(ctx, r.client, s.Spec.SystemUUID)
	if err != nil {
		return false, err
	}
	for _, right := range rights.Needed(m, s, claim, rights.Dirty(s, inventory)) {
		switch {
		case !known && right.Verb == rights.VerbBoot:
			r.lacks(m, right, "It is not known who made it, and it boots an image on a server that may hold data. Make it anew.")
			return false, nil
		case !known, right.Verb == rights.VerbEnforce && !r.mayEnforce(m):
			continue
		}
		holds, err := r.holds(ctx, m.Annotations[v1alpha1.MakerAnnotation], maker, right)
		if err != nil {
			return false, err
		}
		if !holds {
			r.lacks(m, right, "Not granted: "+right.Lacks(maker.Username)+".")
			return false, nil
		}
	}
	return true, nil
}

// lacks remembers a right that the maker of a maintenance lacks.
func (r *makers) lacks(m *v1alpha1.ServerMaintenance, right rights.Right, message string) {
	if r.lacking == nil {
		r.lacking = map[types.UID]lack{}
	}
	r.lacking[m.UID] = lack{answer: grant.Answer{Reason: v1alpha1.ReasonNotPermitted, Message: message},
		enforce: right.Verb == rights.VerbEnforce, until: r.now().Add(rightsLast)}
}

// holds asks first whether a maker has a right on all servers, so that many maintenances of one maker cost few questions.
func (r *makers) holds(ctx context.Context, text string, maker rights.Maker, right rights.Right) (bool, error) {
	all := right
	all.Name = ""
	for _, one := range []rights.Right{all, right} {
		key := rightOf{text, one}
		k, ok := r.known[key]
		if !ok || !k.until.After(r.now()) {
			holds, err := rights.Ask(ctx, r.client, maker, one)
			if err != nil {
				return false, err
			}
			if k = (rightKnown{holds, r.now().Add(rightsLast)}); r.known == nil {
				r.known = map[rightOf]rightKnown{}
			}
			r.known[key] = k
		}
		if k.holds {
			return true, nil
		}
	}
	return false, nil
}
