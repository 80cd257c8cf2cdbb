// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metalaw/metalaw/internal/uuids"
)

// Machine is one system behind a BMC. Its methods may be called from any goroutine, a guest's included.
type Machine struct {
	bmc      *bmc
	name     string
	spec     MachineSpec
	systemID string
	err      error
	delays   Delays
	guest    Guest
	// unseen are drives that only the BMC knows.
	drives, unseen []*Drive
	// host is the system of a captured tree that the machine is; nil without a tree.
	host     *treeHost
	invented []string

	// The rest is guarded by bmc.mu. reordered says that the order is not the captured one any more.
	reordered bool

	identity Identity
	hardware Hardware
	nics     []NIC
	led      string
	ignores  bool
	critical []string // parts; see SetCritical

	state   PowerState
	history []stateAt
	epoch   uint64 // grows when a pending transition is called off
	timer   Timer
	inPOST  bool
	boots   int
	nmis    int
	running *BootSelection
	// restarts says that the machine boots again when its guest ends, which a graceful restart asked for.
	restarts bool
	override override
	// formerOverride is what was set before the override that was accepted at overriddenAt.
	formerOverride override
	overriddenAt   time.Time
	order          []string
	// media are the slots that were ever used, by ID or URI.
	media map[string]*medium

	endGuest  context.CancelFunc
	guestDone chan struct{}
}

// stateAt is one entry of the power history.
type stateAt struct {
	state PowerState
	at    time.Time
}

func newMachine(b *bmc, index int, spec MachineSpec) *Machine {
	f := b.fleet
	m := &Machine{
		bmc: b, name: spec.Name, spec: spec, guest: spec.Guest, ignores: spec.IgnoresShutdown,
		state: PowerOff, led: "Off", override: override{enabled: "Disabled", target: "None", mode: "UEFI"},
		order: b.profile.ownBootOrder(),
	}
	if m.name == "" {
		m.name = fmt.Sprintf("machine-%03d", index)
	}
	if m.guest == nil {
		m.guest = f.opts.Guest
	}
	m.delays = mergeDelays(f.opts.Delays, spec.Delays)
	m.history = []stateAt{{PowerOff, f.clock.Now()}}
	dice := newDice(f.opts.Seed^0x6d6574616c6177, index)
	if b.tree != nil {
		m.takeHost(&spec)
	}
	m.identity = newIdentity(b, dice, spec.Identity)
	m.hardware = newHardware(spec.Hardware)
	m.nics = newNICs(b.profile, f.opts.Seed, index, spec.NICs)
	m.drives = newDrives(f.clock, m.delays.Erase, m.identity.SerialNumber+m.name, dice, spec.Drives)
	if len(spec.Unseen) > 0 {
		m.unseen = newDrives(f.clock, m.delays.Erase, m.identity.SerialNumber+m.name+"U", dice, spec.Unseen)
	}
	for _, d := range m.drives {
		d.tell = func(what HappeningKind, contents string) {
			f.happened(Happening{Machine: m.name, What: what, Drive: d.Name, Contents: contents})
		}
	}
	m.systemID = strings.ReplaceAll(b.profile.SystemID, "{serial}", m.identity.SerialNumber)
	if m.host != nil {
		m.systemID = m.host.id
	} else if spec.Behind != nil {
		b.mu.Lock()
		m.systemID = "Node" + strconv.Itoa(len(b.machines))
		b.mu.Unlock()
	}
	return m
}

func mergeDelays(fleet, own Delays) Delays {
	pick := func(base, v time.Duration) time.Duration {
		switch {
		case v == 0:
			return base
		case v < 0:
			return 0
		}
		return v
	}
	return Delays{
		Power: pick(fleet.Power, own.Power), Boot: pick(fleet.Boot, own.Boot), Shutdown: pick(fleet.Shutdown, own.Shutdown),
		Erase: pick(fleet.Erase, own.Erase), BMCReset: pick(fleet.BMCReset, own.BMCReset),
	}
}

func newIdentity(b *bmc, dice *rand.Rand, want Identity) Identity {
	p := b.profile
	id := Identity{
		UUID: randomUUID(dice), SerialNumber: b.serial, Manufacturer: p.Manufacturer, Model: p.Model, SKU: p.SKU,
	}
	if p.Name == ProfileDell { // each has a service tag of its own
		id.SKU = "7X" + b.serial[max(0, len(b.serial)-5):]
	}
	return mergeIdentity(id, want)
}

// mergeIdentity replaces the fields of id that over names.
func mergeIdentity(id, over Identity) Identity {
	set := func(dst *string, v string) {
		if v != "" {
			*dst = v
		}
	}
	set(&id.UUID, strings.ToLower(over.UUID))
	set(&id.SerialNumber, over.SerialNumber)
	set(&id.Manufacturer, over.Manufacturer)
	set(&id.Model, over.Model)
	set(&id.SKU, over.SKU)
	return id
}

