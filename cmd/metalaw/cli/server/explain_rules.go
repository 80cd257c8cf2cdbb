// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	// ruleUnknown: what is not known here decides.
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
	all, err := e.observe(ctx, c, policies.Observation{Server: s, Now: now, CountedNow: clock, Counted: counted,
		Settings: b.Settings})
	if err != nil {
		return err
	}
	e.Rules = waysOut(b.Lifecycle, all)
	e.Deadline = deadlineOf(e.Rules, counted, now, stopped, reason)
	return nil
}

// observe reads the objects that facts are made of. What the reader may not see, and the BMC, which this command does not ask, is
// replaced by all that it could be.
func (e *explanation) observe(ctx context.Context, c client.Reader, o policies.Observation) ([]policies.Observation, error) {
	all := vary([]policies.Observation{o}, readings(), func(o *policies.Observation, r policies.SystemReading) { o.System = r })
	claims, err := stored(ctx, c, e, access.ServerClaims, "the claim", claimsOf(o.Server), keys(o.Server.Spec.ServerClaimRef)...)
	if err != nil {
		return nil, err
	}
	all = vary(all, claims, func(o *policies.Observation, c *v1alpha1.ServerClaim) { o.Claim = c })
	boots, err := stored(ctx, c, e, bootConfigurations, "the boot configuration", boots(), keys(o.Server.Spec.BootConfigurationRef)...)
	if err != nil {
		return nil, err
	}
	all = vary(all, boots, func(o *policies.Observation, b *v1alpha1.ServerBootConfiguration) { o.Boot = b })
	var machine []types.NamespacedName
	for _, name := range uuids.Spellings(o.Server.Spec.SystemUUID) {
		machine = append(machine, types.NamespacedName{Name: name})
	}
	inventories, err := stored(ctx, c, e, access.Inventories, "what the machine reported", inventories(o.Server.Status.Lifecycle.Entry), machine...)
	if err != nil {
		return nil, err
	}
	return vary(all, inventories, func(o *policies.Observation, i *policyv1alpha1.ServerInventory) { o.Inventory = i }), nil
}

// keys is the name of the object that a server refers to; none where it refers to none.
func keys(ref *v1alpha1.ObjectReference) []types.NamespacedName {
	if ref == nil {
		return nil
	}
	return []types.NamespacedName{{Namespace: ref.Namespace, Name: ref.Name}}
}

// stored reads the object that has one of some names: it alone, or nil where none does. Where the reader may not see it, that is nil or one
// of those that it could be.
func stored[T any, P interface {
	*T
	client.Object
}](ctx context.Context, c client.Reader, e *explanation, resource, what string, could []P, names ...types.NamespacedName) ([]P, error) {
	for _, name := range names {
		found := P(new(T))
		err := c.Get(ctx, name, found)
		switch {
		case err == nil:
			return []P{found}, nil
		case !apierrors.IsNotFound(err):
			err = access.Missing(&e.Notes, err, "get", resource, "you cannot see "+what+", so what the rules ask of it is unknown here")
			return append(could, nil), err
		}
	}
	return []P{nil}, nil
}

// vary combines each observation with each of what one part of it could be.
func vary[T any](all []policies.Observation, each []T, set func(*policies.Observation, T)) []policies.Observation {
	var varied []policies.Observation
	for _, o := range all {
		for _, one := range each {
			set(&o, one)
			varied = append(varied, o)
		}
	}
	return varied
}

func readings() []policies.SystemReading {
	all := []policies.SystemReading{{}, {Reachable: true, Identity: policies.IdentityOther}}
	for _, power := range []string{"On", "Off", "PoweringOn", "PoweringOff", "Unknown"} {
		for _, health := range []string{"OK", "Warning", "Critical", "Unknown"} {
			one := policies.SystemReading{Reachable: true, Identity: policies.IdentitySame, Power: power, Health: health}
			set, none := one, one
			set.OverrideSet, none.NoOverride = true, true
			all = append(all, one, set, none)
		}
	}
	return all
}

