// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"fmt"
	"net/http"
	"strconv"
)

// children lists the paths of n members with ids from first.
func children(path string, first, n int) []string {
	paths := make([]string, 0, n)
	for i := range n {
		paths = append(paths, path+"/"+strconv.Itoa(first+i))
	}
	return paths
}

// number reads a member's id, counted from first; false where there are not so many.
func (x *exchange) number(param string, first, n int) (int, bool) {
	i, err := strconv.Atoi(x.params[param])
	i -= first
	return i, err == nil && i >= 0 && i < n
}

// part answers with a collection below a system, whose members are numbered from 1.
func (x *exchange) part(name, schema string, count func(*Machine) int) answer {
	m := x.machine()
	if m == nil {
		return notFound(x.path)
	}
	path := m.systemPath() + "/" + name
	return ok(x.bmc.collection(path, schema, name, children(path, 1, count(m))))
}

// nicList is what the BMC shows of the NICs: the real ones and those that some makes add.
func (m *Machine) nicList() []NIC {
	list := append([]NIC(nil), m.nics...)
	for i, mac := range m.bmc.profile.ExtraNICs {
		list = append(list, NIC{Name: fmt.Sprintf("ToManager%d", i), MACAddress: mac})
	}
	return list
}

func getNICs(x *exchange) answer {
	if x.bmc.profile.NoSystemNICs {
		return notFound(x.path)
	}
	return x.part("EthernetInterfaces", "EthernetInterfaceCollection", func(m *Machine) int { return len(m.nicList()) })
}

func getNIC(x *exchange) answer {
	m := x.machine()
	if m == nil || x.bmc.profile.NoSystemNICs {
		return notFound(x.path)
	}
	list := m.nicList()
	i, found := x.number("nic", 1, len(list))
	if !found {
		return notFound(x.path)
	}
	n, p := list[i], x.bmc.profile
	id := strconv.Itoa(i + 1)
	body := x.bmc.resource(m.systemPath()+"/EthernetInterfaces/"+id, "EthernetInterface.v1_9_0", id, n.Name)
	mac := n.MACAddress
	if i < len(m.nics) {
		mac = p.spellMAC(mac)
	}
	body["MACAddress"], body["PermanentMACAddress"] = mac, mac
	body["LinkStatus"] = "LinkDown"
	if n.LinkUp {
		body["LinkStatus"] = "LinkUp"
	}
	body["SpeedMbps"], body["Status"] = 25000, doc{"State": "Enabled", "Health": "OK"}
	return ok(body)
}

func getProcessors(x *exchange) answer {
	return x.part("Processors", "ProcessorCollection", func(m *Machine) int { return m.hardware.Sockets })
}

func getProcessor(x *exchange) answer {
	m := x.machine()
	if m == nil {
		return notFound(x.path)
	}
	i, found := x.number("processor", 1, m.hardware.Sockets)
	if !found {
		return notFound(x.path)
	}
	id := strconv.Itoa(i + 1)
	body := x.bmc.resource(m.systemPath()+"/Processors/"+id, "Processor.v1_18_0", id, "CPU "+id)
	body["Socket"], body["ProcessorType"], body["ProcessorArchitecture"], body["InstructionSet"] = "CPU"+id, "CPU", "x86", "x86-64"
	body["Manufacturer"], body["Model"], body["MaxSpeedMHz"] = "Metalaw", m.hardware.CPUModel, 2000
	body["TotalCores"], body["TotalThreads"] = m.hardware.CoresPerSocket, 2*m.hardware.CoresPerSocket
	body["Status"] = doc{"State": "Enabled", "Health": "OK"}
	return ok(body)
}

// dimms are the memory modules of a machine: two of half its size where nothing else is said.
func (m *Machine) dimms() []DIMM {
	if len(m.hardware.DIMMs) > 0 {
		return m.hardware.DIMMs
	}
	half := DIMM{SizeBytes: m.hardware.MemoryBytes / 2}
	return []DIMM{half, half}
}

func getMemory(x *exchange) answer {
	return x.part("Memory", "MemoryCollection", func(m *Machine) int { return len(m.dimms()) })
}

