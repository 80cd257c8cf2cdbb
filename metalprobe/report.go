// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Report is the body of POST /register.
type Report struct {
	// SystemUUID names the server, in either byte order of its first three groups and in any case.
	SystemUUID string `json:"systemUUID"`
	// AgentVersion is the version of the agent that sent the report; agents of others leave it out.
	AgentVersion string `json:"agentVersion,omitempty"`
	Data         Data   `json:"data"`
}

// BootStateReport is the body of POST /bootstate.
type BootStateReport struct {
	SystemUUID string `json:"systemUUID"`
	// Booted is true once the operating system is up.
	Booted bool `json:"booted"`
}

// Data describes the hardware as the running system sees it. What could not be read is left out.
type Data struct {
	Timestamp         Timestamp          `json:"timestamp,omitzero"`
	SystemInfo        SystemInfo         `json:"systemInfo,omitzero"`
	CPU               []CPU              `json:"cpu,omitempty"`
	NetworkInterfaces []NetworkInterface `json:"networkInterfaces,omitempty"`
	LLDP              LLDPInterfaces     `json:"lldp,omitempty"`
	Storage           []Storage          `json:"storage,omitempty"`
	Memory            []Memory           `json:"memory,omitempty"`
	NICs              []NIC              `json:"nics,omitempty"`
	PCIDevices        []PCIDevice        `json:"pciDevices,omitempty"`
}

