// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// Waits is which maintenances and decommissions wait, and for whom.
type Waits struct {
	// Holding are the servers that maintenances have now: they fill the limits.
	Holding []string `json:"holding,omitempty"`
	Waiting []Wait   `json:"waiting,omitempty"`
	// Decommissions are the servers that are to go out of service and have not.
	Decommissions []Wait `json:"decommissions,omitempty"`
}

// Wait is one maintenance or decommission that waits.
type Wait struct {
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	Server    string    `json:"server"`
	State     string    `json:"state,omitempty"`
	Reason    string    `json:"reason"`
	Message   string    `json:"message,omitempty"`
	Since     time.Time `json:"since"`
	// For is the claim whose holder it concerns.
	For         string `json:"for,omitempty"`
	NeedsPerson bool   `json:"needsPerson"`
}

// Title names the maintenance or the server.
func (w *Wait) Title() string {
	if w.Namespace != "" {
		return w.Namespace + "/" + w.Name
	}
	return w.Name
}

// persons are the reasons for which a maintenance or a decommission waits for a person.
var persons = map[string]bool{
	v1alpha1.ReasonNotAdopted: true, v1alpha1.ReasonNotPermitted: true, v1alpha1.ReasonWaitsForApproval: true,
	v1alpha1.ReasonApprovalOlder: true, v1alpha1.ReasonStopped: true, v1alpha1.ReasonBootFailed: true,
	v1alpha1.ReasonWaitsForDisks: true, v1alpha1.ReasonNoRule: true,
}

// waitsOf says what waits.
func waitsOf(maintenances []v1alpha1.ServerMaintenance, all []v1alpha1.Server,
	servers map[string]*v1alpha1.Server) Waits {
	var w Waits
	for i := range all {
		s := &all[i]
		if s.Spec.ServerMaintenanceRef != nil {
			w.Holding = append(w.Holding, s.Name)
		}
		c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionDecommission)
		if c == nil || c.Status == metav1.ConditionTrue {
			continue
		}
		w.Decommissions = append(w.Decommissions, Wait{Name: s.Name, Server: s.Name, State: string(s.Status.State),
			Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.UTC(), For: claimOf(s),
			NeedsPerson: persons[c.Reason]})
	}
	for i := range maintenances {
		if one, waits := waitOf(&maintenances[i], servers); waits {
			w.Waiting = append(w.Waiting, one)
		}
	}
	slices.Sort(w.Holding)
	for _, list := range [][]Wait{w.Waiting, w.Decommissions} {
		slices.SortFunc(list, func(a, b Wait) int {
			if a.NeedsPerson != b.NeedsPerson {
				if a.NeedsPerson {
					return -1
				}
				return 1
			}
			return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Title(), b.Title()))
		})
	}
	return w
}

// waitOf says what a maintenance waits for; one that has its server as it asks, and in time, waits for nothing.
func waitOf(m *v1alpha1.ServerMaintenance, servers map[string]*v1alpha1.Server) (Wait, bool) {
	w := Wait{Namespace: m.Namespace, Name: m.Name, Server: m.Spec.ServerRef.Name, State: string(m.Status.State),
		Since: m.CreationTimestamp.UTC(), Reason: reasonNoStatus, Message: "the manager has not written its status yet"}
	overdue := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionOverdue)
	served := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionServed)
	granted := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionGranted)
	var tells *metav1.Condition
	switch {
	case overdue != nil && overdue.Status == metav1.ConditionTrue:
		tells, w.NeedsPerson = overdue, true
	case served != nil && served.Status == metav1.ConditionFalse:
		tells = served
	case m.Status.State == v1alpha1.ServerMaintenanceStateInMaintenance:
		return w, false
	case granted != nil && granted.Status == metav1.ConditionFalse:
		tells = granted
	}
	if tells != nil {
		w.Reason, w.Message, w.Since = tells.Reason, tells.Message, tells.LastTransitionTime.UTC()
	}
	w.NeedsPerson = w.NeedsPerson || persons[w.Reason] || m.Status.State == v1alpha1.ServerMaintenanceStateFailed
	if s := servers[w.Server]; s != nil {
		w.For = claimOf(s)
	}
	return w, true
}

// claimOf names the claim that holds a server; empty if none does.
func claimOf(s *v1alpha1.Server) string {
	if ref := s.Spec.ServerClaimRef; ref != nil {
		return ref.Namespace + "/" + ref.Name
	}
	return ""
}
