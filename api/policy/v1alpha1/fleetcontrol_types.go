// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FleetControlName is the name of the one FleetControl that counts.
const FleetControlName = "fleet"

// FreezeLevel says what is held back.
// +kubebuilder:validation:Enum=None;Maintenance;Destructive;All
type FreezeLevel string

const (
	// FreezeNone holds nothing back.
	FreezeNone FreezeLevel = "None"
	// FreezeMaintenance holds back new maintenances, and what is done to machines for those that have begun.
	FreezeMaintenance FreezeLevel = "Maintenance"
	// FreezeDestructive holds back that, and whatever stops a machine or erases data: wipes, power-off, resets.
	FreezeDestructive FreezeLevel = "Destructive"
	// FreezeAll holds back everything that reaches a machine or changes what it boots.
	FreezeAll FreezeLevel = "All"
)

// FleetAction is what a budget counts.
// +kubebuilder:validation:Enum=Wipe;ForcedOff;PowerCycle;PowerOn;Maintenance
type FleetAction string

const (
	// ActionWipe is a wipe that is under way.
	ActionWipe FleetAction = "Wipe"
	// ActionForcedOff is power cut by force, whoever asked for it.
	ActionForcedOff FleetAction = "ForcedOff"
	// ActionPowerCycle is a restart or power cycle that somebody asked for.
	ActionPowerCycle FleetAction = "PowerCycle"
	// ActionPowerOn is a power-on.
	ActionPowerOn FleetAction = "PowerOn"
	// ActionMaintenance is a server that is handed to a maintenance, whoever handed it over.
	ActionMaintenance FleetAction = "Maintenance"
)

// FleetControlSpec is what the people who run the fleet allow at present.
type FleetControlSpec struct {
	// freezes hold actions back; each names its servers. Of several that cover a server the strictest counts.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Freezes []Freeze `json:"freezes,omitempty"`
	// budgets bound how many machines may undergo an action at a time.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Budgets []Budget `json:"budgets,omitempty"`
	// breaker freezes the fleet by itself when too many servers fail or are wiped at once; none by default.
	// +optional
	Breaker *Breaker `json:"breaker,omitempty"`
}

// Freeze holds actions back on some servers.
type Freeze struct {
	// name tells one freeze from another.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// level says what is held back.
	// +required
	Level FreezeLevel `json:"level,omitempty"`
	// selector names the servers by label; every server where it is left out.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// reason says why, to whoever wonders later.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// until is when the freeze ends by itself; never where it is left out.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// by is who asked for it, as the tool that wrote it knows.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by,omitempty"`
}

