// SPDX-License-Identifier: Apache-2.0

// Package redfish is the port to baseboard management controllers: what the controllers may ask of one, and the
// adapter that speaks Redfish to it. Vendor differences end here.
package redfish

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/metalaw/metalaw/internal/oldtls"
)

// PowerState is what a BMC says of a system's power. Unknown is not Off.
type PowerState string

// What a BMC may say of a system's power, in the words of Redfish.
const (
	PowerOn          PowerState = "On"
	PowerOff         PowerState = "Off"
	PowerPaused      PowerState = "Paused"
	PowerPoweringOn  PowerState = "PoweringOn"
	PowerPoweringOff PowerState = "PoweringOff"
	// PowerUnknown stands for null, an empty string and any word that is not in the Redfish enumeration.
	PowerUnknown PowerState = "Unknown"
)

// Health is the rolled-up health of a system.
type Health string

// What a BMC may say of a system's health, in the words of Redfish; HealthUnknown for any other word and for none.
const (
	HealthOK       Health = "OK"
	HealthWarning  Health = "Warning"
	HealthCritical Health = "Critical"
	HealthUnknown  Health = "Unknown"
)

// IndicatorLED is the state of the locator light.
type IndicatorLED string

// What a BMC may say of a locator light, in the words of Redfish; LEDUnknown for any other word and for none.
const (
	LEDUnknown  IndicatorLED = "Unknown"
	LEDLit      IndicatorLED = "Lit"
	LEDBlinking IndicatorLED = "Blinking"
	LEDOff      IndicatorLED = "Off"
)

// Identity is what tells one system from another. UUID is lower case; a field that the BMC leaves out is empty.
type Identity struct {
	UUID         string
	SerialNumber string
	Manufacturer string
	Model        string
	SKU          string
	// Assigned says, of an identity that is wanted, that an operator gave the UUID to a system which shows none. SerialNumber and
	// MAC, as far as they are not empty, prove that system; where both are empty nothing does.
	Assigned bool
	// MAC is the address of one network interface of the system, lower case with colons; only beside Assigned.
	MAC string
}

// BootMode is how a machine boots, in the words of Redfish.
type BootMode string

// The boot modes.
const (
	BootUEFI   BootMode = "UEFI"
	BootLegacy BootMode = "Legacy"
)

// BootOverride is the one-time boot source as the BMC reports it.
type BootOverride struct {
	// Enabled is Disabled, Once or Continuous; empty where the BMC does not say.
	Enabled string
	// Target is None, Pxe, UefiHttp, Hdd, Cd, ...
	Target string
	// Allowed lists the targets that the BMC accepts; empty where it does not say.
	Allowed []string
	// Missing says that the system shows its boot settings and no override among them, and names no settings resource.
	Missing bool
}

// BootProgress is how far a boot came, in the words of Redfish. It may be that of the boot before.
type BootProgress struct {
	LastState string
	// LastStateTime is when that state came, by the BMC's clock: it tells one boot from another, and no order.
	LastStateTime string
}

// StartedOS reports that the firmware has handed over to an operating system, by which a boot override is used.
func (p BootProgress) StartedOS() bool {
	return p.LastState == "OSBootStarted" || p.LastState == "OSRunning"
}

// InSelfTest reports that the firmware has not come to choosing what to boot.
func (p BootProgress) InSelfTest() bool {
	switch p.LastState {
	case "PrimaryProcessorInitializationStarted", "BusInitializationStarted", "MemoryInitializationStarted",
		"SecondaryProcessorInitializationStarted", "PCIResourceConfigStarted", "SetupEntered":
		return true
	}
	return false
}

// TargetBootOrder is the target of PowerOnOnce for a system that shows no boot override: it boots by its boot order.
const TargetBootOrder = "BootOrder"

// NIC is one network interface of the host.
type NIC struct {
	Name       string
	MACAddress string // lower case, colons
	LinkUp     bool
}

