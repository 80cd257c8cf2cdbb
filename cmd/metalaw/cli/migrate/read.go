// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/claim"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/uuids"
	"github.com/metalaw/metalaw/policies"
)

// fleet is what a cluster holds of a fleet. Nothing of it comes from a cache.
type fleet struct {
	now     time.Time
	servers []v1alpha1.Server
	claims  map[types.NamespacedName]*v1alpha1.ServerClaim
	bmcs    []v1alpha1.BMC
	// endpoints are read for the way back only.
	endpoints []v1alpha1.Endpoint
	// inventories are by their names; ours says that the cluster serves them.
	inventories map[string]*policyv1alpha1.ServerInventory
	ours        bool
	// bundle judges, and policy names it.
	bundle *bundle.Bundle
	policy string
}

// read lists everything with the rights of the user. A right that is missing is an error: what is not seen is not absent.
func read(ctx context.Context, c client.Reader) (*fleet, error) {
	f := &fleet{now: time.Now(), claims: map[types.NamespacedName]*v1alpha1.ServerClaim{}, inventories: map[string]*policyv1alpha1.ServerInventory{}}
	var servers v1alpha1.ServerList
	var claims v1alpha1.ServerClaimList
	var bmcs v1alpha1.BMCList
	for _, one := range []struct {
		list     client.ObjectList
		resource string
	}{{&servers, access.Servers}, {&claims, access.ServerClaims}, {&bmcs, access.BMCs}} {
		if err := c.List(ctx, one.list); err != nil {
			return nil, access.Explain(err, "list", one.resource)
		}
	}
	f.servers, f.bmcs = servers.Items, bmcs.Items
	for i := range claims.Items {
		f.claims[client.ObjectKeyFromObject(&claims.Items[i])] = &claims.Items[i]
	}
	var inventories policyv1alpha1.ServerInventoryList
	if err := c.List(ctx, &inventories); err == nil {
		f.ours = true
	} else if !unserved(err) {
		return nil, access.Explain(err, "list", access.Inventories)
	}
	for i := range inventories.Items {
		f.inventories[inventories.Items[i].Name] = &inventories.Items[i]
	}
	return f, nil
}

// unserved says that the cluster does not serve a kind: before step 3 it has none of ours.
func unserved(err error) bool {
	var status apierrors.APIStatus
	return meta.IsNoMatchError(err) || errors.As(err, &status) && status.Status().Code == http.StatusNotFound
}

// readPolicy takes the shipped bundle that is named, else the revision in force, else the default bundle.
func (f *fleet) readPolicy(ctx context.Context, c client.Reader, shipped string) error {
	if shipped == "" {
		var revisions policyv1alpha1.PolicyRevisionList
		if err := c.List(ctx, &revisions); err != nil && !unserved(err) {
			return access.Explain(err, "list", access.Revisions)
		}
		if r := policyv1alpha1.InForce(revisions.Items); r != nil {
			b, err := claim.Compile(r)
			f.bundle, f.policy = b, "policy revision "+r.Name+", which is in force"
			return err
		}
		shipped = policies.DefaultBundle
	}
	files, err := policies.Shipped(shipped)
	if err != nil {
		return err
	}
	b, found, err := bundle.Compile(files, policies.Vocabulary())
	if err != nil {
		return err
	}
	if b == nil {
		return fmt.Errorf("the shipped bundle %s does not compile: %w", shipped, found.Err())
	}
	f.bundle, f.policy = b, "the shipped bundle "+shipped
	return nil
}

// inventoryOf is what is kept of the machine of a server; nil where nothing is.
func (f *fleet) inventoryOf(s *v1alpha1.Server) *policyv1alpha1.ServerInventory {
	for _, name := range uuids.Spellings(s.Spec.SystemUUID) {
		if inv := f.inventories[name]; inv != nil {
			return inv
		}
	}
	return nil
}

// claimOf is the claim that a server names; nil where there is none.
func (f *fleet) claimOf(s *v1alpha1.Server) *v1alpha1.ServerClaim {
	if s.Spec.ServerClaimRef == nil {
		return nil
	}
	return f.claims[types.NamespacedName{Namespace: s.Spec.ServerClaimRef.Namespace, Name: s.Spec.ServerClaimRef.Name}]
}
