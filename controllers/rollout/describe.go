// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/internal/canary"
)

const (
	maxFindings = 200
	maxLoaded   = 32
	maxText     = 1024
)

// InUse says that a revision governs, is about to, or is evaluated: each running manager compiles and tests it. One that was
// superseded is not, though its ConfigMap may be labelled active for ever, until it is promoted again; nor is one that has no place
// among the shadows yet. The promotion is that by which it came into force last; 0 where none did.
func InUse(st *policyv1alpha1.PolicyRevisionStatus, promotion int64) bool {
	if governs(st.Stage) {
		return true
	}
	switch st.LabelledStage {
	case policyv1alpha1.LabelledCanary:
		return true
	case policyv1alpha1.LabelledActive:
		return st.Stage != policyv1alpha1.StageSuperseded || st.Promotion > promotion
	default:
		return false
	}
}

// governs says that somebody is governed by a revision in that stage, or that it is evaluated.
func governs(stage policyv1alpha1.PolicyStage) bool {
	return stage == policyv1alpha1.StageEmbedded || stage == policyv1alpha1.StageActive || stage == policyv1alpha1.StageCanary ||
		stage == policyv1alpha1.StageShadow
}

// asks says that a label is that of more than a draft.
func asks(label policyv1alpha1.LabelledStage) bool {
	return rank[label] >= rank[policyv1alpha1.LabelledShadow]
}

// describe fills what the status tells besides the stage.
func (d *decision) describe(s *subject) {
	st := &s.st
	st.ObservedGeneration, st.Servers = s.Generation, s.Servers
	st.Loaded = nil
	if s == d.inForce || InUse(st, s.Promotion) {
		for _, r := range d.live {
			why, refused := r.Refused[s.Digest]
			l := policyv1alpha1.LoadedRevision{Replica: r.Name, EngineVersion: r.EngineVersion, Compiled: r.Compiled[s.Digest] && !refused}
			if refused {
				l.Outcome, l.Message = policyv1alpha1.LoadedRefused, diag.Shortened(why, maxText)
			} else if !l.Compiled {
				l.Message = "it has not said yet"
			}
			st.Loaded = append(st.Loaded, l)
		}
		st.Loaded = st.Loaded[:min(len(st.Loaded), maxLoaded)]
	}
	if t := s.Test; t != nil {
		d.recordTest(s, t)
	}
	status, reason, message := d.active(s)
	if d.inForce == nil && d.Missing != "" {
		reason, message = d.ungoverned(s, reason, message)
	}
	message += dropped(s.Dropped)
	if s.note != "" {
		message += "; " + s.note
	}
	if s.leftOut > 0 {
		message += fmt.Sprintf("; %d more with this content are not looked at, as %d ConfigMaps are told apart: delete copies that are not needed",
			s.leftOut, maxHeads)
	}
	d.condition(s, policyv1alpha1.ConditionActive, status, reason, message)
}

// recordTest records what this manager makes of the content.
func (d *decision) recordTest(s *subject, t *Test) {
	st := &s.st
	st.Findings, st.FindingsTotal = nil, int32(t.Total)
	for _, f := range t.Findings[:min(len(t.Findings), maxFindings)] {
		st.Findings = append(st.Findings, diag.Shortened(f, maxText))
	}
	switch {
	case !t.Compiled:
		d.condition(s, policyv1alpha1.ConditionCompiled, metav1.ConditionFalse, policyv1alpha1.ReasonCompileFailed,
			"the content does not compile in this engine: "+t.Refused)
		d.condition(s, policyv1alpha1.ConditionVerified, metav1.ConditionFalse, policyv1alpha1.ReasonVerifyFailed,
			"what does not compile cannot be checked")
	case t.Refused != "":
		d.condition(s, policyv1alpha1.ConditionCompiled, metav1.ConditionTrue, policyv1alpha1.ReasonCompiled, "the content compiles")
		d.condition(s, policyv1alpha1.ConditionVerified, metav1.ConditionFalse, policyv1alpha1.ReasonVerifyFailed, t.Refused)
	default:
		d.condition(s, policyv1alpha1.ConditionCompiled, metav1.ConditionTrue, policyv1alpha1.ReasonCompiled, "the content compiles")
		d.condition(s, policyv1alpha1.ConditionVerified, metav1.ConditionTrue, policyv1alpha1.ReasonVerified,
			"the static checks and the bundle's own scenarios and tests pass")
	}
}

// active says whether newly adopting servers come under a revision, and why.
func (d *decision) active(s *subject) (status metav1.ConditionStatus, reason, message string) {
	const no = metav1.ConditionFalse
	held := s.Test != nil && s.Test.Refused != ""
	governs := s == d.inForce || s.st.Stage == policyv1alpha1.StageCanary || s.st.Stage == policyv1alpha1.StageShadow
	switch {
	case held && governs:
		status = no
		if s == d.inForce {
			status = metav1.ConditionTrue
		}
		return status, policyv1alpha1.ReasonRevisionHeld,
			"this version of the manager refuses it, so nothing moves under it and nothing is done: " + firstLine(s.Test.Refused)
	case s == d.inForce:
		return metav1.ConditionTrue, policyv1alpha1.ReasonInForce, s.inForce(d.Embedded) + d.labelledAlready(s)
	case s.awaits != "":
		return no, policyv1alpha1.ReasonAwaitingReplicas, "it waits until every running manager has compiled it: " + s.awaits
	case s.conflict && max(d.Last, d.highest()) >= policyv1alpha1.MaxPromotion:
		return no, policyv1alpha1.ReasonConflict, fmt.Sprintf("no number is left for a promotion: %s has %d, and no other "+
			"can come after that. The runbook of Conflict says how to give it a lower one", d.inForceName(), int64(policyv1alpha1.MaxPromotion))
	case s.conflict:
		return no, policyv1alpha1.ReasonConflict, "another revision was promoted at the same time and stays; " +
			"to promote this one, change its stage and set it to active again"
	case len(s.crowdedBy) > 0:
		return no, policyv1alpha1.ReasonNotPromoted, fmt.Sprintf("%d revisions are evaluated in shadow, and no more are at once: %s; "+
			"it takes the place of the first of them whose ConfigMap is labelled otherwise", len(s.crowdedBy), strings.Join(s.crowdedBy, ", "))
	case s.st.Stage == policyv1alpha1.StageSuperseded:
		message = "another revision was promoted later"
		if s.st.LabelledStage == policyv1alpha1.LabelledActive {
			message += "; to go back to this one, change its stage and set it to active again"
		}
		return no, policyv1alpha1.ReasonSuperseded, message
	}
	return no, policyv1alpha1.ReasonNotPromoted, s.notPromoted(d.Embedded)
}

