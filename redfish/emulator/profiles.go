// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"net/http"
	"time"
)

// The profiles that are built in.
const (
	ProfileGeneric    = "generic"
	ProfileDell       = "dell"
	ProfileHPE        = "hpe"
	ProfileSupermicro = "supermicro"
	ProfileLenovo     = "lenovo"
	ProfileOpenBMC    = "openbmc"
	ProfileAMI        = "ami"
	ProfileDGX        = "dgx"
)

// profiles is built anew for each call, because a caller may change what it got.
func profiles() []Profile {
	return []Profile{
		genericProfile(), dellProfile(), hpeProfile(), supermicroProfile(), lenovoProfile(), openBMCProfile(), amiProfile(),
		dgxProfile(),
	}
}

// genericProfile is a BMC without quirks; the others start from it and name only what differs.
func genericProfile() Profile {
	return Profile{
		Name: ProfileGeneric, Manufacturer: "Metalaw", Model: "Emulated Server", SKU: "ML-1", FirmwareVersion: "1.0.0",
		// A locally administered prefix: no vendor database claims it.
		// Its interfaces look as a factory's do: what is administered locally proves no machine.
		OUI: "02:4d:4c", NICOUI: "a0:4d:4e",
		Username: "admin", Password: "password",
		SystemID: "1", ManagerID: "1", ChassisID: "1",
		MACStyle: "lower",
		ResetTypes: []ResetType{
			ResetOn, ResetForceOn, ResetForceOff, ResetGracefulShutdown, ResetGracefulRestart, ResetForceRestart,
			ResetPowerCycle, ResetPushPowerButton, ResetNmi,
		},
		ResetStatus: http.StatusNoContent, AlreadyStatus: http.StatusNoContent,
		BootTargets: []string{"None", "Pxe", "UefiHttp", "Hdd", "Cd", "Usb", "BiosSetup"},
		BootEnabled: []string{"Disabled", "Once", "Continuous"},
		HTTPBootURI: true, PatchStatus: http.StatusOK,
		ManagerResets: []ResetType{ResetGracefulRestart, ResetForceRestart},
		ETags:         ETagsOffered,
		Expand:        Expand{Supported: true, ExpandAll: true, Levels: true, MaxLevels: 2},
		LED:           LEDBoth, ManagerPower: true,
		SessionTimeout: 30 * time.Minute, MaxSessions: 8,
		LockoutAfter: 5, LockoutFor: time.Minute,
		Media: MediaOffer{OnSystem: []MediaSlot{{"CD1", opticalTypes}, {"USB1", []string{"USBStick"}}}},
	}
}

// The media types that slots list.
var (
	opticalTypes = []string{"CD", "DVD"}
	anyTypes     = []string{"CD", "DVD", "Floppy", "USBStick"}
)

// slots are several of one kind.
func slots(types []string, ids ...string) []MediaSlot {
	list := make([]MediaSlot, 0, len(ids))
	for _, id := range ids {
		list = append(list, MediaSlot{ID: id, Types: types})
	}
	return list
}

// dellProfile: iDRAC has long ids, no ForceOn, few entity tags, refuses If-Match on actions with 412, answers 409 to
// a reset that changes nothing, and has account slots instead of account creation. iDRAC9 7.x shows BootOrder,
// BootSourceOverrideMode, UefiTargetBootSourceOverride and StopBootOnFault in /Settings, and the override on the system.
func dellProfile() Profile {
	p := genericProfile()
	p.Name, p.Manufacturer, p.Model, p.SKU, p.FirmwareVersion = ProfileDell, "Dell Inc.", "PowerEdge R750", "7X9K2L3", "7.10.50.00"
	p.OUI, p.NICOUI = "c8:4b:d6", "b4:96:91"
	p.Username, p.Password = "root", "calvin"
	p.SystemID, p.ManagerID, p.ChassisID = "System.Embedded.1", "iDRAC.Embedded.1", "System.Embedded.1"
	p.MACStyle = "upper"
	p.ResetTypes = []ResetType{
		ResetOn, ResetForceOff, ResetForceRestart, ResetGracefulRestart, ResetGracefulShutdown, ResetPushPowerButton,
		ResetNmi, ResetPowerCycle,
	}
	p.AlreadyStatus, p.ActionRefusesIfMatch = http.StatusConflict, true
	p.SettingsID, p.SettingsShows = "Settings", []string{"BootOrder", "BootSourceOverrideMode"}
	p.BootTargets = []string{"None", "Pxe", "Floppy", "Cd", "Hdd", "BiosSetup", "Utilities", "UefiTarget", "SDCard", "UefiHttp"}
	p.HTTPBootURI = false
	p.ETags, p.LED = ETagsNone, LEDIndicator
	p.Expand = Expand{Supported: true, ExpandAll: true, Levels: true, MaxLevels: 1}
	p.AccountSlots = 16
	p.LockoutAfter, p.LockoutFor = 3, 5*time.Minute
	p.Health = HealthRollups
	p.Media = MediaOffer{OnSystem: slots([]string{"CD", "DVD", "USBStick"}, "1", "2"),
		OnManager: []MediaSlot{{"RemovableDisk", []string{"USBStick"}}, {"CD", opticalTypes}}}
	return p
}