// SystemSnapshot is one coherent read of one system (one GET where the BMC allows it).
type SystemSnapshot struct {
	URI      string
	Identity Identity
	Power    PowerState
	Health   Health
	// Critical names what the BMC reports as critical where Health is; empty where it names nothing.
	Critical    []HealthPart
	LED         IndicatorLED
	BIOSVersion string
	MemoryBytes int64
	CPUCount    int
	CPUModel    string
	Boot        BootOverride
	// BootProgress is how far the last boot came; empty where the BMC does not say.
	BootProgress BootProgress
	// BootOrder lists boot option references in order; empty where not offered.
	BootOrder []string
	// ResetTypes lists the reset types offered; empty means not said.
	ResetTypes []string
	// NICs is filled only by a read that asked for them: the host's own, without those that lead to the BMC.
	NICs []NIC
	// NICsIncomplete says that at least one interface could not be read, so that NICs is no full list.
	NICsIncomplete bool
	// TakenAt is when the answer arrived, by our clock; where a list of systems gave it, when that was asked for.
	TakenAt time.Time
}

// ManagerSnapshot is one read of the BMC itself.
type ManagerSnapshot struct {
	UUID            string
	Manufacturer    string
	Model           string
	SKU             string
	SerialNumber    string
	FirmwareVersion string
	Power           PowerState // PowerUnknown where the BMC does not say
	LastResetTime   time.Time  // zero where absent or implausible
	// SystemURIs lists the systems that can be reset, in the BMC's order (GPU trays and the like are left out).
	SystemURIs []string
	// Listed are those systems as the list showed them, where this call read it; empty where the list is remembered. A list
	// may show less of a system than its own resource does.
	Listed []SystemSnapshot
	// Unreadable lists members of the systems collection whose read failed. While it is not empty, a system that is
	// missing from SystemURIs must not be taken for gone.
	Unreadable []string
	// TakenAt is when the BMC was asked. That is before the call where the answer was handed over; see Pool.Park.
	TakenAt time.Time
}

// PowerAction is one disruptive request.
type PowerAction string

// The actions that a system may be asked for, by their Redfish names.
const (
	ActionOn               PowerAction = "On"
	ActionGracefulShutdown PowerAction = "GracefulShutdown"
	ActionForceOff         PowerAction = "ForceOff"
	ActionGracefulRestart  PowerAction = "GracefulRestart"
	ActionForceRestart     PowerAction = "ForceRestart"
	ActionPowerCycle       PowerAction = "PowerCycle"
)

// Reader reads a BMC.
type Reader interface {
	// Manager reads the BMC and lists its systems. The list is read anew when it is older than PoolOptions.SystemsFor, the
	// BMC was reset, or a system's URI gave 404; in between a call is one GET. No system at all is an error.
	Manager(ctx context.Context) (ManagerSnapshot, error)
	// System reads one system by the URI that Manager gave, one GET.
	System(ctx context.Context, uri string) (SystemSnapshot, error)
	// SystemDetail reads one system with its NICs, in as few requests as the BMC allows.
	SystemDetail(ctx context.Context, uri string) (SystemSnapshot, error)
}

// Power changes power. Each call first reads the system and compares want with the identity found:
// on a mismatch it writes nothing and returns an *IdentityError.
type Power interface {
	// Reset asks for one action. It writes nothing and returns nil where the system is already in the state that the
	// action leads to. A restart of a system that is Off is refused with ErrOff, an action that the BMC does not offer
	// with an *UnsupportedError; no other action is put in its place. An accepted task (202) counts as done: read the
	// system for the effect. The returned error says whether the request may have been carried out (see MayHaveHappened).
	Reset(ctx context.Context, uri string, want Identity, action PowerAction) error
}