func newHardware(want Hardware) Hardware {
	if want.CPUModel == "" {
		want.CPUModel = "Emulated CPU 2.0GHz"
	}
	if want.Sockets == 0 {
		want.Sockets = 2
	}
	if want.CoresPerSocket == 0 {
		want.CoresPerSocket = 16
	}
	if want.MemoryBytes == 0 {
		want.MemoryBytes = 256 << 30
	}
	if want.BIOSVersion == "" {
		want.BIOSVersion = "2.1.0"
	}
	return want
}

func newNICs(p *Profile, seed uint64, index int, want []NIC) []NIC {
	if want != nil {
		return slices.Clone(want)
	}
	var nics []NIC
	for i := range 2 {
		nics = append(nics, NIC{Name: fmt.Sprintf("eno%d", i+1), MACAddress: macAddress(p.NICOUI, seed, index, i+1), LinkUp: i == 0})
	}
	return nics
}

func newDrives(clock Clock, takes time.Duration, serialBase string, dice *rand.Rand, want []DriveSpec) []*Drive {
	if want == nil {
		want = []DriveSpec{{Name: "nvme0n1", Model: "Emulated NVMe", SizeBytes: 960_000_000_000}}
	}
	var drives []*Drive
	for i, spec := range want {
		if spec.Name == "" {
			spec.Name = fmt.Sprintf("nvme%dn1", i)
		}
		if spec.Serial == "" {
			spec.Serial = strings.ToUpper(strings.ReplaceAll(fmt.Sprintf("%sD%d", serialBase, i), "-", ""))
		}
		if spec.WWID == "" {
			spec.WWID = "eui." + randomHex(dice, 8)
		}
		if spec.Vendor == "" {
			spec.Vendor = "Metalaw"
		}
		if spec.Transport == "" {
			spec.Transport = TransportSATA
			if strings.HasPrefix(spec.Name, "nvme") {
				spec.Transport = TransportPCIe
			}
		}
		drives = append(drives, newDrive(spec, clock, takes))
	}
	return drives
}

// Name is the machine's name in its fleet.
func (m *Machine) Name() string { return m.name }

// Err is what was wrong with the machine's spec or its listener; nil where nothing was.
func (m *Machine) Err() error { return m.err }

// URL is the BMC's base URL, such as https://127.0.1.1:8443, without a path.
func (m *Machine) URL() string {
	scheme := "http"
	if m.bmc.fleet.certs != nil {
		scheme = "https"
	}
	return scheme + "://" + m.bmc.port().address()
}

// Address is the BMC's IP address, and Port its port once the fleet has started.
func (m *Machine) Address() string {
	host, _, _ := net.SplitHostPort(m.bmc.port().address())
	return host
}

// Port is the BMC's port; 0 before the fleet has started where any free port was asked for.
func (m *Machine) Port() int {
	_, port, _ := net.SplitHostPort(m.bmc.port().address())
	n, _ := strconv.Atoi(port)
	return n
}

// BMCMAC is the MAC address of the BMC, lower case with colons.
func (m *Machine) BMCMAC() string { return m.bmc.mac }

// Credentials are those of the first account, as they are now.
func (m *Machine) Credentials() (username, password string) {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	a := m.bmc.accounts[0]
	return a.name, a.password
}

// ProfileName names the make of the BMC.
func (m *Machine) ProfileName() string { return m.bmc.profileNow().Name }

// profileNow is the profile at this moment; it is replaced and never changed.
func (b *bmc) profileNow() *Profile {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.profile
}

// SystemURI is the path of the system's resource, as the BMC spells it.
func (m *Machine) SystemURI() string {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	return m.bmc.uri(m.systemPath())
}

// Identity is the system's identity, whatever of it the BMC shows.
func (m *Machine) Identity() Identity {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	return m.identity
}

// InBandUUID is the UUID that the machine reads of itself; on some makes with other byte order than over Redfish.
func (m *Machine) InBandUUID() string {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	if m.bmc.profile.SwapsUUID {
		return uuids.Swap(m.identity.UUID)
	}
	return m.identity.UUID
}

// NICs are the host's network interfaces.
func (m *Machine) NICs() []NIC {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	return slices.Clone(m.nics)
}

// Hardware is what the machine is made of.
func (m *Machine) Hardware() Hardware {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	return m.hardware
}

// bays are the drives that the BMC shows: those in the machine, and those that only the BMC knows. bmc.mu is held.
func (m *Machine) bays() []*Drive {
	if m.spec.LateDrives && m.boots == 0 {
		return nil
	}
	seen := slices.DeleteFunc(m.Drives(), func(d *Drive) bool { return d.Transport.Remote() })
	return append(seen, slices.DeleteFunc(slices.Clone(m.unseen), (*Drive).isOut)...)
}

// Functions are the storage functions without a driver.
func (m *Machine) Functions() []FunctionSpec { return slices.Clone(m.spec.Functions) }

// Unseen are the drives that only the BMC knows, but those that were taken out.
func (m *Machine) Unseen() []*Drive { return slices.DeleteFunc(slices.Clone(m.unseen), (*Drive).isOut) }

// Drives are the machine's drives but those that were taken out, always the same objects.
func (m *Machine) Drives() []*Drive { return slices.DeleteFunc(slices.Clone(m.drives), (*Drive).isOut) }
