// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

// treeHost is a system of a tree that can be reset. The others are GPU trays and the like.
type treeHost struct {
	uri, id     string
	resetTarget string
	// settings is where @Redfish.Settings leads, if anywhere.
	settings string
	power    PowerState
	// led is the locator light as captured; empty where the tree shows none.
	led      string
	identity Identity
	hardware Hardware
	nics     []NIC
	drives   []DriveSpec
	override override
	order    []string
	invented []string
}

// treeManager is the BMC among the managers of a tree: the one that manages a host.
type treeManager struct {
	uri, mac string
	// resets are the targets of Manager.Reset of all managers, with the manager's URI.
	resets map[string]string
}

// understand finds out what a tree shows of hosts, BMC and service. It fails where nothing could be served.
func (t *Tree) understand() error {
	service := t.doc(root)
	if service == nil {
		return fmt.Errorf("it holds no %s%s/%s: give a folder or .tar.gz of that form", "<name>", root, treeFile)
	}
	t.manners = mannersOf(service)
	systems := t.member(service, "Systems")
	uris, bodies := t.members(systems)
	for i, body := range bodies {
		target := text(object(body, "Actions", "#ComputerSystem.Reset"), "target")
		if target == "" {
			continue
		}
		t.hosts = append(t.hosts, t.host(uris[i], target, body))
	}
	if len(t.hosts) == 0 {
		return errors.New("it shows no system with the action ComputerSystem.Reset: nothing behind it could be switched on")
	}
	t.findManager(service)
	t.findMedia(service)
	t.profile = t.makeProfile(service)
	return nil
}

func (t *Tree) host(uri, target string, body doc) treeHost {
	h := treeHost{uri: uri, id: path.Base(uri), resetTarget: strings.TrimRight(target, "/"),
		power: PowerState(text(body, "PowerState")), led: lightOf(body)}
	if to := linkOf(body, "@Redfish.Settings", "SettingsObject"); to != "" && t.doc(to) != nil {
		h.settings = t.canonical(to)
	}
	h.identity = Identity{UUID: strings.ToLower(text(body, "UUID")), SerialNumber: text(body, "SerialNumber"),
		Manufacturer: text(body, "Manufacturer"), Model: text(body, "Model"), SKU: text(body, "SKU")}
	h.hardware = Hardware{CPUModel: text(object(body, "ProcessorSummary"), "Model"), BIOSVersion: text(body, "BiosVersion"),
		Sockets:     int(number(object(body, "ProcessorSummary"), "Count")),
		MemoryBytes: int64(number(object(body, "MemorySummary"), "TotalSystemMemoryGiB")) << 30}
	boot := object(body, "Boot")
	h.order = words(boot["BootOrder"])
	h.override = override{enabled: text(boot, "BootSourceOverrideEnabled"), target: text(boot, "BootSourceOverrideTarget")}
	if h.override.enabled == "" {
		h.override.enabled, h.override.target = "Disabled", "None"
	}
	h.nics = t.hostNICs(body)
	h.drives = t.hostDrives(body)
	for what, missing := range map[string]bool{
		"the UUID that the machine reads of itself":          h.identity.UUID == "",
		"the serial number that the machine reads of itself": h.identity.SerialNumber == "",
		"the host's NICs and their MAC addresses":            len(h.nics) == 0,
		"the drives":              len(h.drives) == 0,
		"the number of CPUs":      h.hardware.Sockets == 0,
		"the size of the memory":  h.hardware.MemoryBytes == 0,
		"the BIOS version":        h.hardware.BIOSVersion == "",
		"the model of the system": h.identity.Model == "",
	} {
		if missing {
			h.invented = append(h.invented, what)
		}
	}
	slices.Sort(h.invented)
	return h
}

// hostNICs are the interfaces with a MAC address, without the one that leads to the BMC.
func (t *Tree) hostNICs(system doc) []NIC {
	var nics []NIC
	_, bodies := t.members(t.member(system, "EthernetInterfaces"))
	for _, body := range bodies {
		mac := usableMAC(body)
		known := slices.ContainsFunc(nics, func(n NIC) bool { return n.MACAddress == mac })
		if mac == "" || known || text(body, "Id") == "ToManager" || linkOf(body, "Links", "HostInterface") != "" {
			continue
		}
		nics = append(nics, NIC{Name: text(body, "Id"), MACAddress: mac, LinkUp: text(body, "LinkStatus") == "LinkUp"})
	}
	return nics
}

// usableMAC is an interface's address in lower case with colons; empty where it is none.
func usableMAC(nic doc) string {
	for _, name := range []string{"MACAddress", "PermanentMACAddress"} {
		mac := strings.ToLower(strings.ReplaceAll(text(nic, name), "-", ":"))
		if len(mac) == 17 && strings.Count(mac, ":") == 5 && strings.Trim(mac, "0123456789abcdef:") == "" && strings.Trim(mac, "0:") != "" {
			return mac
		}
	}
	return ""
}

// hostDrives are the drives of the system's storage, by the names that Linux gives in that order.
func (t *Tree) hostDrives(system doc) []DriveSpec {
	var drives []DriveSpec
	nvme, sd := 0, 0
	_, storages := t.members(t.member(system, "Storage"))
	for _, storage := range storages {
		_, bodies := t.follow(storage["Drives"])
		for _, body := range bodies {
			size := int64(number(body, "CapacityBytes"))
			if size <= 0 || sd >= 26 { // an empty bay
				continue
			}
			d := DriveSpec{Serial: text(body, "SerialNumber"), Model: text(body, "Model"), Vendor: text(body, "Manufacturer"),
				SizeBytes: size, Rotational: text(body, "MediaType") == "HDD"}
			switch text(body, "Protocol") {
			case "SAS", "SATA", "USB":
				d.Name = "sd" + string(rune('a'+sd))
				sd++
			default:
				d.Name = fmt.Sprintf("nvme%dn1", nvme)
				nvme++
			}
			drives = append(drives, d)
		}
	}
	return drives
}

