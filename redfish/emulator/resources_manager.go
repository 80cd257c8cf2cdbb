// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

func (b *bmc) managerPath() string { return root + "/Managers/" + b.profile.ManagerID }

func (b *bmc) chassisPath() string { return root + "/Chassis/" + b.profile.ChassisID }

func (x *exchange) isManager() bool {
	return strings.EqualFold(x.params["manager"], x.bmc.profile.ManagerID)
}

func getManagers(x *exchange) answer {
	var paths []string
	for _, id := range x.bmc.profile.ExtraManagers {
		paths = append(paths, root+"/Managers/"+id)
	}
	return ok(x.bmc.collection(root+"/Managers", "ManagerCollection", "Managers", append(paths, x.bmc.managerPath())))
}

// extraManager is the manager of a GPU board that a path names; empty where it names none.
func (x *exchange) extraManager() string {
	for _, id := range x.bmc.profile.ExtraManagers {
		if strings.EqualFold(x.params["manager"], id) {
			return id
		}
	}
	return ""
}

// extraManagerBody shows the manager of a GPU board. Evidence: DGX H100.
func (x *exchange) extraManagerBody(id string) doc {
	b, path := x.bmc, root+"/Managers/"+id
	body := b.resource(path, "Manager.v1_18_0", id, "OpenBmc Manager")
	body["ManagerType"], body["UUID"], body["Model"], body["PowerState"] = "BMC", swapHalves(b.uuid), "OpenBmc", "On"
	body["FirmwareVersion"], body["LastResetTime"] = "HGX-22.10-1-rc57", "2020-10-12T21:10:04+00:00"
	body["Status"] = doc{"State": "Enabled", "Health": "OK"}
	var trays []string
	for _, tray := range b.profile.ExtraSystems {
		trays = append(trays, root+"/Systems/"+tray)
	}
	body["Links"] = doc{"ManagerForServers": b.links(trays)}
	body["Actions"] = doc{"#Manager.Reset": managerReset(path, b.profile)}
	return body
}

func managerReset(path string, p *Profile) doc {
	return doc{"target": path + "/Actions/Manager.Reset", "ResetType@Redfish.AllowableValues": p.ManagerResets}
}

func getManager(x *exchange) answer {
	if id := x.extraManager(); id != "" {
		return ok(x.extraManagerBody(id))
	}
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
	all := doc{"ManagerForServers": links, "ManagerForChassis": b.links([]string{b.chassisPath()})}
	if p.NoManagerLinks {
		delete(all, "ManagerForServers")
	}
	body["Links"] = all
	body["Actions"] = doc{"#Manager.Reset": managerReset(path, p)}
	if len(p.Media.OnManager) > 0 || p.Media.Empty {
		body["VirtualMedia"] = b.link(path + "/VirtualMedia")
	}
	return ok(body)
}

// postManagerReset restarts the BMC as soon as the answer is out. What the manager of a GPU board does then is not known, so
// it is only counted among the writes.
func postManagerReset(x *exchange) answer {
	extra := x.extraManager()
	if extra == "" && !x.isManager() {
		return notFound(x.path)
	}
	var in struct{ ResetType ResetType }
	if len(x.body) > 0 {
		if bad := x.decode(&in); bad != nil {
			return *bad
		}
	}
	if resets := x.bmc.profile.ManagerResets; in.ResetType != "" && !slices.Contains(resets, in.ResetType) {
		return failure(http.StatusBadRequest, "ActionParameterNotSupported", fmt.Sprintf("ResetType must be one of %v.", resets))
	}
	if extra != "" {
		return success(x.bmc.profile.ResetStatus)
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
