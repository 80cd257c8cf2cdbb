// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"context"
	"strings"
	"time"
)

// Delays say how long things take. Zero means the default, a negative value means at once.
type Delays struct {
	// Power is how long PoweringOn and a forced PoweringOff last (default 50 ms).
	Power time.Duration
	// Boot is the firmware's self test, between On and the start of the operating system (default 50 ms).
	Boot time.Duration
	// Shutdown is how long an operating system takes to end itself (default 50 ms).
	Shutdown time.Duration
	// Erase is how long one drive takes to erase (default 50 ms).
	Erase time.Duration
	// BMCReset is how long a BMC is away while it restarts (default 100 ms).
	BMCReset time.Duration
}

func (d Delays) withDefaults() Delays {
	set := func(v *time.Duration, def time.Duration) {
		switch {
		case *v == 0:
			*v = def
		case *v < 0:
			*v = 0
		}
	}
	set(&d.Power, 50*time.Millisecond)
	set(&d.Boot, 50*time.Millisecond)
	set(&d.Shutdown, 50*time.Millisecond)
	set(&d.Erase, 50*time.Millisecond)
	set(&d.BMCReset, 100*time.Millisecond)
	return d
}

// Options describe a fleet. The zero value is a fleet of plain-http BMCs on free ports of 127.0.0.1.
type Options struct {
	// Seed decides every identity and every fault's dice. The same seed and the same Adds give the same fleet.
	Seed uint64
	// TLS serves https with certificates of a CA made for this fleet (Fleet.CA).
	TLS bool
	// Network gives every BMC its own address of this prefix, such as 127.0.1.0/24. The network's own address is
	// left out. Empty: all BMCs share Host and differ by port.
	Network string
	// Host is where BMCs listen without Network (default 127.0.0.1).
	Host string
	// Port is every BMC's port with Network, and the first of consecutive ports without. 0: any free port.
	Port int
	// InMemory opens no socket: only Fleet.Client and Fleet.DialContext reach the fleet.
	InMemory bool
	Delays   Delays
	// Profile is for machines whose spec names none (default generic).
	Profile string
	// Username and Password replace the factory account of every profile.
	Username, Password string
	// Guest is what runs on machines whose spec names none; nil: nothing.
	Guest Guest
	// Clock is the fleet's time (default: the time package).
	Clock Clock
	// Interfere sees each write twice, once as it arrived and once after it was carried out, before the answer goes out
	// (done). Where it returns false the connection is reset, and what it saw first is not carried out. It may block, and
	// may be called by many goroutines; nil lets everything pass.
	Interfere func(w Write, done bool) bool
	// Witness is told what truly happens to machines, in order for each of them. It must neither block nor ask the fleet
	// anything; nil tells nobody.
	Witness func(Happening)
	// JournalLimit bounds the log of writes; the oldest are forgotten (default 100000).
	JournalLimit int
}

