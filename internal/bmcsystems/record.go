// SPDX-License-Identifier: Apache-2.0

package bmcsystems

import (
	"slices"
	"strings"
)

// Record is what was read of the hardware of a machine, by which an assignment of its UUID is judged. A former assignment is none:
// it is what somebody wrote.
type Record struct {
	SerialNumbers, MACs []string
}

// Empty reports that nothing was read of the machine.
func (r Record) Empty() bool { return len(r.SerialNumbers) == 0 && len(r.MACs) == 0 }

// HasSerial reports that an assignment names a serial number of the machine.
func (r Record) HasSerial(a Assignment) bool { return has(r.SerialNumbers, a.SerialNumber) }

// HasMAC reports that an assignment names a MAC address of the machine.
func (r Record) HasMAC(a Assignment) bool { return has(r.MACs, a.MAC) }

// Contradicts reports that an assignment names other hardware: something of it can be compared, and nothing of that is the machine's.
func (r Record) Contradicts(a Assignment) bool {
	told := a.SerialNumber != "" && len(r.SerialNumbers) > 0 || a.MAC != "" && len(r.MACs) > 0
	return told && !r.HasSerial(a) && !r.HasMAC(a)
}

func has(all []string, one string) bool {
	return one != "" && slices.ContainsFunc(all, func(known string) bool { return strings.EqualFold(known, one) })
}
