// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"maps"
	"slices"
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
		return e.unread(err, access.Revisions, "you cannot see the rules of the revision that governs the server")
	}
	b, err := claim.Compile(revision)
	if err != nil {
		e.Notes = append(e.Notes, err.Error()+"; no rules can be shown")
		return nil //nolint:nilerr // the note tells it; the rest is shown
	}
	e.Means, e.Says = b.Lifecycle.Means(engine.State(e.State)), b.Lifecycle.Says(e.Rule)
	held, reason := l.Clock != nil && l.Clock.Held, ""
	if held {
		reason = l.Clock.Reason
	}
	counted, _ := policies.CountedTime(l, now, policies.Outage{}, held, reason)
	all, err := e.observe(ctx, c, policies.Observation{Server: s, Now: now, Counted: counted, Settings: b.Settings})
	if err != nil {
		return err
	}
	e.Rules = waysOut(b.Lifecycle, all)
	e.Deadline = deadlineOf(e.Rules, counted, now, held, reason)
	return nil
}

// observe reads the objects that facts are made of. Each that the reader may not see, and the BMC, which nobody asks here, is
// replaced by all that it could be.
func (e *explanation) observe(ctx context.Context, c client.Reader, o policies.Observation) ([]policies.Observation, error) {
	all := vary([]policies.Observation{o}, readings(), func(o *policies.Observation, r policies.SystemReading) { o.System = r })
	claims, err := e.claims(ctx, c, o.Server)
	if err != nil {
		return nil, err
	}
	all = vary(all, claims, func(o *policies.Observation, c *v1alpha1.ServerClaim) { o.Claim = c })
	boots, err := e.boots(ctx, c, o.Server)
	if err != nil {
		return nil, err
	}
	all = vary(all, boots, func(o *policies.Observation, b *v1alpha1.ServerBootConfiguration) { o.Boot = b })
	inventories, err := e.inventories(ctx, c, o.Server)
	if err != nil {
		return nil, err
	}
	return vary(all, inventories, func(o *policies.Observation, i *policyv1alpha1.ServerInventory) { o.Inventory = i }), nil
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

// readings are what a BMC could say.
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

// claims is the claim that a server names, or all that it could be.
func (e *explanation) claims(ctx context.Context, c client.Reader, s *v1alpha1.Server) ([]*v1alpha1.ServerClaim, error) {
	ref := s.Spec.ServerClaimRef
	if ref == nil {
		return []*v1alpha1.ServerClaim{nil}, nil
	}
	found := &v1alpha1.ServerClaim{}
	err := c.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, found)
	switch {
	case err == nil:
		return []*v1alpha1.ServerClaim{found}, nil
	case apierrors.IsNotFound(err):
		return []*v1alpha1.ServerClaim{nil}, nil
	}
	if err := e.unread(err, access.ServerClaims, "you cannot see the claim, so what the rules ask of it is unknown here"); err != nil {
		return nil, err
	}
	binding := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name,
		UID: types.UID(s.Annotations[v1alpha1.ClaimUIDAnnotation])}}
	on, off := binding.DeepCopy(), binding.DeepCopy()
	for power, bound := range map[v1alpha1.Power]*v1alpha1.ServerClaim{v1alpha1.PowerOn: on, v1alpha1.PowerOff: off} {
		bound.Spec.Power, bound.Spec.ServerRef = power, &corev1.LocalObjectReference{Name: s.Name}
	}
	return []*v1alpha1.ServerClaim{nil, binding, on, off}, nil
}

// boots is the boot configuration that a server names, or all that it could be.
func (e *explanation) boots(ctx context.Context, c client.Reader, s *v1alpha1.Server) ([]*v1alpha1.ServerBootConfiguration, error) {
	all := []*v1alpha1.ServerBootConfiguration{nil}
	ref := s.Spec.BootConfigurationRef
	if ref == nil {
		return all, nil
	}
	found := &v1alpha1.ServerBootConfiguration{}
	err := c.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, found)
	switch {
	case err == nil:
		return []*v1alpha1.ServerBootConfiguration{found}, nil
	case apierrors.IsNotFound(err):
		return all, nil
	}
	if err := e.unread(err, bootConfigurations, "you cannot see the boot configuration, so what the rules ask of it is unknown here"); err != nil {
		return nil, err
	}
	for _, purpose := range []string{v1alpha1.BootPurposeProbe, v1alpha1.BootPurposeWipe, v1alpha1.BootPurposeClaim} {
		for _, state := range []v1alpha1.ServerBootConfigurationState{v1alpha1.ServerBootConfigurationStatePending,
			v1alpha1.ServerBootConfigurationStateReady, v1alpha1.ServerBootConfigurationStateError} {
			one := &v1alpha1.ServerBootConfiguration{}
			metav1.SetMetaDataAnnotation(&one.ObjectMeta, v1alpha1.BootPurposeAnnotation, purpose)
			one.Status.State = state
			all = append(all, one)
		}
	}
	return all, nil
}

