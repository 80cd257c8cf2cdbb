// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/uuids"
)

// Fleet is what wipe.hidden: Fail would do to servers, by what was last reported of them.
type Fleet struct {
	// Stops are the servers with hidden storage that nothing excuses, each with what it is.
	Stops []string
	// Unknown are the servers of which no agent said whether they have any.
	Unknown []string
}

// FleetOf judges servers by their inventories, under the excuses that a policy names for each.
func FleetOf(servers []v1alpha1.Server, inventories []policyv1alpha1.ServerInventory, excused func(*v1alpha1.Server) []string) Fleet {
	var f Fleet
	find := Inventories(inventories)
	for i := range servers {
		s := &servers[i]
		inv := find(s)
		open := Last(inv, excused(s)).Open()
		switch {
		case len(open) > 0:
			f.Stops = append(f.Stops, s.Name+" ("+Words(open[:1])+")")
		case !Known(inv):
			f.Unknown = append(f.Unknown, s.Name)
		}
	}
	return f
}

// Inventories finds the inventory of a server among some; nil where there is none.
func Inventories(all []policyv1alpha1.ServerInventory) func(*v1alpha1.Server) *policyv1alpha1.ServerInventory {
	byName := make(map[string]*policyv1alpha1.ServerInventory, len(all))
	for i := range all {
		byName[all[i].Name] = &all[i]
	}
	return func(s *v1alpha1.Server) *policyv1alpha1.ServerInventory {
		for _, name := range uuids.Spellings(s.Spec.SystemUUID) {
			if inv := byName[name]; inv != nil {
				return inv
			}
		}
		return nil
	}
}
