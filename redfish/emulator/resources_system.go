// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

func (m *Machine) systemPath() string { return root + "/Systems/" + m.systemID }

// systemPaths lists the systems of a BMC, GPU trays last. bmc.mu is held.
func (b *bmc) systemPaths() []string {
	var paths []string
	for _, m := range b.machines {
		paths = append(paths, m.systemPath())
	}
	for _, id := range b.profile.ExtraSystems {
		paths = append(paths, root+"/Systems/"+id)
	}
	return paths
}

func getSystems(x *exchange) answer {
	return ok(x.bmc.collection(root+"/Systems", "ComputerSystemCollection", "Computer Systems", x.bmc.systemPaths()))
}

func getSystem(x *exchange) answer {
	if m := x.machine(); m != nil {
		return ok(x.systemBody(m))
	}
	for _, id := range x.bmc.profile.ExtraSystems {
		if !strings.EqualFold(id, x.params["system"]) {
			continue
		}
		body := x.bmc.resource(root+"/Systems/"+id, "ComputerSystem.v1_20_0", id, id)
		body["SystemType"] = "Physical"
		body["Status"] = doc{"State": "Enabled", "Health": "OK"}
		body["PowerState"] = "On"
		if x.bmc.profile.TrayUUID {
			body["UUID"] = swapHalves(x.bmc.uuid)
		}
		if managers := x.bmc.profile.ExtraManagers; len(managers) > 0 {
			body["Links"] = doc{"ManagedBy": x.bmc.links([]string{root + "/Managers/" + managers[0]})}
		}
		return ok(body)
	}
	return notFound(x.path)
}

func (x *exchange) systemBody(m *Machine) doc {
	b, p, path := x.bmc, x.bmc.profile, m.systemPath()
	body := b.resource(path, "ComputerSystem.v1_20_0", m.systemID, "System")
	body["SystemType"] = "Physical"
	body["Manufacturer"], body["Model"], body["SKU"] = m.identity.Manufacturer, m.identity.Model, m.identity.SKU
	presence(body, "UUID", m.identity.UUID, p.UUID)
	presence(body, "SerialNumber", m.identity.SerialNumber, p.Serial)
	body["PowerState"] = string(m.stateSince(x.stale))
	body["BiosVersion"] = m.hardware.BIOSVersion
	body["Status"] = doc{"State": "Enabled", "Health": "OK", "HealthRollup": "OK"}
	body["HostName"] = ""
	body["MemorySummary"] = doc{"TotalSystemMemoryGiB": m.hardware.MemoryBytes >> 30, "Status": doc{"Health": "OK"}}
	body["ProcessorSummary"] = doc{
		"Count": m.hardware.Sockets, "Model": m.hardware.CPUModel,
		"CoreCount": m.hardware.Sockets * m.hardware.CoresPerSocket, "Status": doc{"Health": "OK"},
	}
	p.showLED(body, m.led)
	boot := x.bootBody(m)
	if p.TargetsInSettings {
		delete(boot, "BootSourceOverrideTarget@Redfish.AllowableValues")
	}
	body["Boot"] = boot
	if p.BootProgress {
		body["BootProgress"] = doc{"LastState": m.bootProgress()}
	}
	for _, name := range []string{"Processors", "Memory", "Storage"} {
		body[name] = b.link(path + "/" + name)
	}
	if !p.NoSystemNICs {
		body["EthernetInterfaces"] = b.link(path + "/EthernetInterfaces")
	}
	switch {
	case p.Media.SystemLinksManager:
		body["VirtualMedia"] = b.link(b.managerPath() + "/VirtualMedia")
	case len(p.Media.OnSystem) > 0:
		body["VirtualMedia"] = b.link(path + "/VirtualMedia")
	}
	body["Links"] = doc{"Chassis": b.links([]string{b.chassisPath()}), "ManagedBy": b.links([]string{b.managerPath()})}
	reset := doc{"target": path + "/Actions/ComputerSystem.Reset"}
	if p.ResetByActionInfo {
		reset["@Redfish.ActionInfo"] = path + "/ResetActionInfo"
	} else {
		reset["ResetType@Redfish.AllowableValues"] = p.ResetTypes
	}
	body["Actions"] = doc{"#ComputerSystem.Reset": reset}
	if p.SettingsID != "" {
		body["@Redfish.Settings"] = doc{
			"@odata.type": "#Settings.v1_3_5.Settings", "SettingsObject": b.link(path + "/" + p.SettingsID),
			"SupportedApplyTimes": []string{"OnReset"},
		}
	}
	return x.asShown(m, body)
}

