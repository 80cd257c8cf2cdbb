// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"reflect"
	"time"

	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/internal/bmcsystems"
	"github.com/metalaw/metalaw/redfish"
)

// Reading is what one read of a BMC gives: itself, and the identities of its systems.
type Reading struct {
	Manager redfish.ManagerSnapshot
	// Systems are in the BMC's order.
	Systems []System
	// TakenAt is when the BMC was asked, which may be before the read: what found it hands its reading over.
	TakenAt time.Time
}

// System is one system behind a BMC.
type System struct {
	URI      string
	Identity redfish.Identity
	// MACs are the addresses of its interfaces, read where it shows no UUID, by which it may be proven.
	MACs []string
	// Assignment is the UUID that it bears by annotation, and Refused says why it bears none; see assign.
	Assignment bmcsystems.Assignment
	Refused    string
	// Err says why the system could not be read; its identity is then unknown, which does not mean that it is gone.
	Err string
}

// Same says that two readings are equal in everything that is acted upon.
func Same(a, b Reading) bool {
	a.TakenAt = b.TakenAt
	return reflect.DeepEqual(a, b)
}

// identityFor is how long the identity of a system is taken for granted; a read of the BMC is one request in between. Each
// read of its Server compares it, and a difference makes the BMC forget it.
const identityFor = time.Hour

// reader reads BMCs and remembers the identities of their systems.
type reader struct {
	kept[memory] // by the BMC's key

	now func() time.Time
}

type memory struct {
	from    origin
	systems map[string]remembered
}

// origin is what must be the same for a memory to hold: the way by which the BMC is reached, and the BMC that answers,
// not restarted in between.
type origin struct {
	way          [32]byte
	uuid, serial string
	lastReset    time.Time
}

type remembered struct {
	identity redfish.Identity
	at       time.Time
}

func newReader(now func() time.Time) *reader { return &reader{now: now} }

// read is the Read of the cache.
func (r *reader) read(ctx context.Context, bmc redfish.BMC, target hardware.Target) (Reading, error) {
	manager, err := bmc.Manager(ctx)
	if err != nil {
		r.forget(target.Key) // hardware is exchanged while a BMC is away
		return Reading{}, err
	}
	from := origin{wayTo(target), manager.UUID, manager.SerialNumber, manager.LastResetTime.UTC()}
	known := map[string]remembered{}
	if m := r.get(target.Key); m.from == from {
		maps.Copy(known, m.systems)
	}
	for _, listed := range manager.Listed {
		if listed.Identity.UUID != "" { // a list may show less than the system itself
			known[listed.URI] = remembered{identity: listed.Identity, at: listed.TakenAt}
		}
	}
	reading := Reading{Manager: manager, TakenAt: manager.TakenAt}
	reading.Manager.Listed, reading.Manager.TakenAt = nil, time.Time{} // the rest of the list is not the BMC's
	for _, uri := range manager.SystemURIs {
		if old, ok := known[uri]; ok && r.now().Sub(old.at) < identityFor {
			reading.Systems = append(reading.Systems, System{URI: uri, Identity: old.identity})
			continue
		}
		system, err := bmc.System(ctx, uri)
		if err != nil {
			reading.Systems = append(reading.Systems, System{URI: uri, Err: err.Error()})
			continue
		}
		if system.Identity.UUID != "" {
			known[uri] = remembered{identity: system.Identity, at: r.now()}
			reading.Systems = append(reading.Systems, System{URI: uri, Identity: system.Identity})
			continue
		}
		reading.Systems = append(reading.Systems, nameless(ctx, bmc, uri)) // not remembered: iLO shows null for some seconds after its start
	}
	for _, uri := range manager.Unreadable {
		reading.Systems = append(reading.Systems, System{URI: uri, Err: "the BMC lists it and does not show it"})
	}
	r.put(target.Key, memory{from: from, systems: known})
	return reading, nil
}

// nameless reads what else may prove a system that shows no UUID.
func nameless(ctx context.Context, bmc redfish.BMC, uri string) System {
	detail, err := bmc.SystemDetail(ctx, uri)
	if err != nil {
		return System{URI: uri, Err: err.Error()}
	}
	s := System{URI: uri, Identity: detail.Identity}
	for _, nic := range detail.NICs {
		s.MACs = append(s.MACs, nic.MACAddress)
	}
	return s
}

// wayTo is a digest of the way by which a BMC is reached.
func wayTo(t hardware.Target) [32]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%q %x %q %q", t.Key, t.Endpoint.Digest(), t.Credentials.Username, t.Credentials.Password))
}
