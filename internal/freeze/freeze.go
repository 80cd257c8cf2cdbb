// SPDX-License-Identifier: Apache-2.0

// Package freeze reads a FleetControl: what it holds back, on which servers, and why.
package freeze

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// Hold is what keeps actions back on one server. The zero Hold keeps nothing back.
type Hold struct {
	// Level is what is held back.
	Level policyv1alpha1.FreezeLevel
	// Reason is v1alpha1.ReasonFrozen or v1alpha1.ReasonBreakerTripped.
	Reason string
	// Message names the freeze, who asked for it, why, and how it ends.
	Message string
	// Until is when it ends by itself; zero for never.
	Until time.Time
}

// Destructive says that whatever stops a machine or erases data is held back.
func (h Hold) Destructive() bool {
	return Strictness(h.Level) >= Strictness(policyv1alpha1.FreezeDestructive)
}

// Maintenance says that new maintenances and the next steps of those that have begun are held back.
func (h Hold) Maintenance() bool {
	return Strictness(h.Level) >= Strictness(policyv1alpha1.FreezeMaintenance)
}

// Strictness orders levels: a stricter one holds back what a milder one does, and more. That of a level which holds nothing back is 0.
func Strictness(level policyv1alpha1.FreezeLevel) int { return strictness[level] }

var strictness = map[policyv1alpha1.FreezeLevel]int{
	policyv1alpha1.FreezeMaintenance: 1, policyv1alpha1.FreezeDestructive: 2, policyv1alpha1.FreezeAll: 3,
}

// On is the strictest of what a FleetControl keeps back on a server with these labels. A selector that cannot be read
// covers every server. A nil FleetControl holds nothing back.
func On(c *policyv1alpha1.FleetControl, of map[string]string, now time.Time) Hold {
	var hold Hold
	if c == nil {
		return hold
	}
	for i := range c.Spec.Freezes {
		f := &c.Spec.Freezes[i]
		if !Ended(f, now) && Selector(f.Selector).Matches(labels.Set(of)) && strictness[f.Level] > strictness[hold.Level] {
			hold = Hold{Level: f.Level, Reason: v1alpha1.ReasonFrozen, Message: Words(f)}
			if f.Until != nil {
				hold.Until = f.Until.Time
			}
		}
	}
	if Tripped(c) && strictness[policyv1alpha1.FreezeDestructive] > strictness[hold.Level] {
		trip := c.Status.Trip
		hold = Hold{Level: policyv1alpha1.FreezeDestructive, Reason: v1alpha1.ReasonBreakerTripped, Message: fmt.Sprintf(
			"the breaker tripped at %s: %d of %d servers had entered the states that it watches; metalaw unfreeze --breaker closes it",
			trip.At.UTC().Format(time.RFC3339), trip.Servers, trip.Of)}
	}
	return hold
}

// Tripped says that the breaker has tripped and that nobody has acknowledged it since.
func Tripped(c *policyv1alpha1.FleetControl) bool {
	if c.Spec.Breaker == nil || c.Status.Trip == nil {
		return false
	}
	acknowledged := c.Spec.Breaker.AcknowledgedAt
	return acknowledged == nil || c.Status.Trip.At.After(acknowledged.Time)
}

// Ended says that a freeze has run out.
func Ended(f *policyv1alpha1.Freeze, now time.Time) bool {
	return f.Until != nil && !now.Before(f.Until.Time)
}

// Words name a freeze, who asked for it, why, and when it ends.
func Words(f *policyv1alpha1.Freeze) string {
	message := fmt.Sprintf("freeze %q (%s)", f.Name, f.Level)
	if f.By != "" {
		message += " by " + f.By
	}
	if f.Reason != "" {
		message += ": " + f.Reason
	}
	if f.Until != nil {
		message += ", until " + f.Until.UTC().Format(time.RFC3339)
	}
	return message
}

// Selector compiles a selector. None covers every object, and so does one that cannot be read: what bounds or holds back
// must never end by a slip of the pen.
func Selector(selector *metav1.LabelSelector) labels.Selector {
	if selector == nil {
		return labels.Everything()
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return labels.Everything()
	}
	return s
}
