// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/maintenance/hold"
	"github.com/metalaw/metalaw/engine/maintenance"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/internal/stored"
	"github.com/metalaw/metalaw/policies"
)

// view is what the caches show, and what this manager wrote and they do not show yet. Its objects are not changed.
type view struct {
	// at is when it was taken.
	at time.Time
	// clock is counted time; nil knows none.
	clock *counted.Clock
	// setting is what the bundle in force says.
	setting *maintenance.Policy
	control *policyv1alpha1.FleetControl
	// halted says why nothing is granted at all; empty where something may be.
	halted       string
	servers      map[string]*v1alpha1.Server
	claims       map[v1alpha1.ObjectReference]*v1alpha1.ServerClaim
	claimsWait   bool
	maintenances []*v1alpha1.ServerMaintenance
	// of are the maintenances by the server that they hold, or else name.
	of map[string][]*v1alpha1.ServerMaintenance
}

// see reads the caches.
func (s *scheduler) see(ctx context.Context) (*view, error) {
	v := &view{at: s.now(), clock: s.counts, servers: map[string]*v1alpha1.Server{},
		claims: map[v1alpha1.ObjectReference]*v1alpha1.ServerClaim{},
		of:     map[string][]*v1alpha1.ServerMaintenance{}}
	var found v1alpha1.ServerMaintenanceList
	if err := s.client.List(ctx, &found, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("read the maintenances: %w", err)
	}
	v.maintenances = stored.Over(&s.written.maintenances, found.Items)
	var servers v1alpha1.ServerList
	if err := s.client.List(ctx, &servers, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("read the servers: %w", err)
	}
	for _, one := range stored.Over(&s.written.servers, servers.Items) {
		v.servers[one.Name] = one
	}
	var claims v1alpha1.ServerClaimList
	if err := s.client.List(ctx, &claims, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("read the claims: %w", err)
	}
	for _, one := range stored.Over(&s.written.claims, claims.Items) {
		v.add(one)
	}
	v.group()
	var err error
	if v.control, err = s.gate.Control(ctx); err != nil {
		return nil, fmt.Errorf("read the FleetControl: %w", err)
	}
	v.setting, v.halted = s.policy()
	return v, nil
}

// group brings each maintenance to the server that it holds, or else names.
func (v *view) group() {
	holds := map[types.UID]string{}
	for name, s := range v.servers {
		if hold.Granted(s) {
			holds[types.UID(s.Annotations[v1alpha1.MaintenanceUIDAnnotation])] = name
		}
	}
	for _, m := range v.maintenances {
		name := m.Spec.ServerRef.Name
		if held, ok := holds[m.UID]; ok && hold.Holds(v.servers[held], m) {
			name = held
		}
		v.of[name] = append(v.of[name], m)
	}
}

// claimOf is the claim that a server is bound to; nil where none is, or where it is gone.
func (v *view) claimOf(s *v1alpha1.Server) *v1alpha1.ServerClaim {
	if s == nil || s.Spec.ServerClaimRef == nil {
		return nil
	}
	c := v.claims[*s.Spec.ServerClaimRef]
	if c == nil || s.Annotations[v1alpha1.ReleasedClaimAnnotation] == string(c.UID) {
		return nil
	}
	if relation := policies.RelationOf(s, c); relation != policies.Holds && relation != policies.Adoptable {
		return nil
	}
	return c
}

// concerned are the servers for which something may be due, in order.
func (v *view) concerned() []string {
	names := map[string]bool{}
	for name := range v.of {
		names[name] = true
	}
	for name, s := range v.servers {
		if hold.Granted(s) {
			names[name] = true
			continue
		}
		if s.Spec.ServerClaimRef == nil {
			continue
		}
		c := v.claimOf(s)
		if c != nil && (hold.Asked(c) || s.Annotations[v1alpha1.DecommissionAnnotation] != "") {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// adopted says that the manager may act on a maintenance: it was made after the manager was to grant any, or a user adopted it. Both
// times are of whole seconds, so that one of the same second may be older.
func adopted(m *v1alpha1.ServerMaintenance, consent time.Time) bool {
	return m.CreationTimestamp.After(consent) || m.Annotations[v1alpha1.AdoptAnnotation] == "true"
}
