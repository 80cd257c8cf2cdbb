// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/macprefixes"
)

// subject implements loop.Subject for endpoints.
type subject struct {
	Options
	prober *prober
}

// scope is one endpoint in one reconcile.
type scope struct {
	*subject
	endpoint *v1alpha1.Endpoint
	settings bundle.Settings
	facts    facts
	// refusedAt is when the device turned the accounts down, where this reconcile learned it.
	refusedAt time.Time
}

// Observe implements loop.Subject.
func (s *subject) Observe(ctx context.Context, e *v1alpha1.Endpoint) (loop.Scope[verdict], error) {
	active := s.Bundles.Active()
	v := &scope{subject: s, endpoint: e, settings: active.Settings}
	v.facts = facts{name: e.Name, revision: active.Revision}
	if v.facts.revision.Name == "" {
		v.facts.revision.Name, v.facts.revision.Version = active.Name, active.Version
	}
	v.facts.mac, v.facts.macErr = macprefixes.Normalize(e.Spec.MACAddress)
	if v.facts.macErr == nil {
		v.facts.row, v.facts.found = active.MACs.Lookup(v.facts.mac)
	}
	if err := v.findBMC(ctx); err != nil {
		return nil, err
	}
	return v, nil
}

// findBMC looks for the BMC that is reached by this endpoint: the one made from it, or one that somebody made by hand.
func (v *scope) findBMC(ctx context.Context) error {
	var list v1alpha1.BMCList
	if err := v.Client.List(ctx, &list, client.MatchingFields{fieldindex.BMCByEndpoint: v.endpoint.Name}); err != nil {
		return fmt.Errorf("list the BMCs of Endpoint %s: %w", v.endpoint.Name, err)
	}
	for i := range list.Items {
		if v.facts.bmc == "" || list.Items[i].Name == v.endpoint.Name {
			v.facts.bmc = list.Items[i].Name
		}
	}
	if v.facts.bmc != "" {
		return nil
	}
	taken := &v1alpha1.BMC{}
	if err := v.Client.Get(ctx, types.NamespacedName{Name: v.endpoint.Name}, taken); err != nil {
		return wrapped(client.IgnoreNotFound(err), "get BMC %s", v.endpoint.Name)
	}
	v.facts.holder = reachedBy(taken)
	return nil
}

func reachedBy(b *v1alpha1.BMC) string {
	switch {
	case b.Spec.EndpointRef != nil:
		return "Endpoint " + b.Spec.EndpointRef.Name
	case b.Spec.Access != nil:
		return "the address " + b.Spec.Access.IP
	}
	return "nothing"
}

// reasonAsking: the device was asked and has not answered yet; it is never recorded.
const reasonAsking = "Asking"

// record brings the conditions up to date. While the device is being asked nothing is written: what is recorded stands until the
// answer is there.
func (v *scope) record(verdict verdict, o loop.Outcome) {
	if !o.Settled() {
		if o.Progress.Err != nil || o.Progress.Reason == reasonAsking {
			return
		}
		verdict.reason, verdict.message = o.Progress.Reason, o.Progress.Message
	}
	status := &v.endpoint.Status
	status.ObservedGeneration = v.endpoint.Generation
	v.set(v1alpha1.ConditionMatched, verdict.matched, verdict.matchReason, verdict.matchMessage)
	v.set(v1alpha1.ConditionReady, verdict.reason == v1alpha1.ReasonBMCCreated, verdict.reason, verdict.message)
	// A manager that restarts finds the time of the last refusal here. The condition's own time would stand still while the
	// accounts are refused again and again, and each restart would offer them once more.
	if !v.refusedAt.IsZero() {
		ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
		ready.LastTransitionTime = metav1.NewTime(v.refusedAt.Truncate(time.Second)) // as the API stores it
	}
}

func (v *scope) set(kind string, holds bool, reason, message string) {
	state := metav1.ConditionFalse
	if holds {
		state = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&v.endpoint.Status.Conditions, metav1.Condition{
		Type: kind, Status: state, Reason: reason, Message: message, ObservedGeneration: v.endpoint.Generation,
	})
}
