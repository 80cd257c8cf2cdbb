// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/internal/canary"
)

// isCanary says that a revision governs, or governed until it paused itself, the servers in its scope.
func isCanary(r *policyv1alpha1.PolicyRevision) bool {
	return r.Status.Stage == policyv1alpha1.StageCanary
}

// isPaused says that a revision is a canary that has cost more than its budget.
func isPaused(r *policyv1alpha1.PolicyRevision) bool {
	return isCanary(r) && r.Status.Canary != nil && r.Status.Canary.Paused
}

// scopeOf is whom a canary governs.
func scopeOf(r *policyv1alpha1.PolicyRevision) canary.Scope {
	if r.Status.Canary == nil {
		return canary.Scope{}
	}
	return canary.Scope{Selector: r.Status.Canary.Selector, Percent: r.Status.Canary.Percent}
}

// underWay says what is on its way into force, or governs a part of the fleet, and how that is ended: a rollback of what is in force
// ends no canary. The promotion of the target waits because it is what is asked for, and is left out; nil for no target.
func (r *rollout) underWay(all []policyv1alpha1.PolicyRevision, target *policyv1alpha1.PolicyRevision) []string {
	var words []string
	for i := range all {
		one := &all[i]
		switch {
		case one.AwaitsReplicas() && one == target:
		case one.AwaitsReplicas():
			active := meta.FindStatusCondition(one.Status.Conditions, policyv1alpha1.ConditionActive)
			words = append(words, fmt.Sprintf("the promotion of revision %s has not come into force yet (%s); to withdraw it: %s",
				one.Name, active.Message, r.ending(one)))
		case isCanary(one):
			is := "governs as a canary: " + scopeOf(one).String()
			if isPaused(one) {
				is = "is a canary that has paused itself: " + one.Status.Canary.Cost()
			}
			words = append(words, fmt.Sprintf("revision %s %s; to end it: %s", one.Name, is, r.ending(one)))
		}
	}
	return words
}

// ending is the command that takes a revision back into the shadow.
func (r *rollout) ending(one *policyv1alpha1.PolicyRevision) string {
	return r.command("promote " + one.Status.Head + " --stage " + policyv1alpha1.LabelShadow)
}

// command is a command line of this group of commands, for bundles in the same namespace.
func (r *rollout) command(words string) string {
	if r.namespace != "" && r.namespace != defaultNamespace {
		words += " -n " + r.namespace
	}
	return "`metalaw policy " + words + "`"
}

// unfit says why a revision ought not to come into force for every server; empty where nothing speaks against it.
func (r *rollout) unfit(one *policyv1alpha1.PolicyRevision) string {
	if !isPaused(one) {
		return ""
	}
	return fmt.Sprintf("revision %s is a canary that has paused itself: %s. Promoted as it is, it governs the whole fleet. To end the canary: %s; "+
		"then mend the bundle, and try the new version", one.Name, one.Status.Canary.Cost(), r.ending(one))
}

// standsStill says of a canary that has paused itself that to ask for the same scope again changes nothing; empty where it does.
func (q *request) standsStill(head client.Object) string {
	if q.stage != policyv1alpha1.LabelCanary || head.GetLabels()[policyv1alpha1.StageLabel] != q.stage {
		return ""
	}
	for i := range q.before {
		if one := &q.before[i]; q.concerns(one) && isPaused(one) && scopeOf(one) == (canary.Scope{Selector: q.servers, Percent: int32(q.percent)}) {
			return fmt.Sprintf("nothing was changed: revision %s is a canary with this scope already, and has paused itself: %s. "+
				"It takes no further server: give it another scope, or end it with --stage shadow and mend the bundle; where it was "+
				"not to blame, --stage canary after that begins it anew", one.Name, one.Status.Canary.Cost())
		}
	}
	return ""
}

// inForceAlready is the revision that is asked for, where it is in force by the label of this head and nothing was asked for since;
// nil else.
func (q *request) inForceAlready(head client.Object, others []metav1.PartialObjectMetadata) *policyv1alpha1.PolicyRevision {
	in := policyv1alpha1.InForce(q.before)
	if in == nil || q.stage != policyv1alpha1.LabelActive || !q.concerns(in) || head.GetLabels()[policyv1alpha1.StageLabel] != q.stage ||
		labelOf(in, head.GetName()) != policyv1alpha1.LabelledActive {
		return nil
	}
	for i := range q.before {
		if q.before[i].AwaitsReplicas() {
			return nil
		}
	}
	at := activatedAt(head)
	for i := range others {
		o := &others[i]
		if o.Name != head.GetName() && o.Labels[policyv1alpha1.StageLabel] == q.stage && !at.After(activatedAt(o)) {
			return nil // it was asked for later, and the manager may not have seen it yet
		}
	}
	return in
}

// askedAlready is the revision that is asked for, where its promotion by the label of this head waits and nothing was asked for since;
// nil else. To label the head anew would be another promotion, where the first one comes into force in between.
func (q *request) askedAlready(head client.Object, others []metav1.PartialObjectMetadata) *policyv1alpha1.PolicyRevision {
	var waits *policyv1alpha1.PolicyRevision
	for i := range q.before {
		one := &q.before[i]
		if !one.AwaitsReplicas() {
			continue
		}
		if waits != nil || !q.concerns(one) {
			return nil
		}
		waits = one
	}
	if waits == nil || head.GetLabels()[policyv1alpha1.StageLabel] != policyv1alpha1.LabelActive ||
		labelOf(waits, head.GetName()) != policyv1alpha1.LabelledActive {
		return nil
	}
	at := activatedAt(head)
	for i := range others {
		o := &others[i]
		if o.Name != head.GetName() && o.Labels[policyv1alpha1.StageLabel] == policyv1alpha1.LabelActive && at.Before(activatedAt(o)) {
			return nil // the manager may not have seen it yet
		}
	}
	return waits
}

// activatedAt is when a head was activated last, as admission recorded it; the beginning of time where it recorded nothing.
func activatedAt(o client.Object) time.Time {
	record := strings.TrimSuffix(o.GetAnnotations()[policyv1alpha1.ActivatedByAnnotation], policyv1alpha1.ActivationRestored)
	at, err := time.Parse(time.RFC3339Nano, record[strings.LastIndex(record, " ")+1:])
	if err != nil {
		return time.Time{}
	}
	return at
}