func getDIMM(x *exchange) answer {
	m := x.machine()
	if m == nil {
		return notFound(x.path)
	}
	i, found := x.number("dimm", 1, len(m.dimms()))
	if !found {
		return notFound(x.path)
	}
	dimm := m.dimms()[i]
	id := strconv.Itoa(i + 1)
	body := x.bmc.resource(m.systemPath()+"/Memory/"+id, "Memory.v1_17_0", id, "DIMM "+id)
	body["CapacityMiB"], body["MemoryDeviceType"], body["OperatingSpeedMhz"] = dimm.SizeBytes>>20, "DDR5", 4800
	for name, value := range map[string]string{
		"DeviceLocator": dimm.Locator, "Manufacturer": dimm.Manufacturer, "SerialNumber": dimm.SerialNumber, "PartNumber": dimm.PartNumber,
	} {
		if value != "" {
			body[name] = value
		}
	}
	body["Status"] = doc{"State": "Enabled", "Health": "OK"}
	return ok(body)
}

func getStorageCollection(x *exchange) answer {
	return x.part("Storage", "StorageCollection", func(*Machine) int { return 1 })
}

// storageMachine finds the machine of a path below its only storage; nil where there is none.
func (x *exchange) storageMachine() *Machine {
	if x.params["storage"] != "1" {
		return nil
	}
	return x.machine()
}

func getStorage(x *exchange) answer {
	m := x.storageMachine()
	if m == nil {
		return notFound(x.path)
	}
	path := m.systemPath() + "/Storage/1"
	body := x.bmc.resource(path, "Storage.v1_15_0", "1", "Storage")
	body["Drives"] = x.bmc.links(children(path+"/Drives", 0, len(m.bays())))
	body["Drives@odata.count"] = len(m.bays())
	body["Volumes"] = x.bmc.link(path + "/Volumes")
	body["Status"] = doc{"State": "Enabled", "Health": "OK"}
	return ok(body)
}

func getVolumes(x *exchange) answer {
	m := x.storageMachine()
	if m == nil {
		return notFound(x.path)
	}
	return ok(x.bmc.collection(m.systemPath()+"/Storage/1/Volumes", "VolumeCollection", "Volumes", nil))
}

func (x *exchange) drive() (*Machine, *Drive, int) {
	m := x.storageMachine()
	if m == nil {
		return nil, nil, 0
	}
	bays := m.bays()
	i, found := x.number("drive", 0, len(bays))
	if !found {
		return nil, nil, 0
	}
	return m, bays[i], i
}

func getDrive(x *exchange) answer {
	m, d, i := x.drive()
	if d == nil {
		return notFound(x.path)
	}
	id := strconv.Itoa(i)
	path := m.systemPath() + "/Storage/1/Drives/" + id
	body := x.bmc.resource(path, "Drive.v1_18_0", id, d.Name)
	body["SerialNumber"], body["Manufacturer"], body["Model"], body["CapacityBytes"] = d.Serial, d.Vendor, d.Model, d.SizeBytes
	body["MediaType"] = "SSD"
	if protocol := d.Transport.protocol(); protocol != "" {
		body["Protocol"] = protocol
	}
	if d.Rotational {
		body["MediaType"] = "HDD"
	}
	body["Status"] = doc{"State": "Enabled", "Health": "OK"}
	body["Actions"] = doc{"#Drive.SecureErase": doc{"target": path + "/Actions/Drive.SecureErase"}}
	return ok(body)
}

// postSecureErase erases a drive out of band. The answer is 202; a client sees the end on the drive itself.
func postSecureErase(x *exchange) answer {
	m, d, _ := x.drive()
	if d == nil {
		return notFound(x.path)
	}
	if m.state != PowerOff {
		return failure(http.StatusConflict, "ResourceInUse", "Drives are erased only while the system is off.")
	}
	if x.bmc.closed {
		return failure(http.StatusServiceUnavailable, "ServiceShuttingDown", "The service is shutting down.")
	}
	t := x.newTask(TaskScript{})
	t.takes = m.delays.Erase
	x.fleet.guests.Add(1)
	go func() {
		defer x.fleet.guests.Done()
		err := d.Erase(x.fleet.ctx)
		x.bmc.mu.Lock()
		defer x.bmc.mu.Unlock()
		t.script.Fails = err != nil
	}()
	return x.accepted(t)
}