// hpeProfile: iLO ends links in "/", has weak entity tags, no ForceOn, no power state on its manager, answers actions
// with 200 and a Success message, and ends sessions after 30 s.
func hpeProfile() Profile {
	p := genericProfile()
	p.Name, p.Manufacturer, p.Model, p.SKU, p.FirmwareVersion = ProfileHPE, "HPE", "ProLiant DL325 Gen10 Plus", "P18606-B21", "iLO 5 v2.46"
	p.OUI, p.NICOUI = "94:40:c9", "5c:ba:2c"
	p.Username, p.Password = "Administrator", "ILO5-FACTORY"
	p.TrailingSlash, p.MACStyle = true, "upper"
	p.ResetTypes = []ResetType{
		ResetOn, ResetForceOff, ResetGracefulShutdown, ResetForceRestart, ResetNmi, ResetPushPowerButton, ResetGracefulRestart,
	}
	p.BootTargets = []string{
		"None", "Cd", "Hdd", "Usb", "SDCard", "Utilities", "Diags", "BiosSetup", "Pxe", "UefiShell", "UefiHttp", "UefiTarget",
	}
	p.HTTPBootURI = false
	p.ResetStatus, p.AlreadyStatus = http.StatusOK, http.StatusBadRequest
	p.ETags, p.WeakETags = ETagsOffered, true
	p.ManagerPower, p.LED = false, LEDIndicator
	p.Expand = Expand{Supported: true, Levels: true, MaxLevels: 1}
	p.SessionTimeout = 30 * time.Second
	p.UUIDNullFor, p.Health = 2*time.Second, HealthAggregate
	p.Media = MediaOffer{OnManager: []MediaSlot{{"1", []string{"Floppy", "USBStick"}}, {"2", opticalTypes}}}
	return p
}

// supermicroProfile: reset types by ActionInfo, an override wants mode UEFI, no power state on the manager, and
// a reset that changes nothing is accepted.
func supermicroProfile() Profile {
	p := genericProfile()
	p.Name, p.Manufacturer, p.Model, p.FirmwareVersion = ProfileSupermicro, "Supermicro", "SYS-821GE-TNHR", "11.01.01"
	p.SKU = "To be filled by O.E.M."
	p.OUI, p.NICOUI = "7c:c2:55", "3c:ec:ef"
	p.Username, p.Password = "ADMIN", "ADMIN"
	p.MACStyle = "upper"
	p.ResetByActionInfo, p.ResetStatus, p.AlreadyStatus = true, http.StatusOK, http.StatusOK
	p.ResetTypes = []ResetType{
		ResetOn, ResetForceOff, ResetGracefulShutdown, ResetGracefulRestart, ResetForceRestart, ResetNmi, ResetForceOn, ResetPowerCycle,
	}
	p.BootTargets = []string{"None", "Pxe", "Floppy", "Cd", "Usb", "Hdd", "BiosSetup", "UsbCd", "UefiBootNext", "UefiHttp"}
	p.HTTPBootURI, p.SessionTimeout = false, 5*time.Minute
	p.OverrideMode = ModeRequired
	p.ExtraNICs = []string{"Not Available"}
	p.ManagerPower = false
	p.LockoutAfter = 3
	p.Health = HealthSummaries
	p.Media = MediaOffer{OnManager: slots(anyTypes, "VirtualMedia1", "VirtualMedia2", "VirtualMedia3"), SystemLinksManager: true,
		EjectWhenInserted: true, KeepsImage: true}
	return p
}

// lenovoProfile: overrides only Once or Disabled, no UefiHttp, entity tags. The tree of an SR670 V2 shows BootOrder and
// nothing else in /Pending.
func lenovoProfile() Profile {
	p := genericProfile()
	p.Name, p.Manufacturer, p.Model, p.SKU = ProfileLenovo, "Lenovo", "ThinkSystem SR670 V2", "7Z23CTO1WW"
	p.FirmwareVersion = "TGBT42S 2.83 2023-07-05"
	p.OUI, p.NICOUI = "08:8f:c3", "0c:42:a1"
	p.Username, p.Password = "USERID", "PASSW0RD"
	p.ResetTypes = []ResetType{
		ResetOn, ResetNmi, ResetGracefulShutdown, ResetGracefulRestart, ResetForceOn, ResetForceOff, ResetForceRestart,
	}
	p.BootTargets = []string{"None", "Pxe", "Cd", "Usb", "Hdd", "BiosSetup", "Diags", "UefiTarget"}
	p.BootEnabled = []string{"Disabled", "Once"}
	p.HTTPBootURI = false
	p.SettingsID, p.SettingsShows = "Pending", []string{"BootOrder"}
	p.AccountSlots = 12
	p.LED, p.SessionTimeout = LEDIndicator, 5*time.Minute
	media := slots(anyTypes, "EXT1", "EXT2", "EXT3", "EXT4", "Remote1", "Remote2", "Remote3", "Remote4", "RDOC1", "RDOC2")
	p.Media = MediaOffer{OnSystem: media, OnManager: media, ByPatch: true}
	return p
}

