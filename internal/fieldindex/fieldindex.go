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

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/machineid"
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
	// InventoryByDisk finds the inventories of machines that reported a disk, or are remembered to have it, by one of its DiskKeys.
	InventoryByDisk = "disk"
	// InventoryByMachine finds the inventories of machines that show a serial number or an address, by machineid.Keys.
	InventoryByMachine = "machine"
)

// Values of ClaimByBinding.
const (
	ClaimPending = "Pending"
	ClaimBound   = "Bound"
)

// ClaimKey is the value of ServerByClaim for a claim.
func ClaimKey(namespace, name string) string { return namespace + "/" + name }

// DiskKeys are the values of InventoryByDisk for a disk. What it does not have, and what identifies no disk, gives none.
func DiskKeys(wwid, serial string) []string {
	var keys []string
	if policyv1alpha1.DiskIdentifies(wwid) {
		keys = append(keys, "wwid "+wwid)
	}
	if policyv1alpha1.DiskIdentifies(serial) {
		keys = append(keys, "serial "+serial)
	}
	return keys
}

// DisksOf are the values of InventoryByDisk for an inventory.
func DisksOf(o client.Object) []string {
	inventory, ok := o.(*policyv1alpha1.ServerInventory)
	if !ok {
		return nil
	}
	var keys []string
	if inventory.Report != nil {
		for i := range inventory.Report.Data.Storage {
			d := &inventory.Report.Data.Storage[i]
			keys = append(keys, DiskKeys(d.WWID, d.Serial)...)
		}
	}
	if inventory.Custody != nil {
		for _, d := range inventory.Custody.Disks {
			keys = append(keys, DiskKeys(d.WWID, d.Serial)...)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// MachinesOf are the values of InventoryByMachine for an inventory.
func MachinesOf(o client.Object) []string {
	inventory, ok := o.(*policyv1alpha1.ServerInventory)
	if !ok {
		return nil
	}
	return machineid.KeysOf(inventory)
}

var macDigits = strings.NewReplacer(":", "", "-", "", ".", "", " ", "")

// MACKey brings a MAC address into the form in which EndpointByMAC holds it: lower-case hex digits alone.
func MACKey(mac string) string {
	return strings.ToLower(macDigits.Replace(mac))
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

// index finds objects of a kind by a value; one whose value is empty is not found by it.
func index[T client.Object](object T, name string, value func(T) string) fieldIndex {
	return fieldIndex{object, name, func(o client.Object) []string {
		typed, ok := o.(T)
		if !ok {
			return nil
		}
		if found := value(typed); found != "" {
			return []string{found}
		}
		return nil
	}}
}

func all() []fieldIndex {
	return []fieldIndex{
		{&policyv1alpha1.ServerInventory{}, InventoryByDisk, DisksOf},
		{&policyv1alpha1.ServerInventory{}, InventoryByMachine, MachinesOf},
		index(&v1alpha1.Server{}, ServerBySystemUUID, func(s *v1alpha1.Server) string { return strings.ToLower(s.Spec.SystemUUID) }),
		index(&v1alpha1.Server{}, ServerByState, func(s *v1alpha1.Server) string { return string(s.Status.State) }),
		index(&v1alpha1.Server{}, ServerByClaimUID, func(s *v1alpha1.Server) string { return s.Annotations[v1alpha1.ClaimUIDAnnotation] }),
		index(&v1alpha1.Server{}, ServerByBMC, func(s *v1alpha1.Server) string { return nameOf(s.Spec.BMCRef) }),
		index(&v1alpha1.Server{}, ServerByClaim, func(s *v1alpha1.Server) string {
			if s.Spec.ServerClaimRef == nil {
				return ""
			}
			return ClaimKey(s.Spec.ServerClaimRef.Namespace, s.Spec.ServerClaimRef.Name)
		}),
		index(&v1alpha1.ServerBootConfiguration{}, BootConfigurationByServer, func(b *v1alpha1.ServerBootConfiguration) string {
			return b.Spec.ServerRef.Name
		}),
		index(&v1alpha1.ServerClaim{}, ClaimByServer, func(c *v1alpha1.ServerClaim) string { return nameOf(c.Spec.ServerRef) }),
		index(&v1alpha1.ServerClaim{}, ClaimByBinding, func(c *v1alpha1.ServerClaim) string {
			if c.Status.Phase == v1alpha1.PhaseBound {
				return ClaimBound
			}
			return ClaimPending
		}),
		index(&v1alpha1.ServerClaim{}, ClaimByIgnition, func(c *v1alpha1.ServerClaim) string { return nameOf(c.Spec.IgnitionSecretRef) }),
		index(&v1alpha1.BMC{}, BMCByEndpoint, func(b *v1alpha1.BMC) string { return nameOf(b.Spec.EndpointRef) }),
		index(&v1alpha1.BMC{}, BMCBySecret, func(b *v1alpha1.BMC) string { return b.Spec.BMCSecretRef.Name }),
		index(&v1alpha1.BMC{}, BMCByAddress, func(b *v1alpha1.BMC) string {
			if b.Spec.Access == nil || b.Spec.Access.IP == "" {
				return ""
			}
			return AddressKey(b.Spec.Access.IP, b.Spec.Protocol)
		}),
		index(&v1alpha1.BMC{}, BMCByMAC, func(b *v1alpha1.BMC) string {
			if b.Spec.Access == nil {
				return ""
			}
			return MACKey(b.Spec.Access.MACAddress)
		}),
		index(&v1alpha1.Endpoint{}, EndpointByMAC, func(e *v1alpha1.Endpoint) string { return MACKey(e.Spec.MACAddress) }),
		index(&v1alpha1.Endpoint{}, EndpointByIP, func(e *v1alpha1.Endpoint) string { return IPKey(e.Spec.IP) }),
	}
}

// nameOf is the name in a reference; empty where there is none.
func nameOf(ref *corev1.LocalObjectReference) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}
