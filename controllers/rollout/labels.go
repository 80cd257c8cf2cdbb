// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/diag"
)

const (
	// maxHeads is how many ConfigMaps with the same content are told apart.
	maxHeads = 16
	// maxRecord is how many characters the record of an activation may have. Admission writes none that is longer: the time at its end counts.
	maxRecord = 512
)

// rank orders what labels ask for, where several ConfigMaps hold the same content.
var rank = map[policyv1alpha1.LabelledStage]int{
	policyv1alpha1.LabelledDraft: 1, policyv1alpha1.LabelledShadow: 2, policyv1alpha1.LabelledCanary: 3, policyv1alpha1.LabelledActive: 4,
}

// readLabels records what the labels ask for, and finds the promotions that are new. Each ConfigMap is compared with what it
// asked for itself, so that a second one with the same content hides nothing.
func (d *decision) readLabels() {
	for _, s := range d.all {
		known := recorded(&s.Status)
		held, leftOut := d.holders(s, known)
		s.leftOut = leftOut
		s.readHeads(held, known)
		switch {
		case len(s.st.Heads) > 0:
			s.st.LabelledStage = slices.MaxFunc(s.st.Heads, func(a, b policyv1alpha1.LabelledHead) int { return rank[a.Stage] - rank[b.Stage] }).Stage
		case s.note == "" && s.was != "" && s.was != policyv1alpha1.LabelledNone:
			s.st.LabelledStage = policyv1alpha1.LabelledNone
		}
		if s.head == nil && s.note == "" && s.st.Head != "" {
			s.note = fmt.Sprintf("ConfigMap %s does not hold it any more", s.st.Head)
		}
	}
}

// recorded are the ConfigMaps that held a revision at the last look, by name.
func recorded(st *policyv1alpha1.PolicyRevisionStatus) map[string]policyv1alpha1.LabelledHead {
	known := map[string]policyv1alpha1.LabelledHead{}
	for _, h := range st.Heads {
		known[h.Name] = h
	}
	if len(known) == 0 && st.Head != "" && rank[st.LabelledStage] > 0 { // a status that tells of one only
		known[st.Head] = policyv1alpha1.LabelledHead{Name: st.Head, Stage: st.LabelledStage, ActivatedBy: st.ActivatedBy}
	}
	return known
}

// holders are the ConfigMaps that hold a revision, or that held it and cannot be used at the moment. Where they are more than can be
// told apart, copies that ask for less never hide one that asks for more, nor an older activation a later one.
func (d *decision) holders(s *subject, known map[string]policyv1alpha1.LabelledHead) (held []*Head, leftOut int) {
	for i := range d.Heads {
		h := &d.Heads[i]
		if _, was := known[h.Name]; h.Revision == s.Name || was && h.Problem != "" {
			held = append(held, h)
		}
	}
	slices.SortFunc(held, func(a, b *Head) int {
		asksA, asksB := asksFor(a, known), asksFor(b, known)
		return cmp.Or(
			rank[asksB.Stage]-rank[asksA.Stage],
			activatedAt(asksB.ActivatedBy).Compare(activatedAt(asksA.ActivatedBy)),
			boolFirst(known[a.Name].Name != "", known[b.Name].Name != ""),
			strings.Compare(a.Name, b.Name))
	})
	kept := min(len(held), maxHeads)
	return held[:kept], len(held) - kept
}

// asksFor is what counts of a ConfigMap: what it asks for, or, while it cannot be used, what it asked for before.
func asksFor(h *Head, known map[string]policyv1alpha1.LabelledHead) policyv1alpha1.LabelledHead {
	if h.Problem != "" {
		return known[h.Name]
	}
	return policyv1alpha1.LabelledHead{Stage: h.Stage, ActivatedBy: h.ActivatedBy}
}

// activatedAt is the time in the record of an activation; zero where there is none.
func activatedAt(record string) time.Time {
	record = strings.TrimSuffix(record, policyv1alpha1.ActivationRestored)
	at, err := time.Parse(time.RFC3339Nano, record[strings.LastIndexByte(record, ' ')+1:])
	if err != nil {
		return time.Time{}
	}
	return at
}

