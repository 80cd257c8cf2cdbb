// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/api/fieldindex"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/macprefixes"
)

var (
	endpointMACPath = field.NewPath("spec", "macAddress")
	endpointIPPath  = field.NewPath("spec", "ip")
	// knownMACPath is the path under which clients of this API look for a duplicate, in its spelling; the field itself is
	// called spec.macAddress, which the refusal says in words.
	knownMACPath = field.NewPath("spec", "MACAddress")
)

// endpointFacts is what was looked up for an Endpoint.
type endpointFacts struct {
	// rival is another Endpoint with this MAC address.
	rival *rival
	// bmc is a BMC that is reached at this MAC address without an Endpoint; empty where there is none.
	bmc string
}

// checkEndpoint: a MAC address is that of one port, and no two Endpoints share one. A stored Endpoint whose MAC address
// stays is not held against the rules again.
func checkEndpoint(c change[v1alpha1.Endpoint], f endpointFacts) findings {
	var found findings
	if !c.deleted() && (c.created() || c.old.Spec.IP != c.new.Spec.IP) {
		found.deny(addressErrors(endpointIPPath, c.new.Spec.IP)...)
	}
	if !macChanges(c) {
		return found
	}
	mac := c.new.Spec.MACAddress
	if _, err := macprefixes.Normalize(mac); err != nil {
		found.deny(field.Invalid(endpointMACPath, mac, err.Error()))
	}
	if f.rival != nil {
		err := duplicate(knownMACPath, mac, "Endpoint", f.rival)
		err.Detail += "; no two Endpoints have one spec.macAddress"
		found.deny(err)
	}
	if f.bmc != "" {
		found.warn("BMC %s is reached at MAC address %s without an Endpoint already; delete one of the two", f.bmc, mac)
	}
	return found
}

func macChanges(c change[v1alpha1.Endpoint]) bool {
	return !c.deleted() && (c.created() || fieldindex.MACKey(c.old.Spec.MACAddress) != fieldindex.MACKey(c.new.Spec.MACAddress))
}

// judgeEndpoint looks up what checkEndpoint needs.
func (l *lookup) judgeEndpoint(ctx context.Context, c change[v1alpha1.Endpoint]) (findings, map[string]any, error) {
	var f endpointFacts
	if macChanges(c) {
		key := fieldindex.MACKey(c.new.Spec.MACAddress)
		cached, err := names(ctx, l.cache, &v1alpha1.EndpointList{}, fieldindex.EndpointByMAC, key)
		if err != nil {
			return findings{}, nil, err
		}
		f.rival, err = reserve(ctx, l, c, question[v1alpha1.Endpoint]{key: "endpoint/mac/" + key, self: c.new.Name, cached: cached,
			has: func(e *v1alpha1.Endpoint) bool { return fieldindex.MACKey(e.Spec.MACAddress) == key }})
		if err != nil {
			return findings{}, nil, err
		}
		bmcs, err := names(ctx, l.cache, &v1alpha1.BMCList{}, fieldindex.BMCByMAC, key)
		if err != nil {
			return findings{}, nil, err
		}
		if len(bmcs) > 0 {
			f.bmc = bmcs[0]
		}
	}
	return checkEndpoint(c, f), nil, nil
}
