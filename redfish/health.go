// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// HealthPart is a part of a machine that its BMC reports as critical.
type HealthPart struct {
	Name string
	// Hardware is false for what no broken part stands for: an intrusion sensor, a log, a licence.
	Hardware bool
}

// Bounds of what is told of a system's health.
const (
	maxHealthParts = 8
	maxHealthDepth = 6
	maxPartName    = 64
	maxChassis     = 4
	unnamedPart    = "unnamed"
)

// criticalParts names what a critical system reports as critical, as far as its own document says; else its chassis are read,
// which is one more request for each. known is false where one fails and no broken part of the hardware is named.
func (o *operation) criticalParts(body []byte) (parts []HealthPart, known bool) {
	var system map[string]any
	if json.Unmarshal(body, &system) != nil {
		return nil, true
	}
	if parts = partsOf(system, ""); len(parts) > 0 {
		return parts, true
	}
	var links struct {
		Links object[struct{ Chassis list[link] }]
	}
	if json.Unmarshal(body, &links) != nil || len(links.Links.Value.Chassis.Values) == 0 {
		return nil, true
	}
	all := links.Links.Value.Chassis.Values
	known = true
	for _, uri := range all[:min(len(all), maxChassis)] {
		var chassis map[string]any
		_, err := o.get(string(uri), &chassis)
		known = known && (err == nil || statusIs(err, http.StatusNotFound))
		parts = append(parts, partsOf(chassis, "Chassis")...)
	}
	parts = hardwareFirst(parts)
	return parts, known || len(parts) > 0 && parts[0].Hardware
}

// hardwareFirst sorts parts, so that the bound on their number leaves out none that is broken in favour of one that is not.
func hardwareFirst(parts []HealthPart) []HealthPart {
	slices.SortFunc(parts, func(a, b HealthPart) int {
		switch {
		case a.Hardware == b.Hardware:
			return strings.Compare(a.Name, b.Name)
		case a.Hardware:
			return -1
		}
		return 1
	})
	parts = slices.Compact(parts)
	return parts[:min(len(parts), maxHealthParts)]
}

// partsOf looks for critical parts in one document: objects with a Status (MemorySummary, AggregateHealthStatus of HPE), vendor
// roll-ups (MemoryRollupStatus of Dell), Status.Conditions, and the intrusion sensor of a chassis. self names the document
// where it is critical itself and nothing in it says why; empty for one that is known to be.
func partsOf(doc map[string]any, self string) []HealthPart {
	found := map[string]bool{}
	status, _ := doc["Status"].(map[string]any)
	for _, c := range listOf(status["Conditions"]) {
		if critical(c["Severity"]) {
			found[originOf(c)] = true
		}
	}
	if security, _ := doc["PhysicalSecurity"].(map[string]any); intruded(security["IntrusionSensor"]) {
		found["Intrusion"] = true
	}
	below(doc, 0, found)
	if len(found) == 0 && self != "" && criticalStatus(status) {
		found[self] = true
	}
	var parts []HealthPart
	for name := range found {
		switch {
		case name != "":
			parts = append(parts, HealthPart{Name: clip(name, maxPartName), Hardware: isHardware(name)})
		case len(found) > 1: // beside what is named, it may be anything
			parts = append(parts, HealthPart{Name: unnamedPart, Hardware: true})
		}
	}
	return hardwareFirst(parts)
}

// rolledUp names the part that a member of DellSystem sums up. A sum of the whole machine is no part.
func rolledUp(member string) (part string, is bool) {
	if part, is = strings.CutSuffix(member, "RollupStatus"); !is {
		part, is = strings.CutSuffix(member, "PrimaryStatus")
	}
	return part, is && !slices.Contains(wholeSums, strings.ToLower(part))
}

// below looks at the members of an object, and at theirs.
func below(object map[string]any, depth int, found map[string]bool) {
	if depth == maxHealthDepth {
		return
	}
	for name, member := range object {
		if part, is := rolledUp(name); is && critical(member) {
			found[part] = true
		}
		if inner, is := member.(map[string]any); is {
			look(name, inner, depth, found)
		}
		for _, inner := range listOf(member) {
			look(name, inner, depth, found)
		}
	}
}

// look names an object that is critical itself. One whose HealthRollup alone is critical is a sum: it is named only
// where nothing in it is.
func look(name string, inner map[string]any, depth int, found map[string]bool) {
	if name == "Status" || name == "Links" || name == "Actions" {
		return
	}
	status, _ := inner["Status"].(map[string]any)
	within := map[string]bool{}
	below(inner, depth+1, within)
	if critical(status["Health"]) || critical(status["HealthRollup"]) && len(within) == 0 {
		within[strings.TrimSuffix(name, "Summary")] = true
	}
	maps.Copy(found, within)
}

func criticalStatus(status map[string]any) bool {
	return critical(status["Health"]) || critical(status["HealthRollup"])
}

// critical knows the word of Redfish, and those of roll-ups on iDRAC (Error, Critical).
func critical(word any) bool {
	text, _ := word.(string)
	return strings.EqualFold(text, string(HealthCritical)) || strings.EqualFold(text, "Error")
}

func intruded(word any) bool {
	text, _ := word.(string)
	return strings.EqualFold(text, "HardwareIntrusion") || strings.EqualFold(text, "TamperingDetected")
}

// originOf names what a condition is about: its origin, else its message.
func originOf(condition map[string]any) string {
	origin, _ := condition["OriginOfCondition"].(map[string]any)
	uri, _ := origin["@odata.id"].(string)
	message, _ := condition["MessageId"].(string)
	switch {
	case strings.Contains(strings.ToLower(uri), "/logservices/"):
		return "Log"
	case strings.Contains(strings.ToLower(message), "intrusion"):
		return "Intrusion"
	case uri != "":
		return lastSegment(uri)
	}
	return message
}

// isHardware reports that a name is no sensor of a lid, no log (SEL on iDRAC) and no licence.
func isHardware(name string) bool {
	lower := strings.ToLower(name)
	return lower != "sel" && lower != "log" && lower != "logs" && !strings.Contains(lower, "intrusion") && !strings.Contains(lower, "licens")
}

func listOf(value any) []map[string]any {
	raw, _ := value.([]any)
	var all []map[string]any
	for _, member := range raw {
		if object, is := member.(map[string]any); is {
			all = append(all, object)
		}
	}
	return all
}

// withParts names the parts of a critical system. Where they cannot be told its health is unknown, so that one failed request
// makes no broken machine a usable one, and no open lid a broken machine.
func (o *operation) withParts(s SystemSnapshot, body []byte) SystemSnapshot {
	if s.Health != HealthCritical {
		return s
	}
	parts, known := o.criticalParts(body)
	if s.Critical = parts; !known {
		s.Health = HealthUnknown
	}
	return s
}
