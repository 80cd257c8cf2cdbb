// SPDX-License-Identifier: Apache-2.0

// Package fieldindex declares the field indexes of the cache: every question that a controller or webhook asks about many
// objects is answered by one of them, never by reading a full list.
package fieldindex

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// The names of the indexes. Those that are field paths serve uncached reads as well, because the CRDs declare them
// selectable.
const (
	// ServerBySystemUUID finds the server of a machine, by lower-case UUID.
	ServerBySystemUUID = "spec.systemUUID"
	// ServerByBMC finds the servers behind a BMC.
	ServerByBMC = "spec.bmcRef.name"
	// ServerByClaimName and ServerByClaimNamespace find the server that a claim is written on.
	ServerByClaimName      = "spec.serverClaimRef.name"
	ServerByClaimNamespace = "spec.serverClaimRef.namespace"
	// ServerByClaim finds the same by "namespace/name" in the cache.
	ServerByClaim = "claim"
	// ServerByClaimUID finds the server that records a claim's UID as its holder.
	ServerByClaimUID = "claim-uid"
	// ServerByState finds the servers in a state.
	ServerByState = "status.state"
	// BootConfigurationByServer finds the boot configurations for a server.
	BootConfigurationByServer = "spec.serverRef.name"
	// ClaimByServer finds the claims that name a server.
	ClaimByServer = "spec.serverRef.name"
	// ClaimByBinding finds claims by Pending (no serverRef recorded as bound) or Bound.
	ClaimByBinding = "binding"
	// ClaimByIgnition finds the claims that use an ignition secret.
	ClaimByIgnition = "spec.ignitionSecretRef.name"
	// BMCByEndpoint finds the BMC made from an endpoint.
	BMCByEndpoint = "spec.endpointRef.name"
	// BMCBySecret finds the BMCs that log in with a BMCSecret.
	BMCBySecret = "spec.bmcSecretRef.name"
	// BMCByAddress finds BMCs by the AddressKey of their inline access.
	BMCByAddress = "access"
	// BMCByMAC finds BMCs by the MACKey of their inline access.
	BMCByMAC = "access-mac"
	// EndpointByMAC finds an endpoint by normalised MAC address.
	EndpointByMAC = "spec.macAddress"
	// EndpointByIP finds endpoints by the IPKey of their address.
	EndpointByIP = "spec.ip"
)

// Values of ClaimByBinding.
const (
	ClaimPending = "Pending"
	ClaimBound   = "Bound"
)

// ClaimKey is the value of ServerByClaim for a claim.
func ClaimKey(namespace, name string) string { return namespace + "/" + name }

// MACKey brings a MAC address into the form in which EndpointByMAC holds it: lower-case hex digits alone.
func MACKey(mac string) string {
	return strings.ToLower(strings.NewReplacer(":", "", "-", "", ".", "", " ", "").Replace(mac))
}

// IPKey brings an IP address into one spelling: IPv6 shortened, IPv4 never mapped. What is no address is kept as it is.
func IPKey(ip string) string {
	address, err := netip.ParseAddr(ip)
	if err != nil {
		return ip
	}
	return address.Unmap().String()
}

// AddressKey is the value of BMCByAddress for an address and the protocol by which it is spoken to: "[ip]:port", with the
// scheme's usual port where none is set.
func AddressKey(ip string, protocol v1alpha1.Protocol) string {
	port := protocol.Port
	switch {
	case port != 0:
	case protocol.Scheme == v1alpha1.ProtocolSchemeHTTP:
		port = 80
	default:
		port = 443
	}
	return fmt.Sprintf("[%s]:%d", IPKey(ip), port)
}

// Register declares all indexes. It must be called once, before the cache starts.
func Register(ctx context.Context, indexer client.FieldIndexer) error {
	for _, i := range all() {
		if err := indexer.IndexField(ctx, i.object, i.name, i.values); err != nil {
			return fmt.Errorf("index %s: %w", i.name, err)
		}
	}
	return nil
}

type fieldIndex struct {
	object client.Object
	name   string
	values client.IndexerFunc
}

func all() []fieldIndex { return slices.Concat(servers(), claims(), managers()) }