// openBMCProfile: names instead of numbers, no entity tags, no $expand, reset types by ActionInfo, no serial number,
// UUID bytes in the other order in-band, no UefiHttp, and a clock that starts in 1970.
func openBMCProfile() Profile {
	p := genericProfile()
	p.Name, p.Manufacturer, p.Model, p.SKU, p.FirmwareVersion = ProfileOpenBMC, "Quanta", "S7Q", "", "2.14.0-dev"
	p.OUI, p.NICOUI = "d8:c4:97", "b8:ce:f6"
	p.Username, p.Password = "root", "0penBmc"
	p.SystemID, p.ManagerID, p.ChassisID = "system", "bmc", "chassis"
	p.Serial, p.SwapsUUID = Empty, true
	p.ResetTypes = []ResetType{
		ResetOn, ResetForceOff, ResetForceOn, ResetForceRestart, ResetGracefulRestart, ResetGracefulShutdown, ResetPowerCycle, ResetNmi,
	}
	p.ResetByActionInfo = true
	p.BootTargets = []string{"None", "Pxe", "Hdd", "Cd", "Diags", "BiosSetup", "Usb"}
	p.HTTPBootURI, p.PatchStatus = false, http.StatusNoContent
	p.ETags, p.Expand = ETagsNone, Expand{}
	p.LED, p.ClockIsUnset = LEDBoth, true
	p.Media = MediaOffer{}
	p.OverrideSurvivesReset, p.BootProgress = true, true // the tree shows BootProgress None on a machine that is off
	return p
}

// amiProfile: a PATCH needs If-Match (428), boot changes go to the settings resource /SD, sessions end after 30 s,
// MAC addresses with dashes, and a host interface among the system's NICs.
func amiProfile() Profile {
	p := genericProfile()
	p.Name, p.Manufacturer, p.Model, p.SKU, p.FirmwareVersion = ProfileAMI, "GIGABYTE", "G292-Z40", "01234567890123456789AB", "12.61.21"
	p.OUI, p.NICOUI = "b4:2e:99", "d8:5e:d3"
	p.SystemID, p.ManagerID, p.ChassisID = "Self", "Self", "Self"
	p.MACStyle = "dashes"
	p.ExtraNICs = []string{"02-00-00-00-00-01"}
	p.ResetByActionInfo, p.ResetStatus = true, http.StatusAccepted
	p.ETags = ETagsRequired
	p.SettingsID, p.SettingsRequired = "SD", true
	p.PatchStatus = http.StatusNoContent
	p.SessionTimeout = 30 * time.Second
	p.Media = MediaOffer{Empty: true}
	return p
}

// dgxProfile follows the tree of a DGX H100 (AMI): a second manager, HGX_BMC_0, and a system HGX_Baseboard_0 belong to the
// GPU board. Only that manager lists servers; the host names the other one. The override and its targets are in /SD, which
// wants If-Match. There is no PowerCycle. The tree lists the BMC first; others list it last, so this does.
func dgxProfile() Profile {
	p := amiProfile()
	p.Name, p.Manufacturer, p.Model, p.SKU, p.FirmwareVersion = ProfileDGX, "NVIDIA", "DGXH100", "920-24387-2540-000", "23.11.20"
	p.OUI, p.NICOUI = "5c:ff:35", "94:6d:ae"
	p.SystemID, p.ManagerID, p.ChassisID = "DGX", "BMC", "DGX"
	p.MACStyle, p.ExtraNICs = "upper", nil
	p.ResetTypes = []ResetType{ResetForceOff, ResetForceRestart, ResetGracefulShutdown, ResetOn}
	p.ExtraSystems, p.TrayUUID = []string{"HGX_Baseboard_0"}, true
	p.ExtraManagers, p.NoManagerLinks = []string{"HGX_BMC_0"}, true
	p.ManagerResets = []ResetType{ResetForceRestart}
	p.TargetsInSettings = true
	p.Expand.MaxLevels = 5
	p.LED = LEDIndicator
	return p
}