func (p *Profile) showLED(body doc, led string) {
	if p.LED == LEDIndicator || p.LED == LEDBoth {
		body["IndicatorLED"] = led
	}
	if p.LED == LEDLocation || p.LED == LEDBoth {
		body["LocationIndicatorActive"] = led != "Off"
	}
}

func (x *exchange) bootBody(m *Machine) doc {
	p, o := x.bmc.profile, m.shownOverride()
	enabled := o.enabled
	if enabled == "Once" && p.OnceReadsContinuous {
		enabled = "Continuous"
	}
	body := doc{
		"BootSourceOverrideEnabled": enabled, "BootSourceOverrideTarget": o.target,
		"BootSourceOverrideTarget@Redfish.AllowableValues":  p.BootTargets,
		"BootSourceOverrideEnabled@Redfish.AllowableValues": p.BootEnabled,
		"BootOrder":   m.order,
		"BootOptions": x.bmc.link(m.systemPath() + "/BootOptions"),
	}
	if p.OverrideMode != ModeRefused {
		body["BootSourceOverrideMode"] = o.mode
	}
	if p.HTTPBootURI {
		body["HttpBootUri"] = o.uri
	}
	return body
}

// systemInput is what a client may change of a system; nil: not said.
type systemInput struct {
	Boot                    *bootInput
	IndicatorLED            *string
	LocationIndicatorActive *bool
}

type bootInput struct {
	BootSourceOverrideEnabled *string
	BootSourceOverrideTarget  *string
	BootSourceOverrideMode    *string
	HttpBootUri               *string //nolint:staticcheck // Redfish spells it so.
	BootOrder                 *[]string
}

func patchSystem(x *exchange) answer {
	m := x.machine()
	if m == nil {
		return notFound(x.path)
	}
	if refused := x.withoutOverride(); refused != nil {
		return *refused
	}
	return x.changeSystem(m, x.systemBody, !x.bmc.profile.SettingsRequired)
}

// changeSystem applies a PATCH that was sent to the resource that body shows. All or nothing is changed.
func (x *exchange) changeSystem(m *Machine, body func(*Machine) doc, bootHere bool) answer {
	if refused := x.bmc.profile.precondition(x.req, body(m)); refused != nil {
		return *refused
	}
	var known map[string]any
	if bad := x.decode(&known); bad != nil {
		return *bad
	}
	for name := range known {
		if !slices.Contains([]string{"Boot", "IndicatorLED", "LocationIndicatorActive"}, name) && !strings.HasPrefix(name, "@") {
			return unknownProperty(name)
		}
	}
	var in systemInput
	if bad := x.decode(&in); bad != nil {
		return *bad
	}
	led, refused := x.bmc.profile.newLED(m.led, in)
	if refused != nil {
		return *refused
	}
	if in.Boot != nil {
		if !bootHere {
			return failure(http.StatusBadRequest, "PropertyNotWritable", "Boot is changed in the settings resource.")
		}
		if name := notShown(known["Boot"], body(m)["Boot"]); name != "" {
			return unknownProperty(name)
		}
		if refused := m.changeBoot(in.Boot); refused != nil {
			return *refused
		}
	}
	m.led = led
	x.bmc.notify()
	return x.patched(func() doc { return body(m) })
}

// notShown is the first property of a wish that a resource does not show; empty where it shows all.
func notShown(wish, shown any) string {
	asked, _ := wish.(map[string]any)
	there, _ := shown.(doc)
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if _, known := there[name]; !known && !strings.Contains(name, "@") {
			return name
		}
	}
	return ""
}

