// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// stage is how far the manager has come with a request.
type stage int

const (
	// stageUnseen: the annotation stands and nothing is recorded.
	stageUnseen stage = iota
	// stageBegun: the manager has recorded it.
	stageBegun
	// stageEnded: it is over; the record says how.
	stageEnded
	// stageUnrecorded: the annotation is gone and no record was made: refused, or the record comes in a moment.
	stageUnrecorded
)

// stageOf reads from a server how far an operation has come that was asked for when the last recorded one had the id
// before.
func stageOf(s *v1alpha1.Server, operation, before string) stage {
	if op := s.Status.Operation; op != nil && op.ID != before && op.Name == operation {
		if op.FinishedAt != nil || (op.State != v1alpha1.OperationPending && op.State != v1alpha1.OperationInProgress) {
			return stageEnded
		}
		return stageBegun
	}
	if s.Annotations[v1alpha1.OperationAnnotation] == operation {
		return stageUnseen
	}
	return stageUnrecorded
}

// ended is the result that a record of an operation that is over gives.
func ended(r result, op *v1alpha1.OperationStatus) result {
	r.Operation, r.Message = op, op.Message
	switch op.State {
	case v1alpha1.OperationSucceeded:
		r.Outcome = outcomeDone
	case v1alpha1.OperationRefused:
		r.Outcome = outcomeRefused
	default:
		r.Outcome = outcomeFailed
	}
	return r
}

// holdingUp are the conditions that hold a request up.
var holdingUp = []fault{
	{v1alpha1.ConditionWithheld, metav1.ConditionTrue},
	{v1alpha1.ConditionPolicyHalted, metav1.ConditionTrue},
	{v1alpha1.ConditionBMCReachable, metav1.ConditionFalse},
}

// overdue is the result for a request that has not ended in time: how far it is, and what is known to hold it up.
func overdue(r result, s *v1alpha1.Server, at stage, waited string) result {
	r.Outcome = outcomeTimedOut
	words := []string{fmt.Sprintf("not taken in after %s; does the manager run?", waited)}
	if at == stageBegun {
		r.Operation = s.Status.Operation
		words = []string{fmt.Sprintf("still %s after %s", s.Status.Operation.State, waited)}
	}
	for _, holds := range holdingUp {
		if c := holds.on(s); c != nil {
			words = append(words, fmt.Sprintf("%s is %s, %s: %s", holds.kind, c.Status, c.Reason, c.Message))
		}
	}
	r.Message = strings.Join(words, "; ")
	return r
}