// findManager takes the manager that a host names, else the one that lists a host.
func (t *Tree) findManager(service doc) {
	t.managed.resets = map[string]string{}
	uris, bodies := t.members(t.member(service, "Managers"))
	named := linksOf(object(t.doc(t.hosts[0].uri), "Links")["ManagedBy"])
	for i, body := range bodies {
		if target := text(object(body, "Actions", "#Manager.Reset"), "target"); target != "" {
			t.managed.resets[strings.TrimRight(target, "/")] = uris[i]
		}
		serves := slices.ContainsFunc(linksOf(object(body, "Links")["ManagerForServers"]), func(uri string) bool {
			return t.hostAt(t.canonical(uri)) != nil
		})
		if len(named) > 0 && t.canonical(named[0]) == uris[i] || len(named) == 0 && serves && t.managed.uri == "" {
			t.managed.uri, t.managed.mac = uris[i], t.managerMAC(body)
		}
	}
	for what, missing := range map[string]bool{
		"the user name and password of the BMC": true,
		"which manager is the BMC":              t.managed.uri == "",
		"the BMC's MAC address":                 t.managed.mac == "",
		"the whole SessionService":              t.member(service, "SessionService") == nil,
		"the whole TaskService":                 t.member(service, "Tasks") == nil,
	} {
		if missing {
			t.invented = append(t.invented, what)
		}
	}
	slices.Sort(t.invented)
}

// managerMAC prefers an address of a factory to one that is administered locally, as those of interfaces inside the machine.
func (t *Tree) managerMAC(manager doc) string {
	_, bodies := t.members(t.member(manager, "EthernetInterfaces"))
	best := ""
	for _, body := range bodies {
		mac := usableMAC(body)
		if mac == "" {
			continue
		}
		if !strings.ContainsRune("2367abef", rune(mac[1])) {
			return mac
		}
		if best == "" {
			best = mac
		}
	}
	return best
}

func (t *Tree) hostAt(uri string) *treeHost {
	for i := range t.hosts {
		if strings.EqualFold(t.hosts[i].uri, uri) {
			return &t.hosts[i]
		}
	}
	return nil
}

// makeProfile is what the emulator's own parts (sessions, power, $expand) need to know of the BMC.
func (t *Tree) makeProfile(service doc) Profile {
	p := genericProfile()
	first := t.hosts[0]
	p.Name, p.Manufacturer, p.Model, p.SKU = t.Name, first.identity.Manufacturer, first.identity.Model, first.identity.SKU
	p.Media = MediaOffer{} // slots are served as they were captured
	p.FirmwareVersion = text(t.doc(t.managed.uri), "FirmwareVersion")
	p.ManagerID = path.Base(t.managed.uri)
	p.TrailingSlash = strings.HasSuffix(linkOf(service, "Systems"), "/")
	p.ETags, p.PatchStatus, p.ResetStatus, p.AlreadyStatus = ETagsNone, http.StatusOK, http.StatusNoContent, http.StatusNoContent
	p.ResetTypes = t.resetTypes(object(t.doc(first.uri), "Actions", "#ComputerSystem.Reset"))
	if len(p.ResetTypes) == 0 {
		p.ResetTypes = genericProfile().ResetTypes
		t.invented = append(t.invented, "the reset types")
	}
	offer := object(service, "ProtocolFeaturesSupported", "ExpandQuery")
	all, _ := offer["ExpandAll"].(bool)
	dot, _ := offer["NoLinks"].(bool)
	levels, _ := offer["Levels"].(bool)
	p.Expand = Expand{Supported: all || dot, ExpandAll: all, Levels: levels, MaxLevels: int(number(offer, "MaxLevels"))}
	if seconds := number(t.member(service, "SessionService"), "SessionTimeout"); seconds > 0 {
		p.SessionTimeout = time.Duration(seconds) * time.Second
	}
	accounts := t.member(service, "AccountService")
	p.LockoutAfter = int(number(accounts, "AccountLockoutThreshold"))
	p.LockoutFor = time.Duration(number(accounts, "AccountLockoutDuration")) * time.Second
	t.manners.apply(&p)
	return p
}

func (t *Tree) resetTypes(action doc) []ResetType {
	offered := words(action["ResetType@Redfish.AllowableValues"])
	info := t.doc(text(action, "@Redfish.ActionInfo"))
	parameters, _ := info["Parameters"].([]any)
	for _, entry := range parameters {
		if parameter, _ := entry.(doc); len(offered) == 0 && text(parameter, "Name") == "ResetType" {
			offered = words(parameter["AllowableValues"])
		}
	}
	var types []ResetType
	for _, word := range offered {
		types = append(types, ResetType(word))
	}
	return types
}

// bootTarget says what a boot option of a host boots, as far as its names tell.
func (t *Tree) bootTarget(h *treeHost, reference string) string {
	_, bodies := t.members(t.member(t.doc(h.uri), "Boot", "BootOptions"))
	names := reference
	for _, body := range bodies {
		if text(body, "BootOptionReference") == reference || text(body, "Id") == reference {
			names += " " + text(body, "Alias") + " " + text(body, "DisplayName")
		}
	}
	names = strings.ToUpper(names)
	switch {
	case strings.Contains(names, "HTTP"):
		return "UefiHttp"
	case strings.Contains(names, "PXE"), strings.HasSuffix(names, " NETWORK"):
		return "Pxe"
	}
	return "Hdd"
}