// ungoverned is the reason and the message of a revision while nothing governs.
func (d *decision) ungoverned(s *subject, reason, message string) (newReason, words string) {
	switch {
	case s.awaits != "" || s.conflict:
		return reason, message
	case s.Name == d.Missing:
		return policyv1alpha1.ReasonPromotionMissing, Missing(s.Name)
	case reason == policyv1alpha1.ReasonSuperseded:
		return reason, Missing(d.Missing)
	}
	return reason, message
}

// highest is the highest number of a promotion that is stored.
func (d *decision) highest() (n int64) {
	for _, s := range d.all {
		n = max(n, s.st.Promotion)
	}
	return n
}

// inForceName names the revision in force.
func (d *decision) inForceName() string {
	if d.inForce == nil {
		return "the revision in force"
	}
	return d.inForce.Name
}

// dropped tells of servers in states that a revision has dropped; empty where there are none.
func dropped(states map[string]int32) string {
	if len(states) == 0 {
		return ""
	}
	var all []string
	for _, state := range slices.Sorted(maps.Keys(states)) {
		all = append(all, fmt.Sprintf("%s %d", state, states[state]))
	}
	return "; servers stay under their former revision in states that it neither defines nor migrates (" + strings.Join(all, ", ") +
		"): say migrate in a new version"
}

// inForce tells of the revision in force.
func (s *subject) inForce(embedded string) string {
	switch {
	case s.st.Stage == policyv1alpha1.StageEmbedded && s.Name != embedded:
		return "servers adopt this revision; it was built into the version of the manager that governed first, and no other was promoted. " +
			embedded + " is built into this version, and governs only when an operator promotes it"
	case s.st.Stage == policyv1alpha1.StageEmbedded:
		return "servers adopt this revision; it is built in, and no other was promoted"
	}
	message := fmt.Sprintf("servers adopt this revision since promotion %d", s.st.Promotion)
	if label := s.st.LabelledStage; s.head != nil && label != policyv1alpha1.LabelledActive {
		message += fmt.Sprintf("; ConfigMap %s asks for stage %s, and it stays in force until another is promoted", s.head.Name, label)
	}
	return message
}

// shownUnshown is how many of the servers that a canary waits for are named.
const shownUnshown = 5

// waitsFor names the servers that a canary waits for; empty where it waits for none.
func waitsFor(unshown []string) string {
	if len(unshown) == 0 {
		return ""
	}
	text := "; before more servers come under it, it waits for those to rest that came first: " +
		strings.Join(unshown[:min(len(unshown), shownUnshown)], ", ")
	if more := len(unshown) - shownUnshown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (s *subject) notPromoted(embedded string) string {
	switch c := s.st.Canary; {
	case c != nil && c.Paused:
		return "the canary is paused: " + c.Reason
	case c != nil:
		message := "it governs as a canary: " + canary.Scope{Selector: c.Selector, Percent: c.Percent}.String() + waitsFor(s.Unshown)
		if s.Test != nil && s.Test.NoError {
			message += "; it has no state Error, so that maxErrors bounds nothing and only halts pause it"
		}
		return message
	case s.st.Stage == policyv1alpha1.StageShadow:
		return "it is evaluated beside the revision in force, and does nothing"
	}
	if s.Name == embedded && s.st.Head == "" {
		return "it is built into this version of the manager, and governs only when an operator promotes it: metalaw policy init writes its files"
	}
	return "its stage puts it nowhere in force"
}

func (d *decision) condition(s *subject, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&s.st.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason,
		Message: diag.Shortened(message, 4096), ObservedGeneration: s.Generation, LastTransitionTime: metav1.Time{Time: d.Now}})
}

// reasonOf is the reason of Active.
func reasonOf(st *policyv1alpha1.PolicyRevisionStatus) string {
	if active := meta.FindStatusCondition(st.Conditions, policyv1alpha1.ConditionActive); active != nil {
		return active.Reason
	}
	return ""
}

// labelledAlready says of the one in force whose ConfigMap asks for less what somebody may have expected: that another one,
// which was labelled active before, takes its place.
func (d *decision) labelledAlready(s *subject) string {
	if s.head == nil || s.head.Stage == policyv1alpha1.LabelledActive || s.Promotion == 0 && !s.promoted {
		return ""
	}
	for _, other := range d.all {
		if h := other.head; other != s && h != nil && h.Stage == policyv1alpha1.LabelledActive {
			return fmt.Sprintf("; that ConfigMap %s is labelled active since earlier is no promotion: change its stage and set it to active again",
				h.Name)
		}
	}
	return ""
}
