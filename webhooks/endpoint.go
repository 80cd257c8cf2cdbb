// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/macprefixes"
	"github.com/metalaw/metalaw/webhooks/review"
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
	// sharing is another Endpoint with this IP address; empty where there is none.
	sharing string
}

// checkEndpoint: a MAC address is that of one port, and no two Endpoints share one. A stored Endpoint whose MAC address
// stays is not held against the rules again.
func checkEndpoint(c review.Change[v1alpha1.Endpoint], f endpointFacts, found *review.Findings) {
	if !c.Deleted() && (c.Created() || c.Old.Spec.IP != c.New.Spec.IP) {
		found.Deny(addressErrors(endpointIPPath, c.New.Spec.IP)...)
	}
	if f.sharing != "" {
		found.Warn("Endpoint %s has IP address %s as well; one device answers there, and is taken for both "+
			"until one of the two is corrected or deleted",
			f.sharing, c.New.Spec.IP)
	}
	if !macChanges(c) {
		return
	}
	mac := c.New.Spec.MACAddress
	checkMAC(endpointMACPath, mac, "no row of macprefixes.yaml matches it, so that no BMC is made of the Endpoint", found)
	if f.rival != nil {
		err := duplicate(knownMACPath, mac, "Endpoint", f.rival)
		err.Detail += "; no two Endpoints have one spec.macAddress"
		found.Deny(err)
	}
	if f.bmc != "" {
		found.Warn("BMC %s is reached at MAC address %s without an Endpoint already; delete one of the two", f.bmc, mac)
	}
}

// checkMAC refuses what is no MAC address, and warns of a multicast address: upstream stores one, and its samples use some.
func checkMAC(path *field.Path, mac, consequence string, found *review.Findings) {
	switch _, err := macprefixes.Normalize(mac); {
	case err == nil:
	case errors.Is(err, macprefixes.ErrMulticast):
		found.Warn("%s: %v; %s; write the address that the device has", path, err, consequence)
	default:
		found.Deny(field.Invalid(path, mac, err.Error()))
	}
}

func macChanges(c review.Change[v1alpha1.Endpoint]) bool {
	return !c.Deleted() && (c.Created() || fieldindex.MACKey(c.Old.Spec.MACAddress) != fieldindex.MACKey(c.New.Spec.MACAddress))
}

// sharesIP names another Endpoint with the IP address that a change brings; empty where there is none.
func (l *lookup) sharesIP(ctx context.Context, c review.Change[v1alpha1.Endpoint]) string {
	if c.Deleted() || !c.Created() && fieldindex.IPKey(c.Old.Spec.IP) == fieldindex.IPKey(c.New.Spec.IP) {
		return ""
	}
	all, err := l.names(ctx, &v1alpha1.EndpointList{}, fieldindex.EndpointByIP, fieldindex.IPKey(c.New.Spec.IP))
	if err != nil {
		return "" // it leads to a warning only
	}
	all = slices.DeleteFunc(all, func(name string) bool { return name == c.New.Name })
	if len(all) == 0 {
		return ""
	}
	return slices.Min(all)
}

// judgeEndpoint looks up what checkEndpoint needs.
func (l *lookup) judgeEndpoint(ctx context.Context, c review.Change[v1alpha1.Endpoint], found *review.Findings, _ map[string]any) error {
	f := endpointFacts{sharing: l.sharesIP(ctx, c)}
	if macChanges(c) {
		key := fieldindex.MACKey(c.New.Spec.MACAddress)
		cached, err := l.names(ctx, &v1alpha1.EndpointList{}, fieldindex.EndpointByMAC, key)
		if err != nil {
			return err
		}
		f.rival, err = reserve(ctx, l, c, question[v1alpha1.Endpoint]{key: "endpoint/mac/" + key, cached: cached,
			has: func(e *v1alpha1.Endpoint) bool { return fieldindex.MACKey(e.Spec.MACAddress) == key }})
		if err != nil {
			return err
		}
		bmcs, err := l.names(ctx, &v1alpha1.BMCList{}, fieldindex.BMCByMAC, key)
		if err != nil {
			return err
		}
		if len(bmcs) > 0 {
			f.bmc = bmcs[0]
		}
	}
	checkEndpoint(c, f, found)
	return l.credentials.JudgeEndpoint(ctx, c, found)
}
