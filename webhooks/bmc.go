// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/webhooks/review"
)

var (
	bmcAccessPath   = field.NewPath("spec", "access")
	bmcEndpointPath = field.NewPath("spec", "endpointRef")
)

// bmcFacts is what was looked up for a BMC: the other BMCs that are reached at the same place.
type bmcFacts struct {
	// address is the place itself, "[ip]:port".
	address                         string
	byAddress, byMAC, byEndpointRef *rival
	// assignment is what UUIDs for its systems are held against.
	assignment assignmentFacts
}

// checkBMC: one service is one BMC. Two of them would both write to the same machine.
func checkBMC(c review.Change[v1alpha1.BMC], f bmcFacts, found *review.Findings) {
	if c.Deleted() {
		return
	}
	checkBMCName(c, found)
	checkAcceptance(c, found)
	review.WarnApplied(c.Old, c.New, found)
	checkTrust(c, found)
	checkHostMACs(c, found)
	checkAssignments(c, f.assignment, found)
	access := c.New.Spec.Access
	if access != nil && access.MACAddress != "" && c.Created() {
		checkMAC(bmcAccessPath.Child("macAddress"), access.MACAddress, "the BMC is reached by its IP address all the same", found)
	}
	if access != nil && c.Created() {
		found.Deny(addressErrors(bmcAccessPath.Child("ip"), access.IP)...)
		if access.IP == "" {
			found.Warn("%s: without it the BMC is never asked, and access cannot be changed later; write the address of the BMC",
				bmcAccessPath.Child("ip"))
		}
	}
	if f.byMAC != nil {
		found.Deny(duplicate(bmcAccessPath.Child("macAddress"), access.MACAddress, "BMC", f.byMAC))
	}
	if f.byAddress != nil {
		path := bmcAccessPath.Child("ip")
		if access == nil {
			path = bmcEndpointPath
		}
		found.Deny(duplicate(path, f.address, "BMC", f.byAddress))
	}
	if f.byEndpointRef != nil {
		found.Deny(duplicate(bmcEndpointPath, c.New.Spec.EndpointRef.Name, "BMC", f.byEndpointRef))
	}
}

// place is where a BMC is reached. Endpoint is empty for an inline access.
type place struct{ endpoint, address, mac string }

func placeOf(b *v1alpha1.BMC, endpoint *v1alpha1.Endpoint) place {
	switch {
	case b.Spec.Access != nil && b.Spec.Access.IP == "": // it is reached nowhere
		return place{mac: fieldindex.MACKey(b.Spec.Access.MACAddress)}
	case b.Spec.Access != nil:
		return place{address: fieldindex.AddressKey(b.Spec.Access.IP, b.Spec.Protocol), mac: fieldindex.MACKey(b.Spec.Access.MACAddress)}
	case endpoint != nil:
		return place{endpoint: endpoint.Name, address: fieldindex.AddressKey(endpoint.Spec.IP, b.Spec.Protocol)}
	case b.Spec.EndpointRef != nil:
		return place{endpoint: b.Spec.EndpointRef.Name}
	}
	return place{}
}

// judgeBMC looks up what checkBMC needs. Only what changes is looked up: access and endpointRef are immutable, the port
// is not.
func (l *bmcRules) judgeBMC(ctx context.Context, c review.Change[v1alpha1.BMC], found *review.Findings, _ map[string]any) (err error) {
	if c.Deleted() {
		return nil
	}
	var endpoint *v1alpha1.Endpoint
	if c.New.Spec.EndpointRef != nil {
		if endpoint, err = get[v1alpha1.Endpoint](ctx, l.lookup, c.New.Spec.EndpointRef.Name); err != nil {
			return err
		}
	}
	is, was := placeOf(c.New, endpoint), place{}
	if !c.Created() {
		was = placeOf(c.Old, endpoint)
	}
	f := bmcFacts{address: is.address}
	ip := ""
	if c.New.Spec.Access != nil {
		ip = c.New.Spec.Access.IP
	}
	for _, v := range []value{
		// One with an inline access, or one whose Endpoint has this IP. That of its own Endpoint has a row of its own.
		{&f.byAddress, is.address, was.address, "bmc/address/", fieldindex.BMCByAddress, fieldindex.EndpointByIP, fieldindex.IPKey(ip),
			func(b *v1alpha1.BMC, reached bool) bool {
				if b.Spec.Access != nil {
					return fieldindex.AddressKey(b.Spec.Access.IP, b.Spec.Protocol) == is.address
				}
				return reached && fieldindex.AddressKey(ip, b.Spec.Protocol) == is.address
			}},
		// The MAC address of an inline access, its own or that of its Endpoint.
		{&f.byMAC, is.mac, was.mac, "bmc/mac/", fieldindex.BMCByMAC, fieldindex.EndpointByMAC, is.mac,
			func(b *v1alpha1.BMC, reached bool) bool {
				if b.Spec.Access != nil {
					return fieldindex.MACKey(b.Spec.Access.MACAddress) == is.mac
				}
				return reached
			}},
		{&f.byEndpointRef, is.endpoint, was.endpoint, "bmc/endpoint/", fieldindex.BMCByEndpoint, "", "",
			func(b *v1alpha1.BMC, _ bool) bool {
				return b.Spec.EndpointRef != nil && b.Spec.EndpointRef.Name == is.endpoint
			}},
	} {
		if v.is == "" || v.is == v.was {
			continue
		}
		if *v.rival, err = l.otherBMC(ctx, c, v); err != nil {
			return err
		}
	}
	if f.assignment, err = l.judgeAssignments(ctx, c); err != nil {
		return err
	}
	checkBMC(c, f, found)
	return l.credentials.JudgeBMC(ctx, c, found)
}

// value is what only one BMC may have, as it is and was, and where the cache finds the BMCs and the Endpoints that have it.
type value struct {
	rival                     **rival
	is, was                   string
	key, index                string
	endpointIndex, ofEndpoint string // empty where no Endpoint has it
	// has gets to know whether one of the Endpoints with the value reaches the BMC.
	has func(b *v1alpha1.BMC, reached bool) bool
}

// otherBMC finds another BMC with a value.
func (l *bmcRules) otherBMC(ctx context.Context, c review.Change[v1alpha1.BMC], v value) (*rival, error) {
	cached, err := l.names(ctx, &v1alpha1.BMCList{}, v.index, v.is)
	if err != nil {
		return nil, err
	}
	var endpoints []string
	if v.ofEndpoint != "" {
		if endpoints, err = l.names(ctx, &v1alpha1.EndpointList{}, v.endpointIndex, v.ofEndpoint); err != nil {
			return nil, err
		}
	}
	theirs, err := l.names(ctx, &v1alpha1.BMCList{}, fieldindex.BMCByEndpoint, endpoints...)
	if err != nil {
		return nil, err
	}
	return reserve(ctx, l.lookup, c, question[v1alpha1.BMC]{key: v.key + v.is, cached: append(cached, theirs...), has: func(b *v1alpha1.BMC) bool {
		return v.has(b, b.Spec.EndpointRef != nil && slices.Contains(endpoints, b.Spec.EndpointRef.Name))
	}})
}
