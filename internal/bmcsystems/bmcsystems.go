// SPDX-License-Identifier: Apache-2.0

// Package bmcsystems reads the annotations of a BMC that say what its systems do not show of themselves.
package bmcsystems

import (
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/internal/uuids"
)

// Assignment is the UUID that an operator gave to a system which shows none, and what proves that system. The UUID is in
// lower case, the MAC address in lower case with colons; one of SerialNumber and MAC may be empty.
type Assignment struct {
	UUID         string `yaml:"uuid"`
	SerialNumber string `yaml:"serial"`
	MAC          string `yaml:"mac"`
}

// Assignments are assigned UUIDs by the key of their system's URI; see Key.
type Assignments map[string]Assignment

// MACs are the MAC addresses of hosts by the key of their system's URI; see Key.
type MACs map[string][]string

// Bounds of what an annotation may hold. One BMC has four systems at most, as far as any is known.
const (
	maxText    = 16 << 10
	maxSystems = 64
	maxMACs    = 64
	maxSerial  = 128
)

var uuidForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// Key brings a system's URI into one spelling: BMCs write one link in two cases, with a slash at the end and without.
func Key(uri string) string { return strings.ToLower(strings.TrimRight(uri, "/")) }

// ParseAssignments reads the annotation policy.metalaw.dev/system-uuids. An error means that no part of it counts.
func ParseAssignments(text string) (Assignments, error) {
	stated, err := parse[Assignment](text)
	if err != nil {
		return nil, err
	}
	all, of := Assignments{}, map[string]string{}
	for uri, a := range stated {
		if a, err = a.cleaned(); err != nil {
			return nil, fmt.Errorf("%s: %w", uri, err)
		}
		for _, spelling := range uuids.Spellings(a.UUID) {
			if other, taken := of[spelling]; taken && other != uri {
				return nil, fmt.Errorf("%s: its UUID %s is that of %s too; give each system its own", max(uri, other), a.UUID, min(uri, other))
			}
			of[spelling] = uri
		}
		all[Key(uri)] = a
	}
	return all, nil
}

func (a Assignment) cleaned() (Assignment, error) {
	a.UUID, a.SerialNumber = strings.ToLower(strings.TrimSpace(a.UUID)), strings.TrimSpace(a.SerialNumber)
	switch {
	case !uuidForm.MatchString(a.UUID):
		return a, fmt.Errorf("uuid %q is no UUID like 4c4c4544-0051-3610-8052-b4c04f4d4d32", a.UUID)
	case uuids.Shared(a.UUID):
		return a, fmt.Errorf("uuid %s is what firmware shows that was never given one", a.UUID)
	case len(a.SerialNumber) > maxSerial || strings.ContainsFunc(a.SerialNumber, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return a, fmt.Errorf("serial is no text of at most %d characters in one line", maxSerial)
	case a.SerialNumber == "" && a.MAC == "":
		return a, errors.New("it names neither serial nor mac, by which the system is recognised")
	case a.MAC == "":
		return a, nil
	}
	mac, err := cleanMAC(a.MAC)
	a.MAC = mac
	return a, err
}

// ParseMACs reads the annotation policy.metalaw.dev/host-macs. An error means that no part of it counts.
func ParseMACs(text string) (MACs, error) {
	stated, err := parse[[]string](text)
	if err != nil {
		return nil, err
	}
	all, of := MACs{}, map[string]string{}
	for uri, macs := range stated {
		if len(macs) == 0 || len(macs) > maxMACs {
			return nil, fmt.Errorf("%s: it lists %d MAC addresses; list 1 to %d", uri, len(macs), maxMACs)
		}
		var clean []string
		for _, raw := range macs {
			mac, err := cleanMAC(raw)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", uri, err)
			}
			if _, taken := of[mac]; taken {
				return nil, fmt.Errorf("%s: MAC address %s is listed twice", uri, mac)
			}
			of[mac] = uri
			clean = append(clean, mac)
		}
		all[Key(uri)] = clean
	}
	return all, nil
}

// parse reads a YAML object whose keys are URIs of systems.
func parse[T any](text string) (map[string]T, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("it has %d bytes and may have %d", len(text), maxText)
	}
	stated := map[string]T{}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&stated); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("it is no YAML object by the URIs of systems: %w", oneLine(err))
	}
	if len(stated) > maxSystems {
		return nil, fmt.Errorf("it names %d systems and may name %d", len(stated), maxSystems)
	}
	seen := map[string]bool{}
	for uri := range stated {
		switch {
		case !strings.HasPrefix(uri, "/redfish/") || strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || r == 0x7f }):
			return nil, fmt.Errorf("%q is no URI of a system like /redfish/v1/Systems/1", uri)
		case seen[Key(uri)]:
			return nil, fmt.Errorf("%s is named twice", Key(uri))
		}
		seen[Key(uri)] = true
	}
	return stated, nil
}

// oneLine makes an error of the YAML library fit for a condition.
func oneLine(err error) error { return errors.New(strings.Join(strings.Fields(err.Error()), " ")) }

// cleanMAC brings an EUI-48 address of one interface to lower case with colons.
func cleanMAC(raw string) (string, error) {
	mac, err := net.ParseMAC(strings.TrimSpace(raw))
	if err != nil || len(mac) != 6 || mac[0]&1 != 0 || !slices.ContainsFunc(mac, func(b byte) bool { return b != 0 }) {
		return "", fmt.Errorf("mac %q is no MAC address of an interface like 5c:25:73:00:00:01", raw)
	}
	return mac.String(), nil
}

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
