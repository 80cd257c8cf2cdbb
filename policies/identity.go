// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"strings"
)

// Words of the fact bmc.identity.
const (
	// IdentitySame: the system that answers is the one that the Server names.
	IdentitySame = "Same"
	// IdentityOther: another system answers in its place.
	IdentityOther = "Other"
	// IdentityUnknown: the BMC does not answer, or the answer does not say which system it is.
	IdentityUnknown = unknown
)

// SystemReading is the last word of a server's BMC, in the words of the facts.
type SystemReading struct {
	// Reachable says that the last read succeeded; where it did not, nothing else here counts.
	Reachable   bool
	Power       string
	Health      string
	Identity    string
	OverrideSet bool
	// NoOverride says that the BMC shows no boot override that could be set.
	NoOverride bool
	// Faulty names the parts of the hardware that the BMC reports as critical; empty where it names none.
	Faulty []string
	// Harmless says that the BMC names what is critical, and that none of it is hardware.
	Harmless bool
}

// IdentityOf is the fact about a system that answers: same says whether it is the one that the Server names, and uuid is
// the UUID that it gives. A BMC that starts often knows its system without its UUID, or with an empty one; that is no
// other machine.
func IdentityOf(same bool, uuid string) string {
	switch {
	case same:
		return IdentitySame
	case namesNobody(uuid):
		return IdentityUnknown
	default:
		return IdentityOther
	}
}

var uuidDigits = strings.NewReplacer("-", "", "{", "", "}", "")

// namesNobody says that a UUID is left out, or is all zeros or all ones.
func namesNobody(uuid string) bool {
	text := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(uuid)), "urn:uuid:")
	digits := uuidDigits.Replace(text)
	return strings.Trim(digits, "0") == "" || strings.Trim(digits, "f") == ""
}

// bmcFacts takes power, health and boot override only from the Server's own machine. What another one says of itself is
// true of that one alone.
func (o Observation) bmcFacts() BMCFacts {
	f := BMCFacts{Power: unknown, Health: unknown, Identity: IdentityUnknown}
	if !o.System.Reachable {
		return f
	}
	f.Reachable, f.Identity = true, cmp.Or(o.System.Identity, unknown)
	if f.Identity == IdentitySame {
		f.Power, f.Health, f.OverrideSet = cmp.Or(o.System.Power, unknown), o.health(), o.System.OverrideSet
	}
	return f
}
