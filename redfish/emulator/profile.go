// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"slices"
	"time"
)

// PowerState is a system's power as Redfish spells it.
type PowerState string

// The power states that an emulated machine passes through.
const (
	PowerOn          PowerState = "On"
	PowerOff         PowerState = "Off"
	PowerPoweringOn  PowerState = "PoweringOn"
	PowerPoweringOff PowerState = "PoweringOff"
)

// ResetType is the parameter of ComputerSystem.Reset.
type ResetType string

// The reset types that the emulator knows; a profile offers some of them.
const (
	ResetOn               ResetType = "On"
	ResetForceOn          ResetType = "ForceOn"
	ResetForceOff         ResetType = "ForceOff"
	ResetGracefulShutdown ResetType = "GracefulShutdown"
	ResetGracefulRestart  ResetType = "GracefulRestart"
	ResetForceRestart     ResetType = "ForceRestart"
	ResetPowerCycle       ResetType = "PowerCycle"
	ResetPushPowerButton  ResetType = "PushPowerButton"
	ResetNmi              ResetType = "Nmi"
)

// ETagUse says how a BMC treats entity tags.
type ETagUse string

const (
	// ETagsNone sends no entity tag and ignores If-Match.
	ETagsNone ETagUse = "None"
	// ETagsOffered sends entity tags and honours If-Match where it is given.
	ETagsOffered ETagUse = "Offered"
	// ETagsRequired answers 428 to a PATCH without If-Match.
	ETagsRequired ETagUse = "Required"
)

// Presence says how an identity field appears.
type Presence string

const (
	// Present is the normal case.
	Present Presence = ""
	// Absent leaves the field out.
	Absent Presence = "Absent"
	// Null sends JSON null.
	Null Presence = "Null"
	// Empty sends an empty string.
	Empty Presence = "Empty"
)

// ModeRule says what a BMC wants of BootSourceOverrideMode.
type ModeRule string

const (
	// ModeOptional accepts it.
	ModeOptional ModeRule = ""
	// ModeRequired answers 400 where an override is set without mode UEFI.
	ModeRequired ModeRule = "Required"
	// ModeRefused answers 400 where it is given.
	ModeRefused ModeRule = "Refused"
)

// LEDStyle says by which property the locator light is seen and set.
type LEDStyle string

const (
	// LEDIndicator is the older IndicatorLED (Lit, Blinking, Off).
	LEDIndicator LEDStyle = "IndicatorLED"
	// LEDLocation is the newer LocationIndicatorActive (true, false).
	LEDLocation LEDStyle = "LocationIndicatorActive"
	// LEDNone has no locator light.
	LEDNone LEDStyle = "None"
	// LEDBoth offers both.
	LEDBoth LEDStyle = "Both"
)

// Expand is what a BMC offers of the query $expand.
type Expand struct {
	// Supported: the query works. Otherwise it is answered with UnsupportedStatus.
	Supported bool
	// ExpandAll: the forms "*" and "~" work besides ".".
	ExpandAll bool
	// Levels: the parameter $levels works.
	Levels bool
	// MaxLevels bounds $levels.
	MaxLevels int
	// UnsupportedStatus answers $expand where it is not supported; 0 ignores the query.
	UnsupportedStatus int
}

