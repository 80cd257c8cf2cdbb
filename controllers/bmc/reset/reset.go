// SPDX-License-Identifier: Apache-2.0

// Package reset decides about the restart of a BMC: whether one is due, was sent, is done or failed.
package reset

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

// A reset goes through these steps, so that the BMC hears it once:
//
//  1. the manager records it in the condition Reset, while the annotation stays;
//  2. once that is stored (order 1) the process that recorded it asks the BMC, and no other process does;
//  3. the annotation goes when the outcome is known, or when another process recorded the reset;
//  4. the condition ends when the BMC answers: with ResetComplete where this process asked, else with Interrupted.

// Requested is the message of a reset that is recorded.
const Requested = "a restart of the BMC was asked for by annotation"

// Sent is what this process knows of the reset under way.
type Sent struct {
	// Known says that this process recorded the reset; else another process may have sent it.
	Known, Ended bool
	// Err is how the call to the BMC failed, and Message describes it; empty while it runs and where it succeeded.
	Err     error
	Message string
}

// PostponedError says what postponed a restart while it waited for its turn.
type PostponedError struct{ Reason, Message string }

// Error implements error.
func (e *PostponedError) Error() string {
	return "the BMC was not restarted, and is once nothing holds that back: " + e.Message
}

// Input is what decides what becomes of a restart that the annotation asks for.
type Input struct {
	// UnderWay is the condition of a reset that did not end; nil for none.
	UnderWay *metav1.Condition
	Sent     Sent
	// Unresolved is why the BMC cannot be asked; the zero value where it can.
	Unresolved Wait
	// Read says that the BMC was read.
	Read bool
	// Stranger is why the BMC that answers may not be the one that is meant; empty where it is.
	Stranger string
}

// Wait is what the annotation waits for.
type Wait struct {
	Reason, Message string
	Again           time.Duration
}

// Next is what the shell does next.
type Next uint8

const (
	// Hold leaves the annotation, for the reason in Wait. It is the zero value, so that an empty decision asks nothing.
	Hold Next = iota
	// Ask asks the gate, records the reset, and asks the BMC once that is stored.
	Ask
	// Drop takes the annotation away.
	Drop
)

// Decision is what becomes of a restart that the annotation asks for.
type Decision struct {
	Next Next
	Wait Wait
	// Failed is the message of a reset that failed; empty else.
	Failed string
}

// Decide says what becomes of a restart that the annotation asks for.
func Decide(i Input) Decision {
	switch {
	case i.UnderWay != nil && i.UnderWay.Reason == v1alpha1.ReasonUserRequested:
		return outcome(i.Sent)
	case i.Unresolved.Reason != "":
		return Decision{Next: Hold, Wait: i.Unresolved}
	case !i.Read:
		return hold("NotRead", "the BMC is restarted once it was read, to be sure that it is the one that is meant", 0)
	case i.Stranger != "":
		return Decision{Next: Drop, Failed: i.Stranger}
	}
	return Decision{Next: Ask}
}

// outcome drops the annotation once nothing more comes of it. A postponed restart keeps it, and is asked for again.
func outcome(s Sent) Decision {
	var postponed *PostponedError
	switch {
	case s.Known && !s.Ended:
		return hold("Asking", "the BMC was asked to restart", 0)
	case s.Known && errors.As(s.Err, &postponed) && !redfish.MayHaveHappened(s.Err):
		d := hold(postponed.Reason, postponed.Error(), time.Second)
		d.Failed = postponed.Error()
		return d
	case s.Known && s.Err != nil && !redfish.MayHaveHappened(s.Err):
		return Decision{Next: Drop, Failed: "the BMC was not restarted: " + s.Message}
	}
	return Decision{Next: Drop}
}

func hold(reason, message string, again time.Duration) Decision {
	return Decision{Next: Hold, Wait: Wait{Reason: reason, Message: message, Again: again}}
}

// Current is what may end a reset that is under way.
type Current struct {
	Since time.Time
	// Wanted says that an operation annotation still stands.
	Wanted bool
	// Reachable says that the BMC answered at ReadAt.
	Reachable bool
	ReadAt    time.Time
	// Settle is how long an answer is not yet taken for the end: a BMC may answer for a moment after it accepted a reset.
	Settle time.Duration
	// Known says that this process recorded the reset.
	Known bool
}

// End returns the reason and message with which a reset ends; both are empty while it goes on.
func End(c Current) (reason, message string) {
	switch {
	case c.Wanted || !c.Reachable || !c.ReadAt.After(c.Since.Add(c.Settle)):
		return "", ""
	case !c.Known:
		return v1alpha1.ReasonInterrupted, "the manager that recorded the reset ended, so it is not known whether the BMC was " +
			"asked. The BMC answers; compare status.lastResetTime, and ask again if it did not restart"
	}
	return v1alpha1.ReasonResetComplete, "the BMC answers after its reset"
}

// UnderWay is the condition of a reset that did not end; nil for none.
func UnderWay(conditions []metav1.Condition) *metav1.Condition {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReset)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	return c
}

// Time names a new reset by a second that no former reset of the BMC has.
func Time(conditions []metav1.Condition, now time.Time) time.Time {
	at := now.Truncate(time.Second)
	if last := meta.FindStatusCondition(conditions, v1alpha1.ConditionReset); last != nil && !at.After(last.LastTransitionTime.Time) {
		at = last.LastTransitionTime.Add(time.Second)
	}
	return at
}

// ID names a reset among the requests to the BMC.
func ID(at time.Time) string { return "reset/" + at.UTC().Format(time.RFC3339) }