func claimsOf(s *v1alpha1.Server) []*v1alpha1.ServerClaim {
	ref := s.Spec.ServerClaimRef
	if ref == nil {
		return nil
	}
	var all []*v1alpha1.ServerClaim
	for _, power := range []v1alpha1.Power{"", v1alpha1.PowerOn, v1alpha1.PowerOff} {
		one := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name,
			UID: types.UID(s.Annotations[v1alpha1.ClaimUIDAnnotation])}}
		if power != "" { // it names the server as well
			one.Spec.Power, one.Spec.ServerRef = power, &corev1.LocalObjectReference{Name: s.Name}
		}
		all = append(all, one)
	}
	return all
}

func boots() []*v1alpha1.ServerBootConfiguration {
	var all []*v1alpha1.ServerBootConfiguration
	for _, purpose := range []string{v1alpha1.BootPurposeProbe, v1alpha1.BootPurposeWipe, v1alpha1.BootPurposeClaim} {
		for _, state := range []v1alpha1.ServerBootConfigurationState{v1alpha1.ServerBootConfigurationStatePending,
			v1alpha1.ServerBootConfigurationStateReady, v1alpha1.ServerBootConfigurationStateError} {
			one := &v1alpha1.ServerBootConfiguration{}
			metav1.SetMetaDataAnnotation(&one.ObjectMeta, v1alpha1.BootPurposeAnnotation, purpose)
			one.Status.State = state
			all = append(all, one)
		}
	}
	return all
}

// inventories are what a machine could have reported in an entry.
func inventories(entry int64) []*policyv1alpha1.ServerInventory {
	report := &policyv1alpha1.ProbeReport{Entry: entry}
	all := []*policyv1alpha1.ServerInventory{{Report: report}}
	for _, state := range []policyv1alpha1.WipeState{policyv1alpha1.WipeRunning, policyv1alpha1.WipeVerified, policyv1alpha1.WipeFailed} {
		wipe := &policyv1alpha1.WipeReport{Entry: entry, State: state, UpdatedAt: metav1.NowMicro()}
		all = append(all, &policyv1alpha1.ServerInventory{Wipe: wipe}, &policyv1alpha1.ServerInventory{Wipe: wipe, Report: report})
	}
	return all
}

// waysOut asks the policy under all that is possible. What is the same each time is known.
func waysOut(l *lifecycle.Lifecycle, all []policies.Observation) []wayOut {
	found := map[string]*wayOut{}
	for i := range all {
		for _, step := range l.Explain(all[i].Facts()).Trace {
			if step.Kind != "exit" && step.Kind != "interrupt" {
				continue
			}
			if found[step.Rule] == nil {
				found[step.Rule] = &wayOut{Is: results[step.Result]}
			}
			found[step.Rule].add(step)
		}
	}
	ways := []wayOut{}
	for _, edge := range l.Edges() {
		if string(edge.From) != string(all[0].Server.Status.State) {
			continue
		}
		w := wayOut{Is: ruleBehind}
		if one := found[edge.Rule]; one != nil {
			w = *one
		}
		w.Rule, w.To, w.When, w.After = edge.Rule, string(edge.To), edge.When, edge.After
		if w.Is != ruleWaits {
			w.Remaining = nil
		}
		ways = append(ways, w)
	}
	return ways
}

// results are what is to be said of a rule by what the policy says of it.
var results = map[string]string{"true": ruleMatches, "false": ruleClosed, "waiting": ruleWaits, "error": ruleUnknown}

// add takes in what the policy says of a rule under one of the possibilities.
func (w *wayOut) add(step engine.TraceStep) {
	if w.Is != results[step.Result] {
		w.Is = ruleUnknown
	}
	if w.Remaining == nil || step.Remaining < w.Remaining.Duration {
		w.Remaining = &metav1.Duration{Duration: step.Remaining}
	}
	for name, value := range step.Atoms {
		if value != "true" && value != "false" {
			continue // it was not asked for
		}
		if w.Atoms == nil {
			w.Atoms = map[string]string{}
		}
		if known, is := w.Atoms[name]; is && known != value {
			value = ruleUnknown
		}
		w.Atoms[name] = value
	}
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