// inventories is the inventory of a server's machine, or all that it could be.
func (e *explanation) inventories(ctx context.Context, c client.Reader, s *v1alpha1.Server) ([]*policyv1alpha1.ServerInventory, error) {
	all := []*policyv1alpha1.ServerInventory{nil}
	for _, name := range uuids.Spellings(s.Spec.SystemUUID) {
		found := &policyv1alpha1.ServerInventory{}
		err := c.Get(ctx, types.NamespacedName{Name: name}, found)
		switch {
		case err == nil:
			return []*policyv1alpha1.ServerInventory{found}, nil
		case apierrors.IsNotFound(err):
			continue
		}
		err = e.unread(err, access.Inventories, "you cannot see what the machine reported, so what the rules ask of it is unknown here")
		if err != nil {
			return nil, err
		}
		entry := s.Status.Lifecycle.Entry
		for _, state := range []policyv1alpha1.WipeState{policyv1alpha1.WipeRunning, policyv1alpha1.WipeVerified, policyv1alpha1.WipeFailed} {
			wipe := &policyv1alpha1.WipeReport{Entry: entry, State: state, UpdatedAt: metav1.NowMicro()}
			all = append(all, &policyv1alpha1.ServerInventory{Wipe: wipe},
				&policyv1alpha1.ServerInventory{Wipe: wipe, Report: &policyv1alpha1.ProbeReport{Entry: entry}})
		}
		return append(all, &policyv1alpha1.ServerInventory{Report: &policyv1alpha1.ProbeReport{Entry: entry}}), nil
	}
	return all, nil
}

// seen is what was found of one rule under all that is possible.
type seen struct {
	results   map[string]bool
	atoms     map[string]map[string]bool
	remaining time.Duration
}

// waysOut asks the policy under all that is possible. What is the same each time is known.
func waysOut(l *lifecycle.Lifecycle, all []policies.Observation) []wayOut {
	found := map[string]*seen{}
	for i := range all {
		for _, step := range l.Explain(all[i].Facts()).Trace {
			if step.Kind == "exit" || step.Kind == "interrupt" {
				note(found, step)
			}
		}
	}
	ways := []wayOut{}
	for _, edge := range l.Edges() {
		if string(edge.From) == string(all[0].Server.Status.State) {
			ways = append(ways, wayOf(edge, found[edge.Rule]))
		}
	}
	return ways
}

func note(found map[string]*seen, step engine.TraceStep) {
	one := found[step.Rule]
	if one == nil {
		one = &seen{results: map[string]bool{}, atoms: map[string]map[string]bool{}, remaining: step.Remaining}
		found[step.Rule] = one
	}
	one.results[step.Result] = true
	one.remaining = min(one.remaining, step.Remaining)
	for name, value := range step.Atoms {
		if value != "true" && value != "false" {
			continue // it was not asked for
		}
		if one.atoms[name] == nil {
			one.atoms[name] = map[string]bool{}
		}
		one.atoms[name][value] = true
	}
}

// wayOf is what is to be said of a rule; found is nil where it was never its turn.
func wayOf(edge lifecycle.Edge, found *seen) wayOut {
	w := wayOut{Rule: edge.Rule, To: string(edge.To), When: edge.When, After: edge.After, Is: ruleUnknown}
	if found == nil {
		w.Is = ruleBehind
		return w
	}
	if len(found.results) == 1 {
		for result := range found.results {
			w.Is = map[string]string{"true": ruleMatches, "false": ruleClosed, "waiting": ruleWaits}[result]
		}
	}
	if w.Is == ruleWaits {
		w.Remaining = &metav1.Duration{Duration: found.remaining}
	}
	for name, values := range found.atoms {
		if w.Atoms == nil {
			w.Atoms = map[string]string{}
		}
		w.Atoms[name] = ruleUnknown
		if is := slices.Collect(maps.Keys(values)); len(is) == 1 {
			w.Atoms[name] = is[0]
		}
	}
	return w
}

// deadlineOf is the rule whose time comes next.
func deadlineOf(ways []wayOut, counted time.Duration, now time.Time, held bool, reason string) *deadline {
	var next *deadline
	for _, w := range ways {
		if w.Remaining == nil || next != nil && next.Remaining.Duration <= w.Remaining.Duration {
			continue
		}
		next = &deadline{Rule: w.Rule, To: w.To, Counted: metav1.Duration{Duration: counted.Round(time.Second)},
			Remaining: metav1.Duration{Duration: w.Remaining.Round(time.Second)}, Stopped: reason}
		if !held {
			at := now.Add(w.Remaining.Duration).UTC()
			next.At = &at
		}
	}
	return next
}
