// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/macprefixes"
	"github.com/metalaw/metalaw/webhooks/review"
)

// normalizeEndpoint writes the MAC address in lower case with colons. What is no MAC address is left for the validation,
// which says so. An Endpoint that a BMC will be made of gets its finalizer here, which saves the controller a write.
func (l *lookup) normalizeEndpoint(_ context.Context, c review.Change[v1alpha1.Endpoint]) (edits []review.Edit, warnings []string) {
	mac, err := macprefixes.Normalize(c.New.Spec.MACAddress)
	if err != nil {
		return nil, nil
	}
	if mac != c.New.Spec.MACAddress {
		warnings = []string{fmt.Sprintf(
			"%s: it is stored as %s; write it so, or a GitOps tool sees a difference at each sync", endpointMACPath, mac)}
		edits = append(edits, review.Edit{Op: "replace", Path: "/spec/macAddress", Value: mac})
	}
	row, known := l.bundles.Active().MACs.Lookup(mac)
	if c.Created() && known && row.IsBMC() && !v1alpha1.Ignored(c.New) &&
		!slices.Contains(c.New.Finalizers, v1alpha1.FinalizerEndpoint) {
		edits = append(edits, review.Edit{Op: "add", Path: "/metadata/finalizers",
			Value: append(slices.Clone(c.New.Finalizers), v1alpha1.FinalizerEndpoint)})
	}
	return edits, warnings
}

// finalizeClaim gives a claim its finalizer as it is made, which saves the controller a write. A claim that names its server beforehand
// gets it from the controller: on one that is made with a finalizer, the finalizer tells that it comes back from a backup.
func finalizeClaim(_ context.Context, c review.Change[v1alpha1.ServerClaim]) (edits []review.Edit, warnings []string) {
	if !c.Created() || refOf(c.New) != "" || v1alpha1.Ignored(c.New) || slices.Contains(c.New.Finalizers, v1alpha1.FinalizerServerClaim) {
		return nil, nil
	}
	return []review.Edit{{Op: "add", Path: "/metadata/finalizers",
		Value: append(slices.Clone(c.New.Finalizers), v1alpha1.FinalizerServerClaim)}}, nil
}

// normalizeServer writes the system UUID in lower case, and who asks for an operation. It takes the record of a grant away with the
// reference to the maintenance.
func normalizeServer(_ context.Context, c review.Change[v1alpha1.Server]) (edits []review.Edit, warnings []string) {
	if uuid := strings.ToLower(c.New.Spec.SystemUUID); uuid != c.New.Spec.SystemUUID {
		edits = append(edits, review.Edit{Op: "replace", Path: "/spec/systemUUID", Value: uuid})
	}
	edits = append(append(edits, recordWho(c)...), recordDoubter(c)...)
	return append(edits, dropGrantRecord(c)...), nil
}