func (o Options) withDefaults() Options {
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	if o.Profile == "" {
		o.Profile = ProfileGeneric
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.JournalLimit <= 0 {
		o.JournalLimit = 100_000
	}
	o.Delays = o.Delays.withDefaults()
	return o
}

// Identity is what tells one system from another.
type Identity struct {
	UUID         string
	SerialNumber string
	Manufacturer string
	Model        string
	SKU          string
}

// DMI is what the SMBIOS table of the machine says of its system and its board. On a Dell the service tag, which
// Redfish shows as SKU, is the serial number of the system, and the one that Redfish shows belongs to the board.
func (id Identity) DMI() (system, board string) {
	if strings.HasPrefix(id.Manufacturer, "Dell") && id.SKU != "" {
		return id.SKU, "." + id.SKU + "." + id.SerialNumber + "."
	}
	return id.SerialNumber, ""
}

// NIC is one network interface of the host, as the machine sees it itself.
type NIC struct {
	Name       string
	MACAddress string // lower case, colons
	LinkUp     bool
}

// Hardware is what a machine is made of, besides NICs and drives.
type Hardware struct {
	CPUModel       string
	Sockets        int
	CoresPerSocket int
	MemoryBytes    int64
	BIOSVersion    string
	// DIMMs are the memory modules; empty shows two without numbers, of half the memory each.
	DIMMs []DIMM
}

// DIMM is one memory module.
type DIMM struct {
	Locator      string
	Manufacturer string
	SerialNumber string
	PartNumber   string
	SizeBytes    int64
}

// MachineSpec describes one machine. Every field may stay zero; the fleet fills in what the seed decides.
type MachineSpec struct {
	// Name must be unique in the fleet (default machine-000, machine-001, ...).
	Name string
	// Profile names the make of the BMC (default Options.Profile).
	Profile string
	// Tree is a captured tree to serve instead of a profile; see Fleet.AddTree.
	Tree *Tree
	// Tweak changes this BMC's copy of the profile before anything is derived from it.
	Tweak func(*Profile)
	// Behind puts the machine behind the BMC of another one, as a further node of one chassis.
	// Profile, credentials and serial number are then the other's.
	Behind *Machine
	// Identity replaces the fields that are not empty.
	Identity Identity
	// BMCMAC replaces the BMC's MAC address.
	BMCMAC string
	// NICs replaces the two default NICs.
	NICs     []NIC
	Hardware Hardware
	// Drives replaces the default drive (one empty NVMe drive of 960 GB).
	Drives []DriveSpec
	// Unseen are drives that the BMC lists besides, and that what runs on the machine does not see. A captured tree lists its own.
	Unseen []DriveSpec
	// Functions are storage functions for which what runs on the machine has no driver. The BMC does not list them.
	Functions []FunctionSpec
	// LateDrives lets the BMC list drives only once the machine has booted, as many do.
	LateDrives bool
	// Username and Password replace the account of the profile and the fleet.
	Username, Password string
	// Power is the state to begin with (default Off). On means that it runs what its boot order names.
	Power PowerState
	// Delays replaces the fleet's; zero fields keep them.
	Delays Delays
	// IgnoresShutdown: the operating system does not react to graceful requests.
	IgnoresShutdown bool
	// Guest replaces the fleet's.
	Guest Guest
}

// Guest is what runs on a machine: a stand-in agent, or a real virtual machine.
// For one machine the calls never overlap: the next begins after the former returned.
type Guest interface {
	// PoweredOn is called when the firmware has chosen what to boot. ctx ends when the machine is switched off or
	// restarted; the guest then returns. It may return earlier: the machine stays on. After a restart it is called
	// again, without PoweredOff between.
	PoweredOn(ctx context.Context, m *Machine, boot BootSelection)
	// PoweredOff is called once the machine is off and PoweredOn has returned.
	PoweredOff(m *Machine)
}

// PowerButton is a Guest that hears of graceful requests. Its machine goes on until the guest ends by itself and says
// so by Machine.GuestEnded, as the BMC of a real machine does not know when an operating system has ended.
type PowerButton interface {
	Guest
	// Press tells the guest that somebody asks it to end. It is called in a goroutine of its own, beside PoweredOn.
	Press(m *Machine)
}

// BootSelection is what a machine boots.
type BootSelection struct {
	// Target is Pxe, UefiHttp, Hdd, Cd, ...
	Target string
	// Override says that a boot override chose it, not the boot order.
	Override bool
	// Mode is the mode of the boot: UEFI or Legacy.
	Mode string
	// HTTPBootURI is the URI that the override carried, if any.
	HTTPBootURI string
	// MediaURL is the URL of the image in the virtual CD drive, where Target is Cd; empty where the drive is empty.
	MediaURL string
	// Boot counts this machine's boots from 1.
	Boot int
	// At is when the firmware chose, by the fleet's clock.
	At time.Time
}
