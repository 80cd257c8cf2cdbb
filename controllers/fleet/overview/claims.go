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

// ClaimAnswer is which claims wait, and why.
type ClaimAnswer struct {
	Claims int `json:"claims"`
	Ready  int `json:"ready"`
	// Unbound is how many have no server.
	Unbound int `json:"unbound"`
	// Reasons counts those that are not ready by reason, the largest first.
	Reasons []ClaimReason `json:"reasons,omitempty"`
	Waiting []ClaimWait   `json:"waiting,omitempty"`
}

// ClaimReason is the claims that wait for one reason.
type ClaimReason struct {
	Reason string `json:"reason"`
	Claims int    `json:"claims"`
	// First is the one that waits longest.
	First ClaimWait `json:"first"`
}

// ClaimWait is a claim that is not ready.
type ClaimWait struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Cause is the condition that says why: of the claim, or BMCReachable of its server.
	Cause       string    `json:"cause"`
	Reason      string    `json:"reason"`
	Message     string    `json:"message,omitempty"`
	Since       time.Time `json:"since"`
	Server      string    `json:"server,omitempty"`
	Behind      string    `json:"behind,omitempty"`
	NeedsPerson bool      `json:"needsPerson"`
}

// claimsOf says why claims wait.
func claimsOf(claims []v1alpha1.ServerClaim, servers map[string]*v1alpha1.Server, now time.Time) ClaimAnswer {
	a := ClaimAnswer{Claims: len(claims)}
	for i := range claims {
		c := &claims[i]
		if c.Status.Phase != v1alpha1.PhaseBound {
			a.Unbound++
		}
		if meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReady) {
			a.Ready++
			continue
		}
		a.Waiting = append(a.Waiting, ofClaim(c, servers, now))
	}
	slices.SortFunc(a.Waiting, func(x, y ClaimWait) int {
		return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	at := map[string]int{}
	for i := range a.Waiting {
		w := &a.Waiting[i]
		n, known := at[w.Reason]
		if !known {
			n = len(a.Reasons)
			at[w.Reason] = n
			a.Reasons = append(a.Reasons, ClaimReason{Reason: w.Reason, First: *w})
		}
		a.Reasons[n].Claims++
	}
	slices.SortStableFunc(a.Reasons, func(x, y ClaimReason) int { return y.Claims - x.Claims })
	return a
}

// ofClaim says why a claim is not ready. A BMC that does not answer goes before what the claim says itself.
func ofClaim(c *v1alpha1.ServerClaim, servers map[string]*v1alpha1.Server, now time.Time) ClaimWait {
	w := ClaimWait{Namespace: c.Namespace, Name: c.Name, Since: c.CreationTimestamp.UTC(),
		Cause:  v1alpha1.ConditionReady,
		Reason: reasonNoStatus, Message: "the manager has not written its status yet"}
	tell := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
	if bound := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionBound); bound != nil &&
		bound.Status == metav1.ConditionFalse {
		tell = bound
	}
	if tell != nil {
		w.Cause, w.Reason, w.Message, w.Since = tell.Type, tell.Reason, tell.Message, tell.LastTransitionTime.UTC()
	}
	w.NeedsPerson = meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionStalled) ||
		meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionServerMissing) ||
		w.Reason == v1alpha1.ReasonBootError || w.Reason == v1alpha1.ReasonBMCUnreachable || tell == nil && now.Sub(w.Since) > patience
	if c.Spec.ServerRef != nil {
		w.Server = c.Spec.ServerRef.Name
		w.behind(servers[w.Server])
	}
	return w
}

// behind says that the BMC of the server that the claim holds does not answer. It goes before what the claim says.
func (w *ClaimWait) behind(s *v1alpha1.Server) {
	if s == nil {
		return
	}
	reach := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionBMCReachable)
	if reach == nil || reach.Status != metav1.ConditionFalse || claimOf(s) != w.Namespace+"/"+w.Name {
		return
	}
	w.Cause, w.Reason, w.Since, w.NeedsPerson = reach.Type, reach.Reason, reach.LastTransitionTime.UTC(), true
	w.Message = "the BMC of its server " + s.Name + " cannot be used: " + reach.Message
	if s.Spec.BMCRef != nil {
		w.Behind = s.Spec.BMCRef.Name
	}
}

// troubles are the claims that need a person.
func (a *ClaimAnswer) troubles() []Trouble {
	var all []Trouble
	for i := range a.Waiting {
		if w := &a.Waiting[i]; w.NeedsPerson {
			all = append(all, Trouble{Kind: kindClaim, Namespace: w.Namespace, Name: w.Name, Cause: w.Cause,
				Reason:  w.Reason,
				Message: w.Message, Since: w.Since, NeedsPerson: true, Behind: w.Behind})
		}
	}
	return all
}