func (p *Profile) newLED(now string, in systemInput) (string, *answer) {
	refuse := func(a answer) (string, *answer) { return "", &a }
	if in.IndicatorLED != nil {
		if p.LED != LEDIndicator && p.LED != LEDBoth {
			return refuse(unknownProperty("IndicatorLED"))
		}
		if !slices.Contains([]string{"Lit", "Blinking", "Off"}, *in.IndicatorLED) {
			return refuse(badProperty("IndicatorLED", "use Lit, Blinking or Off"))
		}
		now = *in.IndicatorLED
	}
	if in.LocationIndicatorActive != nil {
		if p.LED != LEDLocation && p.LED != LEDBoth {
			return refuse(unknownProperty("LocationIndicatorActive"))
		}
		now = "Off"
		if *in.LocationIndicatorActive {
			now = "Lit"
		}
	}
	return now, nil
}

// changeBoot checks and applies a change of the boot settings. It changes nothing where it refuses.
func (m *Machine) changeBoot(in *bootInput) *answer {
	p, next := m.bmc.profile, m.override
	for _, check := range []func(*bootInput, *override) *answer{p.checkEnabled, p.checkTarget, p.checkMode, p.checkURI} {
		if refused := check(in, &next); refused != nil {
			return refused
		}
	}
	if in.BootOrder != nil {
		if refused := checkBootOrder(*in.BootOrder); refused != nil {
			return refused
		}
		m.order = slices.Clone(*in.BootOrder)
	}
	if next.enabled == "Disabled" || next.target == "None" {
		next = override{enabled: "Disabled", target: "None", mode: next.mode}
	}
	m.formerOverride, m.overriddenAt = m.shownOverride(), m.bmc.fleet.clock.Now()
	m.override = next
	return nil
}

func (p *Profile) checkEnabled(in *bootInput, next *override) *answer {
	if in.BootSourceOverrideEnabled == nil {
		return nil
	}
	next.enabled = *in.BootSourceOverrideEnabled
	if !slices.Contains(p.BootEnabled, next.enabled) {
		a := badProperty("BootSourceOverrideEnabled", "use one of "+strings.Join(p.BootEnabled, ", "))
		return &a
	}
	return nil
}

func (p *Profile) checkTarget(in *bootInput, next *override) *answer {
	if in.BootSourceOverrideTarget == nil {
		return nil
	}
	next.target = *in.BootSourceOverrideTarget
	if !slices.Contains(p.BootTargets, next.target) {
		a := badProperty("BootSourceOverrideTarget", "use one of "+strings.Join(p.BootTargets, ", "))
		return &a
	}
	if in.BootSourceOverrideEnabled == nil && next.target != "None" && next.enabled == "Disabled" {
		next.enabled = "Once"
	}
	return nil
}

func (p *Profile) checkMode(in *bootInput, next *override) *answer {
	if in.BootSourceOverrideMode != nil {
		if p.OverrideMode == ModeRefused {
			a := unknownProperty("BootSourceOverrideMode")
			return &a
		}
		next.mode = *in.BootSourceOverrideMode
		if next.mode != "UEFI" && next.mode != "Legacy" {
			a := badProperty("BootSourceOverrideMode", "use UEFI or Legacy")
			return &a
		}
	}
	touched := in.BootSourceOverrideEnabled != nil || in.BootSourceOverrideTarget != nil
	named := in.BootSourceOverrideMode != nil && next.mode == "UEFI"
	if p.OverrideMode == ModeRequired && touched && next.enabled != "Disabled" && !named {
		a := failure(http.StatusBadRequest, "PropertyMissing", "BootSourceOverrideMode must be UEFI.")
		return &a
	}
	return nil
}

func (p *Profile) checkURI(in *bootInput, next *override) *answer {
	if in.HttpBootUri == nil {
		return nil
	}
	if !p.HTTPBootURI {
		a := unknownProperty("HttpBootUri")
		return &a
	}
	next.uri = *in.HttpBootUri
	return nil
}

func checkBootOrder(order []string) *answer {
	seen := map[string]bool{}
	for _, ref := range order {
		if _, known := bootOptions[ref]; !known || seen[ref] {
			a := badProperty("BootOrder", ref+" is unknown or listed twice")
			return &a
		}
		seen[ref] = true
	}
	return nil
}