// Digest is the hex SHA-256 of what the data says, whenever it was said.
func (d Data) Digest() string {
	d.Timestamp = Timestamp{}
	text, err := json.Marshal(d)
	if err != nil {
		// Data holds only strings, numbers and booleans, which always marshal.
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// SystemInfo is what the firmware says of itself, the system and its board (DMI).
type SystemInfo struct {
	BIOSInformation   BIOSInformation   `json:"biosInformation,omitzero"`
	SystemInformation SystemInformation `json:"systemInformation,omitzero"`
	BoardInformation  BoardInformation  `json:"boardInformation,omitzero"`
}

// BIOSInformation describes the firmware.
type BIOSInformation struct {
	Vendor  string `json:"vendor,omitempty"`
	Version string `json:"version,omitempty"`
	Date    string `json:"date,omitempty"`
}

// SystemInformation describes the system as sold.
type SystemInformation struct {
	Manufacturer string `json:"manufacturer,omitempty"`
	ProductName  string `json:"productName,omitempty"`
	Version      string `json:"version,omitempty"`
	SerialNumber string `json:"serialNumber,omitempty"`
	UUID         string `json:"uuid,omitempty"`
	SKUNumber    string `json:"skuNumber,omitempty"`
	Family       string `json:"family,omitempty"`
}

// BoardInformation describes the main board.
type BoardInformation struct {
	Manufacturer string `json:"manufacturer,omitempty"`
	Product      string `json:"product,omitempty"`
	Version      string `json:"version,omitempty"`
	SerialNumber string `json:"serialNumber,omitempty"`
	AssetTag     string `json:"assetTag,omitempty"`
}

// CPU is one processor package (socket).
type CPU struct {
	ID                   int32    `json:"id"`
	TotalCores           int32    `json:"totalCores,omitempty"`
	TotalHardwareThreads int32    `json:"totalHardwareThreads,omitempty"`
	Vendor               string   `json:"vendor,omitempty"`
	Model                string   `json:"model,omitempty"`
	Capabilities         []string `json:"capabilities,omitempty"`
}

// NetworkInterface is one physical network interface.
type NetworkInterface struct {
	Name        string   `json:"name"`
	IPAddresses []string `json:"ipAddresses,omitempty"`
	MACAddress  string   `json:"macAddress,omitempty"`
	// CarrierStatus is the kernel's operational state: "up", "down", "unknown", ...
	CarrierStatus string `json:"carrierStatus,omitempty"`
}

// LLDPInterface lists who is seen on the other end of an interface's cable.
type LLDPInterface struct {
	Name      string         `json:"name"`
	Neighbors []LLDPNeighbor `json:"neighbors,omitempty"`
}

// LLDPNeighbor is one LLDP announcement.
type LLDPNeighbor struct {
	ChassisID         string   `json:"chassisId,omitempty"`
	PortID            string   `json:"portId,omitempty"`
	PortDescription   string   `json:"portDescription,omitempty"`
	SystemName        string   `json:"systemName,omitempty"`
	SystemDescription string   `json:"systemDescription,omitempty"`
	MgmtIP            string   `json:"mgmtIp,omitempty"`
	Capabilities      []string `json:"capabilities,omitempty"`
	VlanID            string   `json:"vlanId,omitempty"`
}

// LLDPInterfaces reads both spellings in use: a list, and an object that holds the list under "interfaces".
type LLDPInterfaces []LLDPInterface

// UnmarshalJSON implements json.Unmarshaler.
func (l *LLDPInterfaces) UnmarshalJSON(text []byte) error {
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return json.Unmarshal(text, (*[]LLDPInterface)(l))
	}
	var object struct {
		Interfaces []LLDPInterface `json:"interfaces"`
	}
	if err := json.Unmarshal(text, &object); err != nil {
		return err
	}
	*l = object.Interfaces
	return nil
}

// Storage is one block device. Sizes are in bytes.
type Storage struct {
	Path       string `json:"path"`
	Name       string `json:"name,omitempty"`
	Rotational bool   `json:"rotational,omitempty"`
	Removable  bool   `json:"removable,omitempty"`
	ReadOnly   bool   `json:"readOnly,omitempty"`
	Vendor     string `json:"vendor,omitempty"`
	Model      string `json:"model,omitempty"`
	Serial     string `json:"serial,omitempty"`
	WWID       string `json:"wwid,omitempty"`
	// Transport is how the disk is attached, in the words of Verdict.
	Transport         string `json:"transport,omitempty"`
	PhysicalBlockSize int64  `json:"physicalBlockSize,omitempty"`
	LogicalBlockSize  int64  `json:"logicalBlockSize,omitempty"`
	HWSectorSize      int64  `json:"hWSectorSize,omitempty"`
	SizeBytes         int64  `json:"sizeBytes,omitempty"`
	// NUMANodeID is -1 where the kernel knows none.
	NUMANodeID int32 `json:"numaNodeID,omitempty"`
}

// Memory is one memory device; Size is in bytes. Where the firmware's table cannot be read there is a single entry
// for all memory, whose DeviceLocator is "total".
type Memory struct {
	Size                  int64  `json:"size,omitempty"`
	DeviceSet             string `json:"deviceSet,omitempty"`
	DeviceLocator         string `json:"deviceLocator,omitempty"`
	BankLocator           string `json:"bankLocator,omitempty"`
	MemoryType            string `json:"memoryType,omitempty"`
	Speed                 string `json:"speed,omitempty"`
	Vendor                string `json:"vendor,omitempty"`
	SerialNumber          string `json:"serialNumber,omitempty"`
	AssetTag              string `json:"assetTag,omitempty"`
	PartNumber            string `json:"partNumber,omitempty"`
	ConfiguredMemorySpeed string `json:"configuredMemorySpeed,omitempty"`
	MinimumVoltage        string `json:"minimumVoltage,omitempty"`
	MaximumVoltage        string `json:"maximumVoltage,omitempty"`
	ConfiguredVoltage     string `json:"configuredVoltage,omitempty"`
}

// NIC is one network adapter port, seen from the PCI bus.
type NIC struct {
	Name            string   `json:"name"`
	MAC             string   `json:"mac,omitempty"`
	PCIAddress      string   `json:"pciAddress,omitempty"`
	Speed           string   `json:"speed,omitempty"`
	LinkModes       []string `json:"linkModes,omitempty"`
	SupportedPorts  []string `json:"supportedPorts,omitempty"`
	FirmwareVersion string   `json:"firmwareVersion,omitempty"`
}

// PCIDevice is one device on the PCI bus.
type PCIDevice struct {
	Address    string `json:"address"`
	Vendor     string `json:"vendor,omitempty"`
	VendorID   string `json:"vendorID,omitempty"`
	Product    string `json:"product,omitempty"`
	ProductID  string `json:"productID,omitempty"`
	NumaNodeID int32  `json:"numaNodeID,omitempty"`
}

// Timestamp is when the agent read the hardware, by the server's own clock, which may be wrong.
type Timestamp struct{ time.Time }

// microseconds is RFC 3339 with exactly six digits, which every reader of Kubernetes times accepts.
const microseconds = "2006-01-02T15:04:05.000000Z07:00"

// MarshalJSON implements json.Marshaler.
func (t Timestamp) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(t.UTC().Format(microseconds))
}

// UnmarshalJSON reads RFC 3339 text or a number of seconds since 1970; null and "" mean not known.
func (t *Timestamp) UnmarshalJSON(text []byte) error {
	*t = Timestamp{}
	if string(text) == "null" || string(text) == `""` {
		return nil
	}
	if len(text) > 0 && text[0] != '"' {
		seconds, err := strconv.ParseFloat(string(text), 64)
		if err != nil || seconds < 0 || seconds > 253402300799 { // the year 9999
			return fmt.Errorf("timestamp %.40s: not a number of seconds since 1970", text)
		}
		t.Time = time.Unix(int64(seconds), 0).UTC()
		return nil
	}
	var word string
	if err := json.Unmarshal(text, &word); err != nil {
		return err
	}
	parsed, err := time.Parse(time.RFC3339, word)
	if err != nil {
		return fmt.Errorf("timestamp %.40q: not in the form 2006-01-02T15:04:05Z", word)
	}
	if year := parsed.UTC().Year(); year < 0 || year > 9999 {
		return fmt.Errorf("timestamp %.40q: the year is out of range", word)
	}
	t.Time = parsed
	return nil
}
