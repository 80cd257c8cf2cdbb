// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ProbeData is what the agent found in a machine, with the names that agents use on the wire.
type ProbeData struct {
	// timestamp is when the agent looked, by its own clock, in RFC 3339.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Timestamp string `json:"timestamp,omitempty"`
	// systemInfo is what the firmware says of the machine.
	// +optional
	SystemInfo SystemInfo `json:"systemInfo,omitzero"`
	// cpu lists the processors.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	CPU []CPU `json:"cpu,omitempty"`
	// networkInterfaces lists the network interfaces.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	NetworkInterfaces []ProbeNetworkInterface `json:"networkInterfaces,omitempty"`
	// lldp lists the neighbours seen by LLDP.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	LLDP []LLDPInterface `json:"lldp,omitempty"`
	// storage lists the block devices.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Storage []BlockDevice `json:"storage,omitempty"`
	// memory lists the memory modules.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Memory []MemoryDevice `json:"memory,omitempty"`
	// nics lists the network cards.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	NICs []NIC `json:"nics,omitempty"`
	// pciDevices lists the PCI devices.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2048
	PCIDevices []PCIDevice `json:"pciDevices,omitempty"`
	// hidden is storage that the machine has and that the kernel of the agent shows as no disk.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Hidden []HiddenStorage `json:"hidden,omitempty"`
	// hiddenKnown says that the agent looked for hidden storage; former agents do not.
	// +optional
	HiddenKnown bool `json:"hiddenKnown,omitempty"`
	// problems are what the agent could not read or load; the report is incomplete to that extent.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Problems []ProbeProblem `json:"problems,omitempty"`
}

