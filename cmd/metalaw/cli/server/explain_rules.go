// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/claim"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/lifecycle"
	"github.com/metalaw/metalaw/internal/uuids"
	"github.com/metalaw/metalaw/policies"
)

// bootConfigurations is the resource, as RBAC names it.
const bootConfigurations = "serverbootconfigurations.metal.ironcore.dev"

// What is to be said of a rule that leads out of the present state.
const (
	// ruleMatches: it matches what is stored, whatever the BMC says.
	ruleMatches = "matches"
	// ruleClosed: it does not match, whatever the BMC says.
	ruleClosed = "closed"
	// ruleUnknown: it depends on what the BMC says.
	ruleUnknown = "unknown"
	// ruleWaits: its time has not come.
	ruleWaits = "waits"
	// ruleBehind: another rule that matches comes first.
	ruleBehind = "behind"
)

// wayOut is one rule that leads out of the present state, as far as stored objects tell.
type wayOut struct {
	Rule string `json:"rule"`
	To   string `json:"to"`
	When string `json:"when,omitempty"`
	// After is how long the server has to be in the state first.
	After string `json:"after,omitempty"`
	Is    string `json:"is"`
	// Atoms are the names that the rule asked for and their values: true, false or unknown.
	Atoms map[string]string `json:"atoms,omitempty"`
	// Remaining is how long the rule has still to wait.
	Remaining *metav1.Duration `json:"remaining,omitempty"`
}

// readRules reads what governs a server and what the facts are made of, and asks the policy.
func (e *explanation) readRules(ctx context.Context, c client.Reader, s *v1alpha1.Server, now time.Time) error {
	l := s.Status.Lifecycle
	if l == nil || l.Revision == "" {
		e.Notes = append(e.Notes, "no policy revision governs the server yet, so no rules can be shown")
		return nil
	}
	revision := &policyv1alpha1.PolicyRevision{}
	err := c.Get(ctx, types.NamespacedName{Name: l.Revision}, revision)
	if apierrors.IsNotFound(err) {
		e.Notes = append(e.Notes, "the revision "+l.Revision+", which governs the server, does not exist any more, so no rules can be shown")
		return nil
	}
	if err != nil {
		return access.Missing(&e.Notes, err, "get", access.Revisions, "you cannot see the rules of the revision that governs the server")
	}
	b, err := claim.Compile(revision)
	if err != nil {
		e.Notes = append(e.Notes, err.Error()+"; no rules can be shown")
		return nil //nolint:nilerr // The note says it; the rest is shown.
	}
	e.Means, e.Says = b.Lifecycle.Means(engine.State(e.State)), b.Lifecycle.Says(e.Rule)
	e.Released.takesEffect(s, b.Settings.ReleaseGrace, now)
	stopped, reason := l.Clock != nil && l.Clock.Held, ""
	if stopped {
		reason = l.Clock.Reason
	}
	// Only the leader knows counted time; what is shown here is an estimate by the clock of whoever asks.
	clock := policies.EstimatedClock(s, now)
	at := policies.Instant{Now: now, Counted: clock}
	counted, _ := policies.CountedTime(l, at, policies.Outage{}, stopped, reason)
	o := policies.Observation{Server: s, Now: now, CountedNow: clock, Counted: counted, Settings: b.Settings}
	if seen, err := e.observe(ctx, c, &o); err != nil || !seen {
		return err
	}
	e.Rules = waysOut(b.Lifecycle, o)
	e.Deadline = deadlineOf(e.Rules, counted, now, stopped, reason)
	return nil
}

// observe reads the objects that facts are made of. It is false where the reader may not see one of them.
func (e *explanation) observe(ctx context.Context, c client.Reader, o *policies.Observation) (seen bool, err error) {
	var machine []types.NamespacedName
	for _, name := range uuids.Spellings(o.Server.Spec.SystemUUID) {
		machine = append(machine, types.NamespacedName{Name: name})
	}
	var claimed, booted, reported bool
	o.Claim, claimed, err = stored[v1alpha1.ServerClaim](ctx, c, e, access.ServerClaims, "the claim",
		keys(o.Server.Spec.ServerClaimRef))
	if err == nil {
		o.Boot, booted, err = stored[v1alpha1.ServerBootConfiguration](ctx, c, e, bootConfigurations,
			"the boot configuration", keys(o.Server.Spec.BootConfigurationRef))
	}
	if err == nil {
		o.Inventory, reported, err = stored[policyv1alpha1.ServerInventory](ctx, c, e, access.Inventories,
			"what the machine reported", machine)
	}
	return claimed && booted && reported, err
}

