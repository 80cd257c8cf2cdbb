// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// concerned says that a server has a broken part, or that something is said or done about one.
func concerned(o client.Object) bool {
	s, ok := o.(*v1alpha1.Server)
	return ok && (len(s.Status.FaultyParts) > 0 || s.Annotations[v1alpha1.UnclaimableReasonAnnotation] == v1alpha1.UnclaimableFaulty ||
		meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionFaultyHardware) != nil)
}

// concerns passes what a verdict follows from: each event costs a look at all servers.
func concerns() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return concerned(e.Object) },
		DeleteFunc:  func(event.DeleteEvent) bool { return false }, // the others are not the worse for it
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, ok1 := e.ObjectOld.(*v1alpha1.Server)
			now, ok2 := e.ObjectNew.(*v1alpha1.Server)
			return ok1 && ok2 && (concerned(was) || concerned(now)) &&
				(concernOf(was) != concernOf(now) || !equality.Semantic.DeepEqual(was.Status.FaultyParts, now.Status.FaultyParts))
		},
	}
}

// concern is what a verdict on a server follows from besides its parts, and what was said of it.
type concern struct {
	claimed, cordoned, ignored, deleted bool
	reason, at, decided, model          string
	state                               v1alpha1.ServerState
	said                                [3]string
}

func concernOf(s *v1alpha1.Server) concern {
	c := concern{claimed: s.Spec.ServerClaimRef != nil, cordoned: s.Spec.Unclaimable, ignored: v1alpha1.Ignored(s),
		deleted: !s.DeletionTimestamp.IsZero(), reason: s.Annotations[v1alpha1.UnclaimableReasonAnnotation],
		at: s.Annotations[v1alpha1.FaultCordonedAtAnnotation], decided: s.Annotations[v1alpha1.DecommissionAnnotation], model: modelOf(s)}
	if s.Status.State == v1alpha1.StateDecommissioned {
		c.state = s.Status.State
	}
	if said := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionFaultyHardware); said != nil {
		c.said = [...]string{string(said.Status), said.Reason, said.Message}
	}
	return c
}
