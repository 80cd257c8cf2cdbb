// SPDX-License-Identifier: Apache-2.0

// Package hold says which write is due next for one server and its maintenances, from the first that asks for it until the last is gone.
// It is pure. Whoever carries one step out shows the result and asks again, so that a manager which comes after goes on from any step.
package hold

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/maintenance/grant"
	"github.com/metalaw/metalaw/internal/counted"
)

// Look is what there is to see of one server and its maintenances. Decide changes none of it.
type Look struct {
	Now time.Time
	// Counted is Now in counted time; zero where that is not known.
	Counted counted.Time
	// PlanOnly has nothing written but the status of maintenances, and their finalizers where nothing is left to take back.
	PlanOnly bool
	// Server is nil where the maintenances name one that does not exist.
	Server *v1alpha1.Server
	// Claim is the claim that the server is bound to; nil where none is.
	Claim *v1alpha1.ServerClaim
	// Maintenances are those that name the server, and the one that holds it.
	Maintenances []Maintenance
	// Gone says that an uncached look found no maintenance of the UID that the server was handed to.
	Gone bool
	// Settling says that the server was handed over a moment ago and is about to move, so that one write of status may tell both.
	Settling bool
}

// Maintenance is one ServerMaintenance with what belongs to it.
type Maintenance struct {
	*v1alpha1.ServerMaintenance
	// Boot is the boot configuration of its name, whoever owns it.
	Boot *v1alpha1.ServerBootConfiguration
	// Answer is what the grants say of it; nil where they say nothing, because it has its server or has ended.
	Answer *grant.Grant
	// Expected is how long it is expected to hold its server; 0 is for ever.
	Expected time.Duration
	// Quiet says that it was answered a moment ago, so that another word for the same crowd is not worth a write yet.
	Quiet bool
	// After is a check of the policy that has to hold once it is over, and does not; nil where there is none.
	After *Check
}

// Check is a check of the policy that does not hold.
type Check struct {
	Message string
	// Within is how long it may take until it holds; 0 is for ever.
	Within time.Duration
}

// Kind is what a step writes.
type Kind string

// The kinds of steps.
const (
	// None: nothing is due.
	None Kind = ""
	// Finalizer puts the finalizer on the maintenance, before anything else is written for it.
	Finalizer Kind = "Finalizer"
	// Status writes Step.Status.
	Status Kind = "Status"
	// Grant hands the server to the maintenance, also from another one that has ended.
	Grant Kind = "Grant"
	// DropBoot deletes the boot configuration of the maintenance.
	DropBoot Kind = "DropBoot"
	// GiveBack takes the server from the maintenance that has ended, or is gone.
	GiveBack Kind = "GiveBack"
	// Label labels the claim: its server is wanted.
	Label Kind = "Label"
	// Unlabel takes the label and every approval off the claim.
	Unlabel Kind = "Unlabel"
	// Release takes the finalizer off the maintenance.
	Release Kind = "Release"
)

// Step is one write.
type Step struct {
	Kind Kind
	// Of is the maintenance that it is about; nil for the claim, and for a maintenance that is gone.
	Of *v1alpha1.ServerMaintenance
	// Status is what a step of kind Status writes.
	Status v1alpha1.ServerMaintenanceStatus
	// Again is when the clock alone may make another step due; zero where it cannot.
	Again time.Time
}

// Decide returns the step that is due first. A step of kind None says when to look again.
func Decide(l *Look) Step {
	d := &decision{Look: l}
	phases := []func() Step{d.handBack, d.answers, d.labels, d.release}
	if l.PlanOnly {
		phases = []func() Step{d.answers, d.leave}
	}
	for _, due := range phases {
		if step := due(); step.Kind != None {
			return step
		}
	}
	return Step{Again: d.again}
}

// decision is one call of Decide.
type decision struct {
	*Look
	again time.Time
}

// at remembers that the clock may make a step due.
func (d *decision) at(t time.Time) {
	if t.After(d.Now) && (d.again.IsZero() || t.Before(d.again)) {
		d.again = t
	}
}

// Holds says that a server was handed to a maintenance by this manager.
func Holds(s *v1alpha1.Server, m *v1alpha1.ServerMaintenance) bool {
	return Named(s, m) && s.Annotations[v1alpha1.MaintenanceUIDAnnotation] == string(m.UID)
}

// Named says that a server names a maintenance, whoever wrote that.
func Named(s *v1alpha1.Server, m *v1alpha1.ServerMaintenance) bool {
	return s != nil && s.Spec.ServerMaintenanceRef != nil &&
		*s.Spec.ServerMaintenanceRef == v1alpha1.ObjectReference{Namespace: m.Namespace, Name: m.Name}
}

// Granted says that this manager handed a server to a maintenance, be it there or gone.
func Granted(s *v1alpha1.Server) bool {
	return s != nil && s.Spec.ServerMaintenanceRef != nil && s.Annotations[v1alpha1.MaintenanceUIDAnnotation] != ""
}

// Ends says that a maintenance is to give its server back, or to be answered no more: it is deleted or aborted.
func Ends(m *v1alpha1.ServerMaintenance) bool { return !m.DeletionTimestamp.IsZero() || Aborted(m) }

// Aborted says that a user stopped a maintenance.
func Aborted(m *v1alpha1.ServerMaintenance) bool {
	return m.Annotations[v1alpha1.AbortAnnotation] != ""
}

// Failed says that a maintenance failed.
func Failed(m *v1alpha1.ServerMaintenance) bool {
	return m.Status.State == v1alpha1.ServerMaintenanceStateFailed
}

// Left says that a maintenance is deleted, was answered by a manager that granted maintenances, and has no server, so that it may go. One
// that has no answer of such a manager may be another program's, whose finalizer has the same name.
func Left(m *v1alpha1.ServerMaintenance, s *v1alpha1.Server) bool {
	if m.DeletionTimestamp.IsZero() || v1alpha1.Ignored(m) || Named(s, m) || !slices.Contains(m.Finalizers, v1alpha1.FinalizerServerMaintenance) {
		return false
	}
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionGranted)
	return m.Status.Asked != nil || m.Status.GrantedAt != nil || c != nil && c.Reason != v1alpha1.ReasonNothingGrants
}

// live says that a maintenance may still get the server.
func (d *decision) live(m *Maintenance) bool {
	return !Ends(m.ServerMaintenance) && !Failed(m.ServerMaintenance) && !v1alpha1.Ignored(m) && !refused(m.Answer)
}

// refused says that a maintenance is not granted, whatever its server does.
func refused(a *grant.Grant) bool {
	if a == nil || a.Granted {
		return false
	}
	switch a.Reason {
	case v1alpha1.ReasonPlanOnly, v1alpha1.ReasonNotAdopted, v1alpha1.ReasonNotPermitted:
		return true
	}
	return false
}

// holder is the maintenance that has the server; nil where it is none of these.
func (d *decision) holder() *Maintenance {
	for i := range d.Maintenances {
		if m := &d.Maintenances[i]; Holds(d.Server, m.ServerMaintenance) {
			return m
		}
	}
	return nil
}