// wasLeftOut says that a ConfigMap that is not known may have been labelled active at the last look already, and was left out then: as all
// that were known were active, none of them activated earlier. That it comes in, because another one went, is no promotion.
func wasLeftOut(h *Head, known map[string]policyv1alpha1.LabelledHead) bool {
	if _, was := known[h.Name]; was || len(known) < maxHeads {
		return false
	}
	at := activatedAt(h.ActivatedBy)
	for _, k := range known {
		if k.Stage != policyv1alpha1.LabelledActive || at.After(activatedAt(k.ActivatedBy)) {
			return false
		}
	}
	return true
}

// readHeads reads the labels of the ConfigMaps that hold a revision. One that cannot be used changes nothing: its label
// counts as before.
func (s *subject) readHeads(held []*Head, known map[string]policyv1alpha1.LabelledHead) {
	s.st.Heads = nil
	var asks *Head
	for _, h := range held {
		prior, was := known[h.Name]
		if h.Problem != "" {
			s.note = fmt.Sprintf("ConfigMap %s changes nothing: %s", h.Name, h.Problem)
			if was {
				prior.Problem = diag.Shortened(h.Problem, maxText)
				s.st.Heads = append(s.st.Heads, prior)
			}
			continue
		}
		now := policyv1alpha1.LabelledHead{Name: h.Name, Stage: h.Stage, Digest: h.Digest,
			ActivatedBy: diag.ShortenedCharacters(h.ActivatedBy, maxRecord)}
		s.st.Heads = append(s.st.Heads, now)
		if asked(prior, now) && !s.cameBack(h, was) && !wasLeftOut(h, known) && (asks == nil || h.Name < asks.Name) {
			asks = h
		}
		if s.better(h) {
			s.head = h
		}
	}
	slices.SortFunc(s.st.Heads, func(a, b policyv1alpha1.LabelledHead) int { return strings.Compare(a.Name, b.Name) })
	if s.head == nil {
		return
	}
	s.note = ""
	// A revision that was promoted and has no status came back, by a restore: its label is no news.
	if asks != nil && !s.lost() {
		s.newcomer, s.head = true, asks
	}
	s.st.Head = s.head.Name
	if s.head.ActivatedBy != "" && rank[s.head.Stage] >= rank[policyv1alpha1.LabelledCanary] {
		s.st.ActivatedBy = diag.ShortenedCharacters(s.head.ActivatedBy, maxRecord)
	}
}

// asked says that a ConfigMap asks anew for its revision to be in force: by its label, or, where no look has seen the label
// that it had in between, by the record that admission writes whenever a label becomes active.
func asked(prior, now policyv1alpha1.LabelledHead) bool {
	return now.Stage == policyv1alpha1.LabelledActive &&
		(prior.Stage != policyv1alpha1.LabelledActive || now.ActivatedBy != "" && now.ActivatedBy != prior.ActivatedBy)
}

// cameBack says that a ConfigMap was restored together with a revision that has its number from the backup: its label tells of a promotion
// in another cluster, so that a backup puts nothing in force.
func (s *subject) cameBack(h *Head, known bool) bool {
	return s.Elsewhere > 0 && !known && strings.HasSuffix(h.ActivatedBy, policyv1alpha1.ActivationRestored)
}

// better says that the label of a ConfigMap counts rather than that which was found so far: the one that asks for more, else
// the one that counted before.
func (s *subject) better(h *Head) bool {
	than := s.head
	switch {
	case than == nil || rank[h.Stage] != rank[than.Stage]:
		return than == nil || rank[h.Stage] > rank[than.Stage]
	case than.Name == s.Status.Head || h.Name == s.Status.Head:
		return h.Name == s.Status.Head
	}
	return h.Name < than.Name
}

// lost says that a revision took effect once, here or elsewhere, and has no status, as after a restore.
func (s *subject) lost() bool { return max(s.Promotion, s.Elsewhere) > 0 && s.Status.Stage == "" }