// Profile is how one make of BMC behaves. It is data: copy one and change what a test needs
// (MachineSpec.Tweak, Machine.Tweak).
type Profile struct {
	// Name is how MachineSpec and flags call it.
	Name                                      string
	Manufacturer, Model, SKU, FirmwareVersion string
	// OUI begins the BMC's MAC address, NICOUI those of the host.
	OUI, NICOUI string
	// Username and Password are the factory account.
	Username, Password string

	// SystemID, ManagerID and ChassisID are the last segments of the URIs; "{serial}" stands for the serial number.
	SystemID, ManagerID, ChassisID string
	// ExtraSystems are listed beside the host: GPU trays without reset action and boot, with a UUID where TrayUUID says so.
	ExtraSystems []string
	TrayUUID     bool
	// ExtraManagers are listed before the BMC: those of GPU trays, which say that they manage the extra systems.
	ExtraManagers []string
	// NoManagerLinks leaves ManagerForServers out of the BMC's own manager.
	NoManagerLinks bool
	// ManagerResets lists how a manager can be restarted.
	ManagerResets []ResetType
	// TrailingSlash ends every @odata.id in "/".
	TrailingSlash bool
	// LowercaseLinks spells the manager's links to its systems in lower case.
	LowercaseLinks bool

	// UUID and Serial say how the identity fields appear.
	UUID, Serial Presence
	// SwapsUUID: the UUID that the machine sees of itself has the bytes of its first three groups reversed.
	SwapsUUID bool
	// MACStyle is "upper", "lower" or "dashes".
	MACStyle string
	// ExtraNICs are MAC addresses listed after the real ones, such as "Not Available" or a host interface's.
	ExtraNICs []string
	// NoSystemNICs hides the system's EthernetInterfaces.
	NoSystemNICs bool

	ResetTypes []ResetType
	// ResetByActionInfo lists the reset types in an ActionInfo resource instead of inline.
	ResetByActionInfo bool
	// ResetStatus answers an accepted action: 200 with a message, or 204.
	ResetStatus int
	// AlreadyStatus answers a reset that leads where the system is already: 204, 400 or 409.
	AlreadyStatus int
	// RefusesInPOST answers 409 to a reset while the firmware tests itself.
	RefusesInPOST bool
	// ActionRefusesIfMatch answers 412 to an action that carries If-Match.
	ActionRefusesIfMatch bool

	BootTargets []string
	// BootEnabled lists the accepted values of BootSourceOverrideEnabled.
	BootEnabled  []string
	OverrideMode ModeRule
	// HTTPBootURI: Boot.HttpBootUri may be set.
	HTTPBootURI bool
	// OnceReadsContinuous reports an override Once as Continuous.
	OnceReadsContinuous bool
	// OverrideNeverClears leaves a consumed override Once in place, so that it works again.
	OverrideNeverClears bool
	// OverrideSurvivesReset keeps an override over a restart of the BMC.
	OverrideSurvivesReset bool
	// SettingsID is the settings resource below the system ("SD", "Pending", "Settings"); empty: none.
	SettingsID string
	// SettingsRequired: boot can be changed only there.
	SettingsRequired bool
	// SettingsShows lists the properties of Boot that the settings resource shows and takes; empty: all.
	SettingsShows []string
	// TargetsInSettings lists the boot targets in the settings resource and not in the system.
	TargetsInSettings bool
	// BootProgress shows how far a boot came.
	BootProgress bool
	// OverrideShowsAfter is how long reads show the former override after a new one was accepted.
	OverrideShowsAfter time.Duration
	// PatchStatus answers an accepted PATCH: 200 with the resource, or 204.
	PatchStatus int

	ETags ETagUse
	// WeakETags sends the form W/"...".
	WeakETags bool
	Expand    Expand

	LED LEDStyle
	// ManagerPower: the manager has a PowerState.
	ManagerPower bool
	// ClockIsUnset shows a LastResetTime that means nothing.
	ClockIsUnset bool

	SessionTimeout time.Duration
	MaxSessions    int
	// AccountSlots: accounts are fixed slots that are changed by PATCH, POST is answered 405; 0: POST creates.
	AccountSlots int
	// LockoutAfter failed logins lock an account for LockoutFor; 0: never.
	LockoutAfter int
	LockoutFor   time.Duration

	// UUIDNullFor is how long after a restart of the BMC its systems show a null UUID.
	UUIDNullFor time.Duration
	// NoOverride: Boot shows the boot order and no override, and a change of one is refused.
	NoOverride bool
	// Health says where the parts of a critical system are named.
	Health HealthStyle
	// Media is what virtual media the make offers.
	Media MediaOffer
}

// clone copies p so that a change of one machine's profile reaches no other.
func (p *Profile) clone() *Profile {
	c := *p
	c.ExtraSystems = slices.Clone(p.ExtraSystems)
	c.ExtraManagers = slices.Clone(p.ExtraManagers)
	c.ManagerResets = slices.Clone(p.ManagerResets)
	c.SettingsShows = slices.Clone(p.SettingsShows)
	c.ExtraNICs = slices.Clone(p.ExtraNICs)
	c.ResetTypes = slices.Clone(p.ResetTypes)
	c.BootTargets = slices.Clone(p.BootTargets)
	c.BootEnabled = slices.Clone(p.BootEnabled)
	c.Media = p.Media.clone()
	return &c
}

// LookupProfile returns a copy of the profile of that name; false where there is none.
func LookupProfile(name string) (Profile, bool) {
	for _, p := range allProfiles() {
		if p.Name == name {
			return p, true
		}
	}
	return Profile{}, false
}

// ProfileNames lists the profiles in a fixed order.
func ProfileNames() []string {
	var names []string
	for _, p := range allProfiles() {
		names = append(names, p.Name)
	}
	return names
}
