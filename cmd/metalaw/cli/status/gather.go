// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/controllers/fleet/overview"
)

// page is how many objects one answer of the API server holds.
const page = 500

// source lists objects. take is called for each list that was read, with first for the first one of an attempt.
type source interface {
	each(ctx context.Context, fresh func() client.ObjectList, take func(list client.ObjectList, first bool),
		options ...client.ListOption) error
}

// each lists in pages. A list that takes longer than the API server keeps its place is read anew at once.
func (l live) each(ctx context.Context, fresh func() client.ObjectList, take func(client.ObjectList, bool),
	options ...client.ListOption) error {
	limit, place := client.Limit(page), ""
	for first := true; ; first = false {
		list := fresh()
		err := l.List(ctx, list, append([]client.ListOption{limit, client.Continue(place)}, options...)...)
		if apierrors.IsResourceExpired(err) && place != "" {
			limit = 0
			list, first = fresh(), true
			err = l.List(ctx, list, options...)
		}
		if err != nil {
			return err
		}
		take(list, first)
		if place = list.GetContinue(); place == "" {
			return nil
		}
	}
}

// kind is one kind that is read.
type kind struct {
	resource string
	// says is the resource for a refusal in words.
	says    string
	object  client.Object
	fresh   func() client.ObjectList
	take    func(list client.ObjectList, first bool)
	options []client.ListOption
}

// kinds are what is read, and where it is put.
func kinds(in *overview.Input, namespace string) []kind {
	return []kind{
		{overview.Servers, access.Servers, &v1alpha1.Server{},
			func() client.ObjectList { return &v1alpha1.ServerList{} },
			into(&in.Servers, func(l client.ObjectList) []v1alpha1.Server { return items(l, serversOf) }), nil},
		{overview.BMCs, access.BMCs, &v1alpha1.BMC{}, func() client.ObjectList { return &v1alpha1.BMCList{} },
			into(&in.BMCs, func(l client.ObjectList) []v1alpha1.BMC {
				return items(l, func(l *v1alpha1.BMCList) []v1alpha1.BMC { return l.Items })
			}), nil},
		{overview.Claims, access.ServerClaims, &v1alpha1.ServerClaim{},
			func() client.ObjectList { return &v1alpha1.ServerClaimList{} },
			into(&in.Claims, func(l client.ObjectList) []v1alpha1.ServerClaim {
				return items(l, func(l *v1alpha1.ServerClaimList) []v1alpha1.ServerClaim { return l.Items })
			}), nil},
		{overview.Maintenances, access.Maintenances, &v1alpha1.ServerMaintenance{},
			func() client.ObjectList { return &v1alpha1.ServerMaintenanceList{} },
			into(&in.Maintenances, func(l client.ObjectList) []v1alpha1.ServerMaintenance {
				return items(l, func(l *v1alpha1.ServerMaintenanceList) []v1alpha1.ServerMaintenance { return l.Items })
			}), nil},
		{overview.Revisions, access.Revisions, &policyv1alpha1.PolicyRevision{},
			func() client.ObjectList { return &policyv1alpha1.PolicyRevisionList{} },
			into(&in.Revisions, func(l client.ObjectList) []policyv1alpha1.PolicyRevision {
				return items(l, revisionsOf)
			}), nil},
		{overview.Controls, access.FleetControls, &policyv1alpha1.FleetControl{},
			func() client.ObjectList { return &policyv1alpha1.FleetControlList{} },
			func(l client.ObjectList, _ bool) { in.Control = controlOf(l) }, nil},
		{overview.Leases, access.Leases, &coordinationv1.Lease{},
			func() client.ObjectList { return &coordinationv1.LeaseList{} },
			into(&in.Leases, func(l client.ObjectList) []coordinationv1.Lease {
				return items(l, func(l *coordinationv1.LeaseList) []coordinationv1.Lease { return l.Items })
			}), []client.ListOption{client.InNamespace(namespace)}},
	}
}

// into appends the objects of each list to a slice, which begins anew with the first list.
func into[T any](to *[]T, of func(client.ObjectList) []T) func(client.ObjectList, bool) {
	return func(list client.ObjectList, first bool) {
		if first {
			*to = nil
		}
		*to = append(*to, of(list)...)
	}
}

// items are the objects of a list of a known type; none of another.
func items[L client.ObjectList, T any](list client.ObjectList, of func(L) []T) []T {
	if typed, ok := list.(L); ok {
		return of(typed)
	}
	return nil
}

// serversOf are the servers of a list without what the answers do not use: most of a Server is its hardware.
func serversOf(l *v1alpha1.ServerList) []v1alpha1.Server {
	for i := range l.Items {
		slim(&l.Items[i])
	}
	return l.Items
}

func revisionsOf(l *policyv1alpha1.PolicyRevisionList) []policyv1alpha1.PolicyRevision {
	for i := range l.Items {
		slim(&l.Items[i])
	}
	return l.Items
}

// slim takes away what the answers do not use.
func slim(o client.Object) {
	o.SetManagedFields(nil)
	switch o := o.(type) {
	case *v1alpha1.Server:
		o.Status.NetworkInterfaces, o.Status.Processors, o.Status.Storages = nil, nil, nil
	case *policyv1alpha1.PolicyRevision:
		o.Spec.Content, o.Status.Findings = nil, nil
	}
}

func controlOf(l client.ObjectList) *policyv1alpha1.FleetControl {
	controls := items(l, func(l *policyv1alpha1.FleetControlList) []policyv1alpha1.FleetControl { return l.Items })
	for _, c := range controls {
		if c.Name == policyv1alpha1.FleetControlName {
			return &c
		}
	}
	return nil
}

// gather lists each kind once, without those that are known not to be readable. Without the servers there is no
// answer; any other kind that cannot be read is told.
func gather(ctx context.Context, from source, namespace string, known []overview.Unread) (overview.Input, error) {
	in := overview.Input{Unread: slices.Clone(known)}
	for _, k := range kinds(&in, namespace) {
		if slices.ContainsFunc(known, func(u overview.Unread) bool { return u.Resource == k.resource }) {
			continue
		}
		err := from.each(ctx, k.fresh, k.take, k.options...)
		if err == nil {
			continue
		}
		missing := meta.IsNoMatchError(err) || apierrors.IsNotFound(err)
		err = access.Explain(err, "list", k.says)
		if k.resource == overview.Servers || !missing && !apierrors.IsForbidden(err) {
			return in, fmt.Errorf("%s: %w", k.resource, err)
		}
		in.Unread = append(in.Unread, overview.Unread{Resource: k.resource, Why: err.Error()})
	}
	return in, nil
}
