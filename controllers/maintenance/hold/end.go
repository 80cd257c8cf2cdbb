// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/internal/orphaned"
)

// requestWait is how long a maintenance that ends waits for a power request to show: longer than a BMC is given before it is asked again.
const requestWait = 5 * time.Minute

// lightWait is how long a maintenance that ends waits for its light to go out.
const lightWait = time.Minute

// handBack takes the server from a maintenance that has ended, or is gone, once its machine is where it may be handed back. Where another
// one is granted, that one gets the server in the same write.
func (d *decision) handBack() Step {
	if !Granted(d.Server) {
		return Step{}
	}
	m := d.holder()
	switch {
	case m == nil && d.Gone:
		return Step{Kind: GiveBack}
	case m == nil || v1alpha1.Ignored(m):
		return Step{}
	case !Ends(m.ServerMaintenance) && m.Spec.ServerRef.Name == d.Server.Name:
		return Step{}
	}
	if why := d.waits(m); why != "" {
		status := d.status(m)
		d.set(&status, m, v1alpha1.ConditionGranted, metav1.ConditionTrue, v1alpha1.ReasonMaintenanceGranted, grantedUnder(m))
		d.set(&status, m, v1alpha1.ConditionServed, metav1.ConditionFalse, v1alpha1.ReasonEnding, why)
		return d.write(m, status)
	}
	return d.takeBack(m)
}

// takeBack takes the server from a maintenance that has ended, and whose machine may be handed back.
func (d *decision) takeBack(m *Maintenance) Step {
	if own(m) {
		return Step{Kind: DropBoot, Of: m.ServerMaintenance}
	}
	for i := range d.Maintenances {
		if next := &d.Maintenances[i]; next != m && d.live(next) && next.Answer != nil && next.Answer.Granted {
			return d.begin(next, Step{Kind: Grant, Of: next.ServerMaintenance})
		}
	}
	if step := d.labels(); step.Kind == Label {
		return step // so that the approval that it had goes as well, whatever happens between the writes
	}
	return Step{Kind: GiveBack, Of: m.ServerMaintenance}
}

// waits says what a maintenance that ends waits for before its server is handed back; empty for nothing.
func (d *decision) waits(m *Maintenance) string {
	s := d.Server
	if s.Status.State != v1alpha1.StateMaintenance {
		return "" // what is done to the machine there is not done for the maintenance
	}
	cause, boots := "it was deleted", s.Spec.MaintenanceBootConfigurationRef != nil && !foreign(m)
	if Aborted(m.ServerMaintenance) {
		cause = "it was aborted"
	}
	if r := d.request(); r != nil && (boots || Aborted(m.ServerMaintenance)) {
		return fmt.Sprintf("%s, and waits for its safe point: the power request %s of %s has to show first",
			cause, r.Action, r.AskedAt.UTC().Format(time.RFC3339))
	}
	if boots && s.Status.PowerState != v1alpha1.PowerStateOff {
		return fmt.Sprintf("%s, and waits until its machine is off; to have its power cut, write the reason into annotation %s; "+
			"if its BMC is dead, clear spec.serverMaintenanceRef", cause, v1alpha1.ForceOffReasonAnnotation)
	}
	lit := []v1alpha1.IndicatorLED{v1alpha1.IndicatorLEDLit, v1alpha1.IndicatorLEDBlinking}
	if slices.Contains(lit, m.Spec.LocatorLED) && slices.Contains(lit, s.Status.IndicatorLED) {
		until := d.Now.Add(lightWait)
		if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionServed); c != nil && c.Reason == v1alpha1.ReasonEnding {
			until = c.LastTransitionTime.Add(lightWait)
		}
		d.at(until)
		if until.After(d.Now) {
			return cause + ", and waits at most a minute for its light to go out"
		}
	}
	return ""
}

// Settled says that no power request of a server is on its way: none was made, what became of it is known, or it is a power-on that came
// to nothing and is not wanted any more, which the server's controller tells by its number of attempts.
func Settled(l *v1alpha1.LifecycleStatus) bool {
	return l == nil || l.Request == nil || l.Request.ShownAt != nil || l.Request.RefusedAt != nil ||
		l.Request.Action == v1alpha1.PowerActionOn && l.Request.Attempts == 0
}

