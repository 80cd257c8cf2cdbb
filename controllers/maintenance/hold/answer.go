// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// answers is the first maintenance whose status has to say something else, or that gets the server.
func (d *decision) answers() Step {
	for i := range d.Maintenances {
		m := &d.Maintenances[i]
		if v1alpha1.Ignored(m) {
			continue
		}
		if step := d.answer(m); step.Kind != None {
			return step
		}
	}
	return Step{}
}

// answer is what is due for one maintenance, apart from its end.
func (d *decision) answer(m *Maintenance) Step {
	switch {
	case Holds(d.Server, m.ServerMaintenance):
		if d.PlanOnly && Ends(m.ServerMaintenance) {
			return d.write(m, Kept(m.ServerMaintenance, d.Server.Name, d.Now))
		}
		if d.PlanOnly || Ends(m.ServerMaintenance) || m.Spec.ServerRef.Name != d.Server.Name {
			return Step{}
		}
		return d.held(m)
	case !m.DeletionTimestamp.IsZero():
		return d.deleted(m)
	case Aborted(m.ServerMaintenance):
		return d.aborted(m)
	case Failed(m.ServerMaintenance):
		return Step{}
	case d.late(m):
		status := d.status(m)
		status.State = v1alpha1.ServerMaintenanceStateFailed
		d.set(&status, m, v1alpha1.ConditionGranted, metav1.ConditionFalse, v1alpha1.ReasonCheckFails, fmt.Sprintf(
			"%s It did not within %s; delete this maintenance.", m.Answer.Message, m.Answer.FailsAfter))
		return d.write(m, status)
	case m.Answer == nil:
		return d.pending(m, v1alpha1.ReasonServerNotReady, "there is no server "+m.Spec.ServerRef.Name)
	case m.Answer.Granted && !d.PlanOnly:
		if d.Server.Spec.ServerMaintenanceRef != nil {
			return d.pending(m, v1alpha1.ReasonServerHeld, "The maintenance that has the server is ending. This one follows it.")
		}
		return d.begin(m, Step{Kind: Grant, Of: m.ServerMaintenance})
	}
	d.at(m.Answer.After)
	return d.pending(m, m.Answer.Reason, m.Answer.Whole())
}

// begin puts the finalizer before a step after which there is something to take back.
func (d *decision) begin(m *Maintenance, step Step) Step {
	if !slices.Contains(m.Finalizers, v1alpha1.FinalizerServerMaintenance) {
		return Step{Kind: Finalizer, Of: m.ServerMaintenance}
	}
	return step
}

// pending is what a maintenance says that waits.
func (d *decision) pending(m *Maintenance, reason, message string) Step {
	if m.Quiet && !d.asks(m) && m.Status.GrantedAt == nil && (crowded(m, reason) || sameBut(m, reason)) {
		return Step{}
	}
	status := d.status(m)
	if m.Status.GrantedAt != nil || !Named(d.Server, m.ServerMaintenance) { // else another manager carries it out
		status.State = v1alpha1.ServerMaintenanceStatePending
	}
	if status.State == "" {
		status.State = v1alpha1.ServerMaintenanceStatePending
	}
	status.GrantedAt = nil
	meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionServed)
	meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionOverdue)
	d.set(&status, m, v1alpha1.ConditionGranted, metav1.ConditionFalse, reason, message)
	if d.asks(m) {
		status.Asked = &v1alpha1.MaintenanceAsked{ClaimUID: d.Claim.UID, Counted: d.Counted.Stored(),
			At: metav1.NewTime(d.Now.Truncate(time.Second))}
		return d.begin(m, d.write(m, status))
	}
	return d.write(m, status)
}

// crowd are the reasons that change with what other maintenances do. With many that wait, each end of one may change those of all others.
var crowd = []string{v1alpha1.ReasonServerHeld, v1alpha1.ReasonMaintenanceAhead, v1alpha1.ReasonLimitReached, v1alpha1.ReasonWaveWaits,
	v1alpha1.ReasonGroupWaits}

// crowded says that a maintenance waits for others, and is to say so of others again.
func crowded(m *Maintenance, reason string) bool {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionGranted)
	return c != nil && c.Status == metav1.ConditionFalse && slices.Contains(crowd, c.Reason) && slices.Contains(crowd, reason)
}