func servers() []fieldIndex {
	return []fieldIndex{
		{&v1alpha1.Server{}, ServerBySystemUUID, ofServer(func(s *v1alpha1.Server) string { return strings.ToLower(s.Spec.SystemUUID) })},
		{&v1alpha1.Server{}, ServerByState, ofServer(func(s *v1alpha1.Server) string { return string(s.Status.State) })},
		{&v1alpha1.Server{}, ServerByClaimUID, ofServer(func(s *v1alpha1.Server) string { return s.Annotations[v1alpha1.ClaimUIDAnnotation] })},
		{&v1alpha1.Server{}, ServerByBMC, ofServer(func(s *v1alpha1.Server) string {
			if s.Spec.BMCRef == nil {
				return ""
			}
			return s.Spec.BMCRef.Name
		})},
		{&v1alpha1.Server{}, ServerByClaim, ofServer(func(s *v1alpha1.Server) string {
			if s.Spec.ServerClaimRef == nil {
				return ""
			}
			return ClaimKey(s.Spec.ServerClaimRef.Namespace, s.Spec.ServerClaimRef.Name)
		})},
	}
}

func claims() []fieldIndex {
	return []fieldIndex{
		{&v1alpha1.ServerBootConfiguration{}, BootConfigurationByServer, ofBoot},
		{&v1alpha1.ServerClaim{}, ClaimByServer, ofClaim(func(c *v1alpha1.ServerClaim) string {
			if c.Spec.ServerRef == nil {
				return ""
			}
			return c.Spec.ServerRef.Name
		})},
		{&v1alpha1.ServerClaim{}, ClaimByBinding, ofClaim(func(c *v1alpha1.ServerClaim) string {
			if c.Status.Phase == v1alpha1.PhaseBound {
				return ClaimBound
			}
			return ClaimPending
		})},
		{&v1alpha1.ServerClaim{}, ClaimByIgnition, ofClaim(func(c *v1alpha1.ServerClaim) string {
			if c.Spec.IgnitionSecretRef == nil {
				return ""
			}
			return c.Spec.IgnitionSecretRef.Name
		})},
	}
}

// managers are the indexes of management controllers and of the endpoints at which they are found.
func managers() []fieldIndex {
	return []fieldIndex{
		{&v1alpha1.BMC{}, BMCByEndpoint, ofBMC(func(b *v1alpha1.BMC) string {
			if b.Spec.EndpointRef == nil {
				return ""
			}
			return b.Spec.EndpointRef.Name
		})},
		{&v1alpha1.BMC{}, BMCBySecret, ofBMC(func(b *v1alpha1.BMC) string { return b.Spec.BMCSecretRef.Name })},
		{&v1alpha1.BMC{}, BMCByAddress, ofBMC(func(b *v1alpha1.BMC) string {
			if b.Spec.Access == nil {
				return ""
			}
			return AddressKey(b.Spec.Access.IP, b.Spec.Protocol)
		})},
		{&v1alpha1.BMC{}, BMCByMAC, ofBMC(func(b *v1alpha1.BMC) string {
			if b.Spec.Access == nil {
				return ""
			}
			return MACKey(b.Spec.Access.MACAddress)
		})},
		{&v1alpha1.Endpoint{}, EndpointByMAC, func(o client.Object) []string {
			e, ok := o.(*v1alpha1.Endpoint)
			if !ok {
				return nil
			}
			return oneOrNone(MACKey(e.Spec.MACAddress))
		}},
		{&v1alpha1.Endpoint{}, EndpointByIP, func(o client.Object) []string {
			e, ok := o.(*v1alpha1.Endpoint)
			if !ok {
				return nil
			}
			return oneOrNone(IPKey(e.Spec.IP))
		}},
	}
}

func oneOrNone(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

func ofServer(value func(*v1alpha1.Server) string) client.IndexerFunc {
	return func(o client.Object) []string {
		s, ok := o.(*v1alpha1.Server)
		if !ok {
			return nil
		}
		return oneOrNone(value(s))
	}
}

func ofClaim(value func(*v1alpha1.ServerClaim) string) client.IndexerFunc {
	return func(o client.Object) []string {
		c, ok := o.(*v1alpha1.ServerClaim)
		if !ok {
			return nil
		}
		return oneOrNone(value(c))
	}
}

func ofBMC(value func(*v1alpha1.BMC) string) client.IndexerFunc {
	return func(o client.Object) []string {
		b, ok := o.(*v1alpha1.BMC)
		if !ok {
			return nil
		}
		return oneOrNone(value(b))
	}
}

func ofBoot(o client.Object) []string {
	c, ok := o.(*v1alpha1.ServerBootConfiguration)
	if !ok {
		return nil
	}
	return oneOrNone(c.Spec.ServerRef.Name)
}
