// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/fieldindex"
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
func checkBMC(c change[v1alpha1.BMC], f bmcFacts) findings {
	var found findings
	if c.deleted() {
		return found
	}
	checkAcceptance(c, &found)
	checkTrust(c, &found)
	checkHostMACs(c, &found)
	checkAssignments(c, f.assignment, &found)
	access := c.new.Spec.Access
	if access != nil && access.MACAddress != "" && c.created() {
		checkMAC(bmcAccessPath.Child("macAddress"), access.MACAddress, "the BMC is reached by its IP address all the same", &found)
	}
	if access != nil && c.created() {
		found.deny(addressErrors(bmcAccessPath.Child("ip"), access.IP)...)
	}
	if f.byMAC != nil {
		found.deny(duplicate(bmcAccessPath.Child("macAddress"), access.MACAddress, "BMC", f.byMAC))
	}
	if f.byAddress != nil {
		path := bmcAccessPath.Child("ip")
		if access == nil {
			path = bmcEndpointPath
		}
		found.deny(duplicate(path, f.address, "BMC", f.byAddress))
	}
	if f.byEndpointRef != nil {
		found.deny(duplicate(bmcEndpointPath, c.new.Spec.EndpointRef.Name, "BMC", f.byEndpointRef))
	}
	return found
}

// place is where a BMC is reached. Endpoint is empty for an inline access.
type place struct{ endpoint, address, mac string }

func placeOf(b *v1alpha1.BMC, endpoint *v1alpha1.Endpoint) place {
	switch {
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
func (l *bmcRules) judgeBMC(ctx context.Context, c change[v1alpha1.BMC]) (findings, map[string]any, error) {
	var f bmcFacts
	if c.deleted() {
		return findings{}, nil, nil
	}
	endpoint, err := l.endpointOf(ctx, c.new)
	if err != nil {
		return findings{}, nil, err
	}
	is, was := placeOf(c.new, endpoint), place{}
	if !c.created() {
		was = placeOf(c.old, endpoint)
	}
	f.address = is.address
	if is.address != "" && is.address != was.address {
		if f.byAddress, err = l.bmcAt(ctx, c, is); err != nil {
			return findings{}, nil, err
		}
	}
	if is.mac != "" && is.mac != was.mac {
		if f.byMAC, err = l.bmcWithMAC(ctx, c, is); err != nil {
			return findings{}, nil, err
		}
	}
	if is.endpoint != "" && is.endpoint != was.endpoint {
		if f.byEndpointRef, err = l.bmcOfEndpoint(ctx, c, is); err != nil {
			return findings{}, nil, err
		}
	}
	if f.assignment, err = l.judgeAssignments(ctx, c); err != nil {
		return findings{}, nil, err
	}
	return checkBMC(c, f), nil, nil
}

func (l *bmcRules) endpointOf(ctx context.Context, b *v1alpha1.BMC) (*v1alpha1.Endpoint, error) {
	if b.Spec.EndpointRef == nil {
		return nil, nil
	}
	return get[v1alpha1.Endpoint](ctx, l.lookup, b.Spec.EndpointRef.Name)
}

// bmcAt finds another BMC at an address: one with an inline access, or one whose Endpoint has this IP. That of its own
// Endpoint is bmcOfEndpoint's.
func (l *bmcRules) bmcAt(ctx context.Context, c change[v1alpha1.BMC], is place) (*rival, error) {
	cached, err := names(ctx, l.cache, &v1alpha1.BMCList{}, fieldindex.BMCByAddress, is.address)
	if err != nil {
		return nil, err
	}
	ip := c.new.Spec.Access
	endpoints := map[string]bool{}
	if ip != nil {
		all, err := names(ctx, l.cache, &v1alpha1.EndpointList{}, fieldindex.EndpointByIP, fieldindex.IPKey(ip.IP))
		if err != nil {
			return nil, err
		}
		for _, name := range all {
			endpoints[name] = true
			theirs, err := names(ctx, l.cache, &v1alpha1.BMCList{}, fieldindex.BMCByEndpoint, name)
			if err != nil {
				return nil, err
			}
			cached = append(cached, theirs...)
		}
	}
	return reserve(ctx, l.lookup, c, question[v1alpha1.BMC]{key: "bmc/address/" + is.address, self: c.new.Name, cached: cached,
		has: func(b *v1alpha1.BMC) bool {
			if b.Spec.Access != nil {
				return fieldindex.AddressKey(b.Spec.Access.IP, b.Spec.Protocol) == is.address
			}
			return ip != nil && b.Spec.EndpointRef != nil && endpoints[b.Spec.EndpointRef.Name] &&
				fieldindex.AddressKey(ip.IP, b.Spec.Protocol) == is.address
		}})
}

// bmcWithMAC finds another BMC with a MAC address of an inline access, its own or that of its Endpoint.
func (l *bmcRules) bmcWithMAC(ctx context.Context, c change[v1alpha1.BMC], is place) (*rival, error) {
	cached, err := names(ctx, l.cache, &v1alpha1.BMCList{}, fieldindex.BMCByMAC, is.mac)
	if err != nil {
		return nil, err
	}
	endpoints, err := names(ctx, l.cache, &v1alpha1.EndpointList{}, fieldindex.EndpointByMAC, is.mac)
	if err != nil {
		return nil, err
	}
	for _, name := range endpoints {
		theirs, err := names(ctx, l.cache, &v1alpha1.BMCList{}, fieldindex.BMCByEndpoint, name)
		if err != nil {
			return nil, err
		}
		cached = append(cached, theirs...)
	}
	return reserve(ctx, l.lookup, c, question[v1alpha1.BMC]{key: "bmc/mac/" + is.mac, self: c.new.Name, cached: cached,
		has: func(b *v1alpha1.BMC) bool {
			if b.Spec.Access != nil {
				return fieldindex.MACKey(b.Spec.Access.MACAddress) == is.mac
			}
			return b.Spec.EndpointRef != nil && slices.Contains(endpoints, b.Spec.EndpointRef.Name)
		}})
}

// bmcOfEndpoint finds another BMC that is reached by an Endpoint.
func (l *bmcRules) bmcOfEndpoint(ctx context.Context, c change[v1alpha1.BMC], is place) (*rival, error) {
	cached, err := names(ctx, l.cache, &v1alpha1.BMCList{}, fieldindex.BMCByEndpoint, is.endpoint)
	if err != nil {
		return nil, err
	}
	return reserve(ctx, l.lookup, c, question[v1alpha1.BMC]{key: "bmc/endpoint/" + is.endpoint, self: c.new.Name, cached: cached,
		has: func(b *v1alpha1.BMC) bool {
			return b.Spec.EndpointRef != nil && b.Spec.EndpointRef.Name == is.endpoint
		}})
}
