// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// SettleTime is how long a server that was just handed over is given to move before its maintenance says so.
const SettleTime = 2 * time.Second

// held is what a maintenance says that has its server.
func (d *decision) held(m *Maintenance) Step {
	moved := d.Server.Status.State == v1alpha1.StateMaintenance
	if d.Settling && !moved && m.Status.State != v1alpha1.ServerMaintenanceStateInMaintenance && !foreign(m) {
		d.at(d.Now.Add(SettleTime))
		return Step{}
	}
	status := d.status(m)
	if status.GrantedAt == nil {
		status.GrantedAt = &metav1.Time{Time: d.Now.Truncate(time.Second)}
	}
	d.set(&status, m, v1alpha1.ConditionGranted, metav1.ConditionTrue, v1alpha1.ReasonMaintenanceGranted, grantedUnder(m))
	if d.Claim != nil && d.Server.Annotations[v1alpha1.MaintenanceClaimAnnotation] == string(d.Claim.UID) &&
		(status.Asked == nil || status.Asked.ClaimUID != d.Claim.UID) {
		status.Asked = &v1alpha1.MaintenanceAsked{ClaimUID: d.Claim.UID, Counted: d.Counted.Stored(),
			At: metav1.NewTime(d.Now.Truncate(time.Second))}
	}
	switch {
	case Failed(m.ServerMaintenance):
		return d.write(m, status) // only its deletion ends it
	case foreign(m):
		status.State = v1alpha1.ServerMaintenanceStateFailed
		d.set(&status, m, v1alpha1.ConditionServed, metav1.ConditionFalse, v1alpha1.ReasonBootFailed, fmt.Sprintf(
			"the boot configuration %s/%s is not this maintenance's, and is left alone; delete one of the two", m.Namespace, m.Name))
	case m.Boot != nil && m.Boot.Status.State == v1alpha1.ServerBootConfigurationStateError:
		status.State = v1alpha1.ServerMaintenanceStateFailed
		d.set(&status, m, v1alpha1.ConditionServed, metav1.ConditionFalse, v1alpha1.ReasonBootFailed,
			"the boot operator cannot prepare the boot; its boot configuration says why; delete this maintenance"+bootError(m.Boot))
	default:
		status.State = v1alpha1.ServerMaintenanceStateInMaintenance
		d.serve(&status, m)
	}
	d.overdue(&status, m)
	return d.write(m, status)
}

// grantedUnder is what the grant said when it was made.
func grantedUnder(m *Maintenance) string {
	if m.Answer != nil && m.Answer.Granted && m.Answer.Message != "" {
		return m.Answer.Message
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionGranted); c != nil && c.Status == metav1.ConditionTrue {
		return c.Message
	}
	return "the server was handed over"
}

// bootError is what the boot operator says of a boot configuration that it cannot prepare.
func bootError(boot *v1alpha1.ServerBootConfiguration) string {
	for _, c := range boot.Status.Conditions {
		if c.Status == metav1.ConditionFalse && c.Message != "" {
			return ": " + c.Type + ": " + c.Message
		}
	}
	return ""
}

// serve says whether the machine is as the maintenance asks.
func (d *decision) serve(status *v1alpha1.ServerMaintenanceStatus, m *Maintenance) {
	why := d.unserved(m)
	if why == "" {
		d.set(status, m, v1alpha1.ConditionServed, metav1.ConditionTrue, v1alpha1.ReasonServed, "the machine is as this maintenance asks")
		return
	}
	d.set(status, m, v1alpha1.ConditionServed, metav1.ConditionFalse, v1alpha1.ReasonServerNotReady, why)
}

// unserved is what the machine still lacks; empty for nothing.
func (d *decision) unserved(m *Maintenance) string {
	s := d.Server
	if s.Status.State != v1alpha1.StateMaintenance {
		return fmt.Sprintf("the server is still in state %s; its condition %s says what it waits for",
			stateOf(s), v1alpha1.ConditionMaintenanceWaits)
	}
	held := ""
	if c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionWithheld); c != nil && c.Status == metav1.ConditionTrue {
		held = "; what it asks for is held back (" + c.Reason + "), as condition " + c.Type + " of the server says"
	}
	if m.Spec.ServerBootConfigurationTemplate != nil {
		if m.Boot == nil || m.Boot.Status.State != v1alpha1.ServerBootConfigurationStateReady {
			return fmt.Sprintf("the boot configuration %s/%s is not Ready%s", m.Namespace, m.Name, held)
		}
	}
	if asked := m.Spec.ServerPower; asked != "" && string(asked) != string(s.Status.PowerState) {
		return fmt.Sprintf("the machine is to be %s%s", asked, held)
	}
	return ""
}

func stateOf(s *v1alpha1.Server) string {
	if s.Status.State == "" {
		return "unknown"
	}
	return string(s.Status.State)
}

// overdue says that the maintenance holds its server longer than was expected.
func (d *decision) overdue(status *v1alpha1.ServerMaintenanceStatus, m *Maintenance) {
	if m.Expected <= 0 {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionOverdue)
		return
	}
	until := status.GrantedAt.Add(m.Expected)
	if until.After(d.Now) {
		d.at(until)
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionOverdue)
		return
	}
	d.set(status, m, v1alpha1.ConditionOverdue, metav1.ConditionTrue, v1alpha1.ConditionOverdue, fmt.Sprintf(
		"it was expected to end by %s; delete it when the work is done", until.UTC().Format(time.RFC3339)))
}
