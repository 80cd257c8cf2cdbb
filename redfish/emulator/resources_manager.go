// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"net/http"
	"strings"
	"time"
)

func (b *bmc) managerPath() string { return root + "/Managers/" + b.profile.ManagerID }

func (b *bmc) chassisPath() string { return root + "/Chassis/" + b.profile.ChassisID }

func (x *exchange) isManager() bool {
	return strings.EqualFold(x.params["manager"], x.bmc.profile.ManagerID)
}

func getManagers(x *exchange) answer {
	return ok(x.bmc.collection(root+"/Managers", "ManagerCollection", "Managers", []string{x.bmc.managerPath()}))
}

func getManager(x *exchange) answer {
	if !x.isManager() {
		return notFound(x.path)
	}
	b, p := x.bmc, x.bmc.profile
	path := b.managerPath()
	body := b.resource(path, "Manager.v1_18_0", p.ManagerID, "Manager")
	body["ManagerType"], body["UUID"] = "BMC", b.uuid
	body["Manufacturer"], body["Model"] = p.Manufacturer, p.Manufacturer+" BMC"
	body["SerialNumber"] = "B" + b.serial
	body["FirmwareVersion"] = p.FirmwareVersion
	body["Status"] = doc{"State": "Enabled", "Health": "OK"}
	body["EthernetInterfaces"] = b.link(path + "/EthernetInterfaces")
	if p.ManagerPower {
		body["PowerState"] = "On"
	}
	body["DateTime"] = x.fleet.clock.Now().UTC().Format(time.RFC3339)
	body["LastResetTime"] = b.bootedAt.UTC().Format(time.RFC3339)
	if p.ClockIsUnset {
		body["LastResetTime"] = "1970-01-01T00:00:00+00:00"
	}
	links := b.links(b.systemPaths())
	if p.LowercaseLinks {
		for _, l := range links {
			d := l.(doc)
			d["@odata.id"] = strings.Replace(d["@odata.id"].(string), "/Systems/", "/systems/", 1)
		}
	}
	body["Links"] = doc{"ManagerForServers": links, "ManagerForChassis": b.links([]string{b.chassisPath()})}
	body["Actions"] = doc{"#Manager.Reset": doc{
		"target": path + "/Actions/Manager.Reset", "ResetType@Redfish.AllowableValues": []string{"GracefulRestart", "ForceRestart"},
	}}
	return ok(body)
}

// postManagerReset restarts the BMC as soon as the answer is out.
func postManagerReset(x *exchange) answer {
	if !x.isManager() {
		return notFound(x.path)
	}
	var in struct{ ResetType string }
	if len(x.body) > 0 {
		if bad := x.decode(&in); bad != nil {
			return *bad
		}
	}
	switch in.ResetType {
	case "", "GracefulRestart", "ForceRestart":
	default:
		return failure(http.StatusBadRequest, "ActionParameterNotSupported", "ResetType must be GracefulRestart or ForceRestart.")
	}
	a := success(x.bmc.profile.ResetStatus)
	if a.status == http.StatusAccepted {
		a = noContent() // its task would not survive the restart
	}
	b, own := x.bmc, x.conn
	a.after = func() { b.restart(own) }
	return a
}

func getManagerNICs(x *exchange) answer {
	if !x.isManager() {
		return notFound(x.path)
	}
	path := x.bmc.managerPath() + "/EthernetInterfaces"
	return ok(x.bmc.collection(path, "EthernetInterfaceCollection", "Ethernet Interfaces", []string{path + "/1"}))
}

func getManagerNIC(x *exchange) answer {
	if !x.isManager() || x.params["nic"] != "1" {
		return notFound(x.path)
	}
	b := x.bmc
	body := b.resource(b.managerPath()+"/EthernetInterfaces/1", "EthernetInterface.v1_9_0", "1", "Manager Ethernet Interface")
	mac := b.profile.spellMAC(b.mac)
	body["MACAddress"], body["PermanentMACAddress"] = mac, mac
	body["LinkStatus"], body["InterfaceEnabled"] = "LinkUp", true
	body["Status"] = doc{"State": "Enabled", "Health": "OK"}
	host, _, _ := strings.Cut(b.port().address(), ":")
	body["IPv4Addresses"] = []any{doc{"Address": host, "AddressOrigin": "DHCP", "SubnetMask": "255.255.255.0", "Gateway": nil}}
	return ok(body)
}

func getChassisCollection(x *exchange) answer {
	return ok(x.bmc.collection(root+"/Chassis", "ChassisCollection", "Chassis", []string{x.bmc.chassisPath()}))
}

func getChassis(x *exchange) answer {
	b, p := x.bmc, x.bmc.profile
	if !strings.EqualFold(x.params["chassis"], p.ChassisID) {
		return notFound(x.path)
	}
	body := b.resource(b.chassisPath(), "Chassis.v1_21_0", p.ChassisID, "Chassis")
	body["ChassisType"] = "RackMount"
	body["Manufacturer"], body["Model"], body["SKU"] = p.Manufacturer, p.Model, p.SKU
	presence(body, "SerialNumber", b.serial, p.Serial)
	body["PowerState"] = nil // null here on many makes, so that nobody takes it for the system's
	body["Status"] = doc{"State": "Enabled", "Health": "OK"}
	body["Links"] = doc{"ComputerSystems": b.links(b.systemPaths()), "ManagedBy": b.links([]string{b.managerPath()})}
	return ok(b.showIntrusion(body))
}

// presence sets an identity field as the make shows it.
func presence(body doc, field, value string, how Presence) {
	switch how {
	case Present:
		body[field] = value
	case Null:
		body[field] = nil
	case Empty:
		body[field] = ""
	case Absent:
	}
}

// spellMAC writes a MAC address as the make does.
func (p *Profile) spellMAC(mac string) string {
	switch p.MACStyle {
	case "upper":
		return strings.ToUpper(mac)
	case "dashes":
		return strings.ToUpper(strings.ReplaceAll(mac, ":", "-"))
	}
	return mac
}