// request is a power request of the server that is on its way; nil where there is none. One that never shows is over after a while.
func (d *decision) request() *v1alpha1.PowerRequest {
	l := d.Server.Status.Lifecycle
	if Settled(l) {
		return nil
	}
	lapses := d.Counted.Moment(d.Now, counted.From(l.Request.AskedCounted), l.Request.AskedAt.Time).Add(requestWait)
	d.at(lapses)
	if !lapses.After(d.Now) {
		return nil
	}
	return l.Request
}

// own says that the boot configuration of its name is there and is its own, also where that lost its owner.
func own(m *Maintenance) bool {
	return m.Boot != nil && m.Boot.DeletionTimestamp.IsZero() && bootIsOwn(m)
}

func bootIsOwn(m *Maintenance) bool {
	return metav1.IsControlledBy(m.Boot, m.ServerMaintenance) || orphaned.Boot(m.Boot, v1alpha1.BootPurposeMaintenance)
}

// foreign says that it boots something, and that the boot configuration of its name is another's.
func foreign(m *Maintenance) bool {
	return m.Spec.ServerBootConfigurationTemplate != nil && m.Boot != nil && !bootIsOwn(m)
}

// release lets go of the maintenances that are deleted and have nothing left to take back.
func (d *decision) release() Step {
	for i := range d.Maintenances {
		m := &d.Maintenances[i]
		if m.DeletionTimestamp.IsZero() || v1alpha1.Ignored(m) || Holds(d.Server, m.ServerMaintenance) ||
			!slices.Contains(m.Finalizers, v1alpha1.FinalizerServerMaintenance) {
			continue
		}
		if d.unproven(m) {
			continue
		}
		return Step{Kind: Release, Of: m.ServerMaintenance}
	}
	return Step{}
}

// leave lets go of the maintenances that are left from when servers were granted.
func (d *decision) leave() Step {
	for i := range d.Maintenances {
		if m := &d.Maintenances[i]; Left(m.ServerMaintenance, d.Server) {
			return Step{Kind: Release, Of: m.ServerMaintenance}
		}
	}
	return Step{}
}

// Kept is the status of a maintenance that ends and keeps its server, because the manager that runs takes none back.
func Kept(m *v1alpha1.ServerMaintenance, server string, now time.Time) v1alpha1.ServerMaintenanceStatus {
	d, status := &decision{Look: &Look{Now: now}}, *m.Status.DeepCopy()
	d.set(&status, &Maintenance{ServerMaintenance: m}, v1alpha1.ConditionServed, metav1.ConditionFalse, v1alpha1.ReasonEnding, fmt.Sprintf(
		"it is to end, and this manager takes no server back; run it with --maintenance=on, or clear spec.serverMaintenanceRef of Server %s", server))
	return status
}

// unproven says that a check of the policy has to hold before the maintenance counts as over. Its status says so and how long that lasts.
func (d *decision) unproven(m *Maintenance) bool {
	return m.After != nil && m.Status.GrantedAt != nil && !Aborted(m.ServerMaintenance)
}

// Cleared changes a server in memory so that no maintenance has it.
func Cleared(s *v1alpha1.Server) {
	s.Spec.ServerMaintenanceRef, s.Spec.MaintenanceBootConfigurationRef = nil, nil
	delete(s.Annotations, v1alpha1.MaintenanceUIDAnnotation)
	delete(s.Annotations, v1alpha1.MaintenanceClaimAnnotation)
}

// Handed changes a server in memory so that a maintenance has it. claim is the one that holds the server; nil where none does.
func Handed(s *v1alpha1.Server, m *v1alpha1.ServerMaintenance, claim *v1alpha1.ServerClaim) {
	Cleared(s)
	s.Spec.ServerMaintenanceRef = &v1alpha1.ObjectReference{Namespace: m.Namespace, Name: m.Name}
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.MaintenanceUIDAnnotation, string(m.UID))
	if claim != nil {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.MaintenanceClaimAnnotation, string(claim.UID))
	}
}
