// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Makes that say little of their systems: no interface, no UUID, no boot override; and what a BMC says of a broken part.

// The profiles of such makes.
const (
	ProfileGB200 = "gb200"
	ProfileCray  = "cray"
)

// ResetOff is what node controllers of Cray offer beside On and ForceOff; it is no word of Redfish.
const ResetOff ResetType = "Off"

// HealthStyle says where a BMC names the parts of a critical system.
type HealthStyle string

const (
	// HealthUnnamed names none.
	HealthUnnamed HealthStyle = ""
	// HealthSummaries has a Status in MemorySummary and ProcessorSummary.
	HealthSummaries HealthStyle = "Summaries"
	// HealthAggregate has AggregateHealthStatus, as iLO 5 has.
	HealthAggregate HealthStyle = "Aggregate"
	// HealthRollups has roll-ups by part, as iDRAC 9 has.
	HealthRollups HealthStyle = "Rollups"
)

// PartIntrusion is the part whose trouble the chassis shows, by its intrusion sensor.
const PartIntrusion = "Intrusion"

// gb200Profile follows a captured tree of a GB200 (OpenBMC, GB200Nvl-24.12-8): no interface of the host and no serial number
// anywhere, a GPU board beside the host, no BootSourceOverrideMode, and a settings resource.
func gb200Profile() Profile {
	p := openBMCProfile()
	p.Name, p.Manufacturer, p.Model, p.FirmwareVersion = ProfileGB200, "", "", "GB200Nvl-24.12-8"
	p.OUI, p.NICOUI = "3c:6d:66", "5c:25:73"
	p.SystemID, p.ManagerID, p.ChassisID = "System_0", "BMC_0", "Chassis_0"
	p.ExtraSystems = []string{"HGX_Baseboard_0"}
	p.Serial, p.SwapsUUID, p.NoSystemNICs = Absent, false, true
	p.OverrideMode, p.SettingsID = ModeRefused, "Settings"
	p.BootEnabled = []string{"Once", "Continuous", "Disabled"}
	p.Expand = Expand{Supported: true, ExpandAll: true, Levels: true, MaxLevels: 6}
	p.LED, p.ClockIsUnset = LEDBoth, false
	p.SessionTimeout = 30 * time.Minute
	p.Media = MediaOffer{OnManager: slots([]string{"CD", "USBStick"}, "USB2", "USB1")}
	return p
}

// crayProfile follows a captured tree of a Cray EX235n: nodes without UUID that share one serial number, MAC addresses that are
// not available beside one that is, and a boot order without any override. Further nodes are put behind the first one.
func crayProfile() Profile {
	p := genericProfile()
	p.Name, p.Manufacturer, p.Model, p.SKU, p.FirmwareVersion = ProfileCray, "HPE", "HPE Cray EX235n", "", "nc.1.6.0"
	p.OUI, p.NICOUI = "00:40:a6", "00:40:a6"
	p.SystemID, p.ManagerID, p.ChassisID = "Node0", "BMC", "Enclosure"
	p.UUID, p.NoOverride = Absent, true
	p.ExtraNICs = []string{"Not Available"}
	p.ResetTypes, p.ResetByActionInfo = []ResetType{ResetForceOff, ResetOn, ResetOff}, true
	p.ManagerPower, p.WeakETags, p.Expand, p.HTTPBootURI, p.LED = false, true, Expand{}, false, LEDNone
	p.SessionTimeout, p.Media = 30*time.Second, MediaOffer{}
	return p
}

// allProfiles are the makes with their quirks, and those that say little.
func allProfiles() []Profile { return append(profiles(), gb200Profile(), crayProfile()) }

// SetCritical has the BMC report parts as critical, and the system with them; none is good health.
func (m *Machine) SetCritical(parts ...string) {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	m.critical = slices.Clone(parts)
}

// ownBootOrder is the boot order that a machine of the make begins with. The captured nodes of a Cray list the network first.
func (p *Profile) ownBootOrder() []string {
	if p.NoOverride {
		return []string{"Boot0002", "Boot0001", "Boot0003"}
	}
	return slices.Clone(defaultBootOrder)
}

// asShown changes a system's resource to what the make shows of it at this moment.
func (x *exchange) asShown(m *Machine, body doc) doc {
	p := x.bmc.profile
	if p.UUIDNullFor > 0 && m.bmc.restarted && x.fleet.clock.Now().Sub(m.bmc.bootedAt) < p.UUIDNullFor {
		body["UUID"] = nil
	}
	if p.NoOverride {
		body["Boot"] = doc{"BootOrder": m.order, "BootOptions": x.bmc.link(m.systemPath() + "/BootOptions")}
	}
	if len(m.critical) > 0 {
		body["Status"] = doc{"State": "Enabled", "Health": "OK", "HealthRollup": "Critical"}
	}
	p.showParts(body, m.critical)
	return body
}

// showParts names critical parts where the make does.
func (p *Profile) showParts(body doc, critical []string) {
	health := func(part string) string {
		if slices.Contains(critical, part) {
			return "Critical"
		}
		return "OK"
	}
	switch p.Health {
	case HealthUnnamed:
	case HealthSummaries:
		for _, part := range []string{"Memory", "Processor"} {
			if summary, is := body[part+"Summary"].(doc); is {
				summary["Status"] = doc{"Health": health(part), "HealthRollup": health(part)}
			}
		}
	case HealthAggregate:
		all := doc{"AgentlessManagementService": "Ready", "FanRedundancy": "Redundant"}
		for _, part := range []string{"BiosOrHardwareHealth", "Fans", "Memory", "Network", "PowerSupplies", "Processors", "Storage", "Temperatures"} {
			all[part] = doc{"Status": doc{"Health": health(part)}}
		}
		body["Oem"] = doc{"Hpe": doc{"AggregateHealthStatus": all}}
	case HealthRollups:
		all := doc{}
		for _, part := range []string{"Battery", "CPU", "Current", "Fan", PartIntrusion, "Licensing", "PS", "SEL", "Storage", "Temp", "Volt"} {
			all[part+"RollupStatus"] = health(part)
		}
		body["Oem"] = doc{"Dell": doc{"DellSystem": all}}
	}
}

// showIntrusion has a chassis show an open lid.
func (b *bmc) showIntrusion(body doc) doc {
	if slices.ContainsFunc(b.machines, func(m *Machine) bool { return slices.Contains(m.critical, PartIntrusion) }) {
		body["PhysicalSecurity"] = doc{"IntrusionSensor": "HardwareIntrusion"}
		body["Status"] = doc{"State": "Enabled", "Health": "Critical"}
	}
	return body
}

// withoutOverride refuses a boot override where the make has none.
func (x *exchange) withoutOverride() *answer {
	var in struct{ Boot map[string]any }
	if !x.bmc.profile.NoOverride {
		return nil
	}
	if bad := x.decode(&in); bad != nil {
		return bad
	}
	for name := range in.Boot {
		if strings.HasPrefix(name, "BootSourceOverride") {
			a := failure(http.StatusBadRequest, "PropertyUnknown", name+" is not known.")
			return &a
		}
	}
	return nil
}