// ProbeProblem is something that the agent could not do.
type ProbeProblem struct {
	// source is the collector, or "module" for a kernel module.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Source string `json:"source,omitempty"`
	// message is the cause.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// DiskContent says whether a disk holds data, as far as the agent read it: both ends, the places of signatures, and samples.
// +kubebuilder:validation:Enum=Blank;Data;Unreadable
type DiskContent string

const (
	// ContentBlank means that everything that was read is constant zeros or ones, and no signature was found.
	ContentBlank DiskContent = "Blank"
	// ContentData means that data or a signature was found.
	ContentData DiskContent = "Data"
	// ContentUnreadable means that the disk could not be read.
	ContentUnreadable DiskContent = "Unreadable"
)

// SystemInfo is what the firmware says of a machine.
type SystemInfo struct {
	// biosInformation is about the firmware.
	// +optional
	BIOSInformation BIOSInformation `json:"biosInformation,omitzero"`
	// systemInformation is about the machine.
	// +optional
	SystemInformation SystemInformation `json:"systemInformation,omitzero"`
	// boardInformation is about the main board.
	// +optional
	BoardInformation BoardInformation `json:"boardInformation,omitzero"`
}

// BIOSInformation is about a firmware.
type BIOSInformation struct {
	// vendor is the firmware's vendor.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Vendor string `json:"vendor,omitempty"`
	// version is the firmware's version.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`
	// date is the firmware's date.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Date string `json:"date,omitempty"`
}

// SystemInformation is about a machine.
type SystemInformation struct {
	// manufacturer is the manufacturer.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Manufacturer string `json:"manufacturer,omitempty"`
	// productName is the product's name.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ProductName string `json:"productName,omitempty"`
	// version is the product's version.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`
	// serialNumber is the serial number.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	SerialNumber string `json:"serialNumber,omitempty"`
	// uuid is the machine's UUID as its firmware says.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	UUID string `json:"uuid,omitempty"`
	// skuNumber is the stock keeping unit.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	SKUNumber string `json:"skuNumber,omitempty"`
	// family is the product's family.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Family string `json:"family,omitempty"`
}

// BoardInformation is about a main board.
type BoardInformation struct {
	// manufacturer is the manufacturer.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Manufacturer string `json:"manufacturer,omitempty"`
	// product is the product's name.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Product string `json:"product,omitempty"`
	// version is the board's version.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`
	// serialNumber is the serial number.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	SerialNumber string `json:"serialNumber,omitempty"`
	// assetTag is the asset tag.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	AssetTag string `json:"assetTag,omitempty"`
}

// CPU is one processor.
type CPU struct {
	// id is the processor's number.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ID int32 `json:"id,omitempty"`
	// totalCores is the number of cores.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TotalCores int32 `json:"totalCores,omitempty"`
	// totalHardwareThreads is the number of hardware threads.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TotalHardwareThreads int32 `json:"totalHardwareThreads,omitempty"`
	// vendor is the vendor.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Vendor string `json:"vendor,omitempty"`
	// model is the model.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Model string `json:"model,omitempty"`
	// capabilities lists the capability flags.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:MaxLength=128
	Capabilities []string `json:"capabilities,omitempty"`
}

// BlockDevice is one disk.
type BlockDevice struct {
	// path is the device, for example /dev/nvme0n1.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Path string `json:"path,omitempty"`
	// name is the disk's name.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
	// rotational says that the disk has spinning platters.
	// +optional
	Rotational bool `json:"rotational,omitempty"`
	// removable says that the medium can be taken out.
	// +optional
	Removable bool `json:"removable,omitempty"`
	// readOnly says that the disk cannot be written.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`
	// vendor is the vendor.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Vendor string `json:"vendor,omitempty"`
	// model is the model.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Model string `json:"model,omitempty"`
	// serial is the serial number.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Serial string `json:"serial,omitempty"`
	// wwid is the world-wide identifier.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	WWID string `json:"wwid,omitempty"`
	// transport is how the disk is attached, such as sata, nvme/pcie or iscsi; empty where the agent does not say. A wipe need
	// not cover a disk that is attached over a network.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Transport string `json:"transport,omitempty"`
	// physicalBlockSize is the physical block size in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	PhysicalBlockSize int64 `json:"physicalBlockSize,omitempty"`
	// logicalBlockSize is the logical block size in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LogicalBlockSize int64 `json:"logicalBlockSize,omitempty"`
	// hWSectorSize is the hardware sector size in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	HWSectorSize int64 `json:"hWSectorSize,omitempty"`
	// sizeBytes is the disk's size in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SizeBytes int64 `json:"sizeBytes,omitempty"`
	// firmware is the firmware version of the disk.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Firmware string `json:"firmware,omitempty"`
	// pciAddress is the PCI address of the adapter or drive.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	PCIAddress string `json:"pciAddress,omitempty"`
	// slot is where the disk sits, for example an enclosure bay or a port of the adapter; empty where the kernel does not say.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Slot string `json:"slot,omitempty"`
	// content says whether the disk holds data; empty where the agent did not read it.
	// +optional
	Content DiskContent `json:"content,omitempty"`
	// contentFound is the first signature or place at which data was found.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ContentFound string `json:"contentFound,omitempty"`
	// numaNodeID is the NUMA node; -1 is none.
	// +optional
	NUMANodeID int32 `json:"numaNodeID,omitempty"`
}

// MemoryDevice is one memory module.
type MemoryDevice struct {
	// size is the module's size in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SizeBytes int64 `json:"size,omitempty"`
	// deviceSet is the set that the module belongs to.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	DeviceSet string `json:"deviceSet,omitempty"`
	// deviceLocator is the slot.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	DeviceLocator string `json:"deviceLocator,omitempty"`
	// bankLocator is the bank.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	BankLocator string `json:"bankLocator,omitempty"`
	// memoryType is the kind of memory, for example DDR5.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	MemoryType string `json:"memoryType,omitempty"`
	// speed is the highest speed, with its unit.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Speed string `json:"speed,omitempty"`
	// vendor is the vendor.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Vendor string `json:"vendor,omitempty"`
	// serialNumber is the serial number.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	SerialNumber string `json:"serialNumber,omitempty"`
	// assetTag is the asset tag.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	AssetTag string `json:"assetTag,omitempty"`
	// partNumber is the part number.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	PartNumber string `json:"partNumber,omitempty"`
	// configuredMemorySpeed is the speed in use, with its unit.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ConfiguredMemorySpeed string `json:"configuredMemorySpeed,omitempty"`
	// minimumVoltage is the lowest voltage, with its unit.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	MinimumVoltage string `json:"minimumVoltage,omitempty"`
	// maximumVoltage is the highest voltage, with its unit.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	MaximumVoltage string `json:"maximumVoltage,omitempty"`
	// configuredVoltage is the voltage in use, with its unit.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ConfiguredVoltage string `json:"configuredVoltage,omitempty"`
}

// PCIDevice is one PCI device.
type PCIDevice struct {
	// address is the PCI address.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Address string `json:"address,omitempty"`
	// vendor is the vendor's name.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Vendor string `json:"vendor,omitempty"`
	// vendorID is the vendor's number in hex.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	VendorID string `json:"vendorID,omitempty"`
	// product is the product's name.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Product string `json:"product,omitempty"`
	// productID is the product's number in hex.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ProductID string `json:"productID,omitempty"`
	// class is the class, subclass and programming interface in hex, for example 030000 for a VGA controller. A class that begins
	// with 03 is a display controller, that is, a GPU.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Class string `json:"class,omitempty"`
	// driver is the kernel's driver of the device; empty where none is bound.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Driver string `json:"driver,omitempty"`
	// numaNodeID is the NUMA node; -1 is none.
	// +optional
	NumaNodeID int32 `json:"numaNodeID,omitempty"`
}