// Budget bounds how many machines may undergo an action at a time.
// +kubebuilder:validation:XValidation:rule="has(self.max) || has(self.maxPercent)",message="a budget needs max, maxPercent or both"
type Budget struct {
	// name tells one budget from another.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// action is what is counted.
	// +required
	Action FleetAction `json:"action,omitempty"`
	// max is the number of machines; 0 allows none. With maxPercent besides, the larger of the two counts.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Max *int32 `json:"max,omitempty"`
	// maxPercent is the number of machines as a share of the servers that the budget covers, in percent and rounded down.
	// Where per is given, it is a share of the servers with the same value.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxPercent *int32 `json:"maxPercent,omitempty"`
	// windowSeconds is how long an action counts after it was begun, in seconds; 600 where it is left out. A wipe and a
	// maintenance count until they end instead.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	WindowSeconds *int32 `json:"windowSeconds,omitempty"`
	// per is the key of a label of servers, for example topology.kubernetes.io/zone: each of its values has a budget of its
	// own. The whole fleet shares one where it is left out.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	Per string `json:"per,omitempty"`
	// selector names the servers that the budget counts and bounds; every server where it is left out.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// Breaker freezes the fleet, at level Destructive, when too many servers enter certain states within a window.
type Breaker struct {
	// maxPercent is the share of the fleet, in percent, beyond which the breaker trips.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxPercent int32 `json:"maxPercent,omitempty"`
	// minServers is how many servers it takes at least, so that a small fleet does not trip over one machine; 5 where it is
	// left out.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinServers *int32 `json:"minServers,omitempty"`
	// windowSeconds is the time, in seconds, within which servers must have entered the states to count; 600 where it is
	// left out.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	WindowSeconds *int32 `json:"windowSeconds,omitempty"`
	// states are the states that count, however a server came to them; Error and Cleanup where none is named. A release leads
	// to Cleanup.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	States []string `json:"states,omitempty"`
	// acknowledgedAt closes the breaker again: a trip before this moment no longer counts, nor do the servers that had
	// entered the states by then.
	// +optional
	AcknowledgedAt *metav1.MicroTime `json:"acknowledgedAt,omitempty"`
}

// FleetControlStatus says what is held back at present.
type FleetControlStatus struct {
	// conditions are Frozen, BreakerTripped and BudgetExhausted.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// trip is the last time that the breaker tripped.
	// +optional
	Trip *BreakerTrip `json:"trip,omitempty"`
	// usage is what the budgets without room had let through when somebody last had to wait for one: those that are the
	// furthest beyond their number, where there are more than 200.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	Usage []BudgetUsage `json:"usage,omitempty"`
	// usageOmitted is how many entries usage leaves out.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UsageOmitted int32 `json:"usageOmitted,omitempty"`
}

// BreakerTrip is one time that the breaker tripped.
type BreakerTrip struct {
	// at is when.
	// +required
	At metav1.MicroTime `json:"at,omitzero"`
	// servers is how many servers had entered the states within the window.
	// +required
	// +kubebuilder:validation:Minimum=0
	Servers int32 `json:"servers"`
	// of is how many servers there were.
	// +required
	// +kubebuilder:validation:Minimum=0
	Of int32 `json:"of"`
}

// BudgetUsage is how far one budget is used.
type BudgetUsage struct {
	// name is the budget's.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// value is the value of the label that the budget is divided by; empty where it is not.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value,omitempty"`
	// used is how many machines count at present.
	// +required
	// +kubebuilder:validation:Minimum=0
	Used int32 `json:"used"`
}

// FleetControl holds actions back: by hand, by budget, and by a breaker. There is one, named fleet.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=fctl,categories=metal
// +kubebuilder:printcolumn:name="Frozen",type=string,JSONPath=`.status.conditions[?(@.type=="Frozen")].reason`
// +kubebuilder:printcolumn:name="Breaker",type=string,JSONPath=`.status.conditions[?(@.type=="BreakerTripped")].reason`
// +kubebuilder:printcolumn:name="Budgets",type=string,JSONPath=`.status.conditions[?(@.type=="BudgetExhausted")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Frozen")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'fleet'",message="there is one FleetControl, and its name is fleet"
type FleetControl struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is allowed at present.
	// +optional
	Spec FleetControlSpec `json:"spec,omitzero"`
	// status says what is held back.
	// +optional
	Status FleetControlStatus `json:"status,omitzero"`
}

// FleetControlList is a list of FleetControls.
//
// +kubebuilder:object:root=true
type FleetControlList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []FleetControl `json:"items"`
}

// Condition types of a FleetControl.
const (
	// ConditionFrozen says that a freeze is in force, and which.
	ConditionFrozen = "Frozen"
	// ConditionBreakerTripped says that the breaker froze the fleet and nobody has acknowledged it yet.
	ConditionBreakerTripped = "BreakerTripped"
	// ConditionBudgetExhausted says that machines wait for a budget.
	ConditionBudgetExhausted = "BudgetExhausted"
)

// Reasons of conditions on a FleetControl.
const (
	// ReasonNotFrozen: no freeze is in force.
	ReasonNotFrozen = "NotFrozen"
	// ReasonFrozenMaintenance: maintenances are held back on some servers or all.
	ReasonFrozenMaintenance = "Maintenance"
	// ReasonFrozenDestructive: what stops machines or erases data is held back on some servers or all.
	ReasonFrozenDestructive = "Destructive"
	// ReasonFrozenAll: everything that reaches a machine is held back on some servers or all.
	ReasonFrozenAll = "All"
	// ReasonBreakerClosed: the breaker has not tripped, or the trip was acknowledged.
	ReasonBreakerClosed = "Closed"
	// ReasonBreakerTripped: too many servers entered the states that the breaker watches.
	ReasonBreakerTripped = "Tripped"
	// ReasonBudgetsLeft: nobody waits for a budget.
	ReasonBudgetsLeft = "Left"
	// ReasonBudgetsExhausted: machines wait for a budget.
	ReasonBudgetsExhausted = "Exhausted"
)
