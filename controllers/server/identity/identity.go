// SPDX-License-Identifier: Apache-2.0

// Package identity reads what a BMC shows of its machine, and decides what the inventory keeps of it before an agent
// is booted.
package identity

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/internal/machineid"
	"github.com/metalaw/metalaw/internal/uuids"
	"github.com/metalaw/metalaw/redfish"
)

const (
	// MaxAge is how old a reading may be that is stored before a boot.
	MaxAge = time.Minute
	// keepFor is how long a reading that says the same stands for newer ones.
	keepFor = 10 * time.Minute
	// maxAddresses is what the inventory stores.
	maxAddresses = 256
)

// Shown is what a BMC shows of a machine.
type Shown struct {
	// UUID is that of the system; empty where the BMC shows none.
	UUID string
	// Serials and Addresses tell machines apart.
	Serials, Addresses []string
	// Incomplete says that an interface could not be read.
	Incomplete bool
}

// Cache reads it in the background.
type Cache = hardware.Cache[Shown]

// NewCache makes a Cache that calls woken when a reading ends for which a server waits.
func NewCache(clients hardware.Clients, woken func(name string)) *Cache {
	return hardware.NewCache(hardware.Options[Shown]{Clients: clients, Read: read, Same: same, Wake: woken})
}

func same(a, b Shown) bool {
	return a.UUID == b.UUID && a.Incomplete == b.Incomplete && slices.Equal(a.Serials, b.Serials) &&
		slices.Equal(a.Addresses, b.Addresses)
}

// read asks for the system and its interfaces. A BMC that shows the system and fails at its interfaces shows no
// address.
func read(ctx context.Context, bmc redfish.BMC, target hardware.Target) (Shown, error) {
	system, err := bmc.SystemDetail(ctx, target.URI)
	incomplete := err != nil
	if err != nil {
		if system, err = bmc.System(ctx, target.URI); err != nil {
			return Shown{}, err
		}
	}
	return shown(system, incomplete), nil
}

func shown(system redfish.SystemSnapshot, incomplete bool) Shown {
	id := system.Identity
	var addresses []string
	for _, nic := range system.NICs {
		addresses = append(addresses, nic.MACAddress)
	}
	addresses = machineid.Addresses(addresses...)
	incomplete = incomplete || system.NICsIncomplete || len(addresses) > maxAddresses
	return Shown{UUID: id.UUID, Serials: machineid.ShownSerials(id.Manufacturer, id.SerialNumber, id.SKU),
		Addresses: addresses[:min(len(addresses), maxAddresses)], Incomplete: incomplete}
}

// Input is what is known before an agent is booted.
type Input struct {
	// UUID is that of the server.
	UUID string
	// Stored is what the inventory keeps; nil where it keeps nothing.
	Stored *policyv1alpha1.BMCIdentity
	// Reading is the last one, and Fresh says that it is young enough.
	Reading hardware.Reading[Shown]
	Fresh   bool
	Now     time.Time
}

// Output is what becomes of it.
type Output struct {
	// Store is what the inventory is to keep; nil where what it keeps stands.
	Store *policyv1alpha1.BMCIdentity
	// Waits says what the boot waits for; empty where it waits for nothing.
	Waits string
}

// Decide says what is stored before the boot. A BMC that shows neither a serial number nor an address is stored as
// such.
func Decide(in Input) Output {
	switch {
	case !in.Reading.Reachable() || !in.Fresh:
		return Output{Waits: "the BMC to show the serial number and the addresses of the machine"}
	case in.Reading.Value.UUID != "" && !uuids.Same(in.Reading.Value.UUID, in.UUID):
		return Output{Waits: "the BMC to show the machine with UUID " + in.UUID + "; it shows " + in.Reading.Value.UUID}
	}
	v := in.Reading.Value
	age := time.Duration(0)
	if in.Stored != nil {
		age = in.Now.Sub(in.Stored.ReadAt.Time)
	}
	if s := in.Stored; s != nil && slices.Equal(s.Serials, v.Serials) && slices.Equal(s.PhysicalAddresses, v.Addresses) &&
		s.Incomplete == v.Incomplete && age >= 0 && age < keepFor {
		return Output{}
	}
	return Output{Store: &policyv1alpha1.BMCIdentity{Serials: v.Serials, PhysicalAddresses: v.Addresses,
		Incomplete: v.Incomplete, ReadAt: metav1.NewMicroTime(in.Reading.At)}}
}

// Of is what an inventory keeps of the identity, made where it keeps nothing.
func Of(i *policyv1alpha1.ServerInventory) *policyv1alpha1.MachineIdentity {
	if i.Identity == nil {
		i.Identity = &policyv1alpha1.MachineIdentity{}
	}
	return i.Identity
}