// Boot changes what a system boots next, with the same identity check as Power.
type Boot interface {
	// PowerOnOnce switches a system on that is Off, to boot once from target ("Pxe", "UefiHttp", "Cd", "Hdd"), in mode
	// UEFI unless another is given: it sets the boot override, reads it back and then asks for On. It refuses unless
	// the system is Off (ErrNotOff), because an override on a running machine would hijack the workload's own reboot. A
	// target that the BMC does not list is refused with an *UnsupportedError naming those that it lists; for Cd its own
	// word for a CD serves as well. Where the override does not show it asks for nothing more and returns an
	// *OverrideError; it looks for some seconds, and a BMC that takes longer shows it to a later call. Whether the
	// power-on may have been carried out is what MayHaveHappened says of its error; the override may stand either way,
	// and a repeated call does not write it again while it shows. With TargetBootOrder it sets no override, and refuses
	// a system that shows one.
	PowerOnOnce(ctx context.Context, uri string, want Identity, target string, mode ...BootMode) error
	// ClearBoot disables an override. It writes nothing where none is set.
	ClearBoot(ctx context.Context, uri string, want Identity) error
	// SetBootOrder sets the persistent boot order. It refuses unless the system is Off (ErrNotOff), and writes nothing where
	// the order holds already, or is pending.
	SetBootOrder(ctx context.Context, uri string, want Identity, order []string) error
}

// Locator changes the locator light, with the same identity check as Power.
type Locator interface {
	// SetLED switches the light. It writes nothing where the light is so already. A light that can only be on or off
	// takes Blinking for Lit.
	SetLED(ctx context.Context, uri string, want Identity, led IndicatorLED) error
}

// ManagerIdentity is what tells one BMC from another. Many BMCs have no serial number and some no UUID, so the systems
// behind one stand for it as well.
type ManagerIdentity struct {
	// UUID and SerialNumber are those of the BMC itself; empty where it does not say.
	UUID         string
	SerialNumber string
	// Systems are known to be behind the BMC.
	Systems []SystemAt
}

// SystemAt is a system and where its BMC lists it.
type SystemAt struct {
	URI      string
	Identity Identity
}

// ManagerReset restarts the BMC itself.
type ManagerReset interface {
	// ResetManager asks for GracefulRestart or ForceRestart of the BMC. Right before it does, it reads the BMC, and writes
	// nothing and returns an *IdentityError where another one answers: where its UUID or serial number differs from want,
	// where none of want's systems is found, or where want has no system and nothing else proves it. It refuses with an
	// *UnsupportedError where the action is not offered, and where no link proves which manager is that of the systems. Every
	// call is a restart. The BMC's sessions and pending boot overrides may be lost with it.
	ResetManager(ctx context.Context, want ManagerIdentity, graceful bool) error
}

// BMC is everything that the controllers use. Close gives the session back; it is safe to call twice.
type BMC interface {
	Reader
	Power
	Boot
	VirtualMedia
	Locator
	ManagerReset
	Close(ctx context.Context) error
}

// Endpoint says where a BMC is and how to trust it.
type Endpoint struct {
	// Address is an IP address or host name, without scheme or port.
	Address string
	Port    int
	// Scheme is "https" or "http".
	Scheme string
	// CABundle holds PEM certificates to trust instead of the system's; empty means the system's.
	CABundle []byte
	// CertificateSHA256 is the fingerprint of the one certificate to trust, 64 lower-case hexadecimal digits. With it neither
	// CABundle nor InsecureSkipVerify counts, nor the name and the dates of the certificate. Empty means no such pin.
	CertificateSHA256 string
	// InsecureSkipVerify trusts any certificate. Only for fleets whose owner said so.
	InsecureSkipVerify bool
	// OldTLS is what the BMC is allowed that Go no longer speaks by default.
	OldTLS oldtls.Allowed
}

// Equal says that two endpoints are one place, trusted in the same way.
func (e Endpoint) Equal(other Endpoint) bool {
	return e.Address == other.Address && e.Port == other.Port && e.Scheme == other.Scheme &&
		e.CertificateSHA256 == other.CertificateSHA256 &&
		e.InsecureSkipVerify == other.InsecureSkipVerify && e.OldTLS == other.OldTLS &&
		bytes.Equal(e.CABundle, other.CABundle)
}

// Digest tells one place and way of trust from another, as Equal does.
func (e Endpoint) Digest() [32]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %d %q %x %t %t", e.Address, e.Scheme, e.Port, e.CertificateSHA256,
		e.CABundle, e.InsecureSkipVerify, e.OldTLS))
}

// Credentials log in to a BMC. They are never logged.
type Credentials struct {
	Username string
	Password string
}