// sameBut says that a maintenance waits for the same as before, but for what it waits for besides.
func sameBut(m *Maintenance, reason string) bool {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionGranted)
	return c != nil && m.Answer != nil && c.Status == metav1.ConditionFalse && c.Reason == reason &&
		c.ObservedGeneration == m.Generation && strings.HasPrefix(c.Message, m.Answer.Message)
}

// asks says that the holder of the claim is to be asked now, or told.
func (d *decision) asks(m *Maintenance) bool {
	if d.PlanOnly || d.Claim == nil || m.Answer == nil || !m.Answer.Asks {
		return false
	}
	return m.Status.Asked == nil || m.Status.Asked.ClaimUID != d.Claim.UID
}

// late says that a check of the policy has held the maintenance back for longer than it may.
func (d *decision) late(m *Maintenance) bool {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionGranted)
	if d.PlanOnly || c == nil || c.Reason != v1alpha1.ReasonCheckFails ||
		m.Answer == nil || m.Answer.Reason != v1alpha1.ReasonCheckFails || m.Answer.FailsAfter <= 0 {
		return false
	}
	until := c.LastTransitionTime.Add(m.Answer.FailsAfter)
	d.at(until)
	return !until.After(d.Now)
}

// deleted is what a maintenance does that goes and does not have the server: its boot configuration goes, and it waits for what the policy
// has to be so afterwards.
func (d *decision) deleted(m *Maintenance) Step {
	switch {
	case d.PlanOnly || !slices.Contains(m.Finalizers, v1alpha1.FinalizerServerMaintenance):
		return Step{}
	case own(m):
		return Step{Kind: DropBoot, Of: m.ServerMaintenance}
	case !d.unproven(m) || Failed(m.ServerMaintenance):
		return Step{}
	}
	status := d.status(m)
	d.set(&status, m, v1alpha1.ConditionServed, metav1.ConditionFalse, v1alpha1.ReasonCheckFails, m.After.Message)
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionServed); c != nil && c.Reason == v1alpha1.ReasonCheckFails {
		until := c.LastTransitionTime.Add(m.After.Within)
		d.at(until)
		if m.After.Within > 0 && !until.After(d.Now) {
			status.State = v1alpha1.ServerMaintenanceStateFailed
		}
	}
	return d.write(m, status)
}

// aborted is what a maintenance says that was stopped and does not have the server.
func (d *decision) aborted(m *Maintenance) Step {
	if own(m) && !d.PlanOnly {
		return Step{Kind: DropBoot, Of: m.ServerMaintenance}
	}
	status := d.status(m)
	status.State = v1alpha1.ServerMaintenanceStateFailed
	meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionServed)
	meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionOverdue)
	d.set(&status, m, v1alpha1.ConditionGranted, metav1.ConditionFalse, v1alpha1.ReasonAborted,
		"a user stopped it: "+m.Annotations[v1alpha1.AbortAnnotation])
	return d.write(m, status)
}

// status is the status of a maintenance, to be changed.
func (d *decision) status(m *Maintenance) v1alpha1.ServerMaintenanceStatus {
	return *m.Status.DeepCopy()
}

// set sets a condition. Its transition is when its status or its reason changed, so that it tells how long the reason has lasted.
func (d *decision) set(status *v1alpha1.ServerMaintenanceStatus, m *Maintenance, kind string, is metav1.ConditionStatus, reason, message string) {
	status.ObservedGeneration = m.Generation
	was := meta.FindStatusCondition(status.Conditions, kind)
	if was != nil && was.Status == is && was.Reason != reason {
		meta.RemoveStatusCondition(&status.Conditions, kind)
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: kind, Status: is, Reason: reason, Message: shortened(message),
		ObservedGeneration: m.Generation, LastTransitionTime: metav1.NewTime(d.Now)})
}

// write is a step where the status differs from what is stored.
func (d *decision) write(m *Maintenance, status v1alpha1.ServerMaintenanceStatus) Step {
	if equality.Semantic.DeepEqual(status, m.Status) {
		return Step{}
	}
	return Step{Kind: Status, Of: m.ServerMaintenance, Status: status}
}

// maxMessage bounds the message of a condition; quoted words of a user may be long.
const maxMessage = 1024

func shortened(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage-3], "") + "..."
}