// keys is the name of the object that a server refers to; none where it refers to none.
func keys(ref *v1alpha1.ObjectReference) []types.NamespacedName {
	if ref == nil {
		return nil
	}
	return []types.NamespacedName{{Namespace: ref.Namespace, Name: ref.Name}}
}

// stored reads the object that has one of some names; nil where none does. It is false where the reader may not see it.
func stored[T any, P interface {
	*T
	client.Object
}](
	ctx context.Context, c client.Reader, e *explanation, resource, what string, names []types.NamespacedName,
) (P, bool, error) {
	for _, name := range names {
		found := P(new(T))
		err := c.Get(ctx, name, found)
		switch {
		case err == nil:
			return found, true, nil
		case !apierrors.IsNotFound(err):
			return nil, false, access.Missing(&e.Notes, err, "get", resource,
				"you cannot see "+what+", so no rules can be shown")
		}
	}
	return nil, true, nil
}

// waysOut asks the policy while nothing is known of what the BMC says. Where the BMC shows no boot override, a wipe may fail
// by what it says.
func waysOut(l *lifecycle.Lifecycle, o policies.Observation) []wayOut {
	unknown := []string{"bmc"}
	if meta.IsStatusConditionTrue(o.Server.Status.Conditions, v1alpha1.ConditionBootOverrideMissing) {
		unknown = append(unknown, "wipe")
	}
	found := map[string]*wayOut{}
	for _, step := range l.Ways(o.Facts(), unknown...) {
		if step.Kind == "exit" || step.Kind == "interrupt" {
			found[step.Rule] = asked(step)
		}
	}
	ways := []wayOut{}
	for _, edge := range l.Edges() {
		if string(edge.From) != string(o.Server.Status.State) {
			continue
		}
		w := wayOut{Is: ruleBehind}
		if one := found[edge.Rule]; one != nil {
			w = *one
		}
		w.Rule, w.To, w.When, w.After = edge.Rule, string(edge.To), edge.When, edge.After
		ways = append(ways, w)
	}
	return ways
}

// results are what is to be said of a rule by what the policy says of it.
var results = map[string]string{"true": ruleMatches, "false": ruleClosed, "waiting": ruleWaits, "error": ruleUnknown}

// asked is what the policy says of a rule.
func asked(step engine.TraceStep) *wayOut {
	w := &wayOut{Is: results[step.Result]}
	if w.Is == ruleWaits {
		w.Remaining = &metav1.Duration{Duration: step.Remaining}
	}
	for name, value := range step.Atoms {
		switch {
		case value == "true", value == "false":
		case value == "error" && w.Is == ruleUnknown:
			value = ruleUnknown
		default: // it was not asked for, or the rule does not turn on it
			continue
		}
		if w.Atoms == nil {
			w.Atoms = map[string]string{}
		}
		w.Atoms[name] = value
	}
	return w
}

// deadlineOf is the rule whose time comes next.
func deadlineOf(ways []wayOut, counted time.Duration, now time.Time, stopped bool, reason string) *deadline {
	var next *deadline
	for _, w := range ways {
		if w.Remaining == nil || next != nil && next.Remaining.Duration <= w.Remaining.Duration {
			continue
		}
		next = &deadline{Rule: w.Rule, To: w.To, Counted: metav1.Duration{Duration: counted.Round(time.Second)},
			Remaining: metav1.Duration{Duration: w.Remaining.Round(time.Second)}, Stopped: reason}
		if !stopped {
			at := now.Add(w.Remaining.Duration).UTC()
			next.At = &at
		}
	}
	return next
}
