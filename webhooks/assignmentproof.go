// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/internal/bmcsystems"
	"github.com/metalaw/metalaw/internal/uuids"
	"github.com/metalaw/metalaw/policies"
)

// onRecord is what is known of the machine with an assigned UUID.
type onRecord struct {
	hardware bmcsystems.Record
	// server is false where only an inventory remembers the machine.
	server bool
	// data says why the machine is taken to hold somebody's data; empty where it is not.
	data string
	// names are the objects that know the machine, for people; none where nothing does.
	names []string
}

// misfit says why an entry does not name the machine that its UUID stands for; empty where it does, or the machine is not known.
// It compares the entry with the hardware that was recorded, and never with a former entry: two changes in turn would else lead
// from any machine to any other. Beside another MAC address a serial number proves the machine only in its place, for a
// card that was exchanged, because the nodes of one blade share it. stays says that the entry keeps its UUID and its own serial number.
func misfit(known onRecord, a bmcsystems.Assignment, stays bool) string {
	bySerial := known.hardware.HasSerial(a) && (stays || a.MAC == "" || len(known.hardware.MACs) == 0)
	who := strings.Join(known.names, " and ")
	switch {
	case len(known.names) == 0, known.hardware.HasMAC(a), bySerial:
		return ""
	case !known.hardware.Empty():
		serials, macs := strings.Join(known.hardware.SerialNumbers, ", "), strings.Join(known.hardware.MACs, ", ")
		return fmt.Sprintf("%s knows the machine by %s, and the entry names other hardware; "+
			"keep its UUID for that machine alone", who, bmcsystems.Words(serials, macs))
	case known.data != "":
		return fmt.Sprintf("%s stands for it, its serial and mac are not known, and %s; keep its UUID for that machine alone", who, known.data)
	case known.server:
		return "" // nothing was read of it yet, so nothing is known that another machine could inherit
	}
	return fmt.Sprintf("%s has it, and does not know the machine by this serial or mac", who)
}

// sharesSerial reports that another entry of the annotation names the same serial number.
func sharesSerial(all bmcsystems.Assignments, uri string) bool {
	for other, a := range all {
		if other != uri && strings.EqualFold(a.SerialNumber, all[uri].SerialNumber) {
			return true
		}
	}
	return false
}

// onRecord reads what Servers and inventories know of a machine, whichever BMC they name.
func (l *bmcRules) onRecord(ctx context.Context, uuid string) (known onRecord, err error) {
	note := func(name string, r bmcsystems.Record) {
		known.names = append(known.names, name)
		known.hardware.SerialNumbers = append(known.hardware.SerialNumbers, r.SerialNumbers...)
		known.hardware.MACs = append(known.hardware.MACs, r.MACs...)
	}
	servers, err := l.standIns(ctx, uuid)
	if err != nil {
		return known, err
	}
	for _, s := range servers {
		note(fmt.Sprintf("Server %q", s.Name), policies.OnRecord(s, nil))
		known.server = true
		if why := holdsData(s, nil); why != "" {
			known.data = why
		}
	}
	for _, name := range uuids.Spellings(uuid) {
		inventory, err := get[policyv1alpha1.ServerInventory](ctx, l.lookup, name)
		if err != nil {
			return known, err
		}
		if inventory == nil {
			continue
		}
		note(fmt.Sprintf("ServerInventory %q", name), policies.OnRecord(nil, inventory))
		if known.data == "" && policies.MayHoldData(nil, inventory) {
			known.data = inventoryHoldsData
		}
	}
	known.hardware.SerialNumbers = slices.Compact(known.hardware.SerialNumbers)
	return known, nil
}
