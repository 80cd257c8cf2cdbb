// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"slices"
	"time"

	"github.com/metalaw/metalaw/internal/uuids"
)

// Trouble is one entry of the fault catalogue: something that real BMCs were seen to do.
type Trouble struct {
	// Name is the trouble's only name, and that of its fault if it is one.
	Name string
	// Arrange lets it happen to a machine. The function that it returns ends it, as far as it can be ended.
	Arrange func(m *Machine) (undo func())
}

// Catalogue lists every trouble, so that a test can go through all of them.
func Catalogue() []Trouble {
	var list []Trouble
	for _, f := range requestFaults() {
		list = append(list, Trouble{Name: f.Name, Arrange: func(m *Machine) func() { return m.Inject(f).Remove }})
	}
	list = append(list, networkTroubles()...)
	list = append(list, profileTroubles()...)
	return append(list, machineTroubles()...)
}

// LookupTrouble finds a trouble by name; false where there is none.
func LookupTrouble(name string) (Trouble, bool) {
	list := Catalogue()
	i := slices.IndexFunc(list, func(t Trouble) bool { return t.Name == name })
	if i < 0 {
		return Trouble{}, false
	}
	return list[i], true
}

// FaultNamed returns the fault of the catalogue with that name; false where there is none or it is no fault of requests.
func FaultNamed(name string) (Fault, bool) {
	list := requestFaults()
	i := slices.IndexFunc(list, func(f Fault) bool { return f.Name == name })
	if i < 0 {
		return Fault{}, false
	}
	return list[i], true
}

func networkTroubles() []Trouble {
	reach := func(name string, r Reachability) Trouble {
		return Trouble{Name: name, Arrange: func(m *Machine) func() {
			_ = m.SetReachability(r) // only the way back can fail, and then the BMC stays away
			return func() { _ = m.SetReachability(Reachable) }
		}}
	}
	cert := func(kind Certificate) Trouble {
		return Trouble{Name: "Certificate" + string(kind), Arrange: func(m *Machine) func() {
			m.SetCertificate(kind)
			return func() { m.SetCertificate(CertificateFleet) }
		}}
	}
	return []Trouble{
		reach("ConnectionRefused", Refusing), reach("BlackHole", Silent),
		{Name: "OneConnection", Arrange: func(m *Machine) func() {
			m.SetConnectionLimit(1)
			return func() { m.SetConnectionLimit(0) }
		}},
		cert(CertificateSelfSigned), cert(CertificateRotated), cert(CertificateExpired), cert(CertificateWrongName),
	}
}

// profileTroubles are other habits of the BMC.
func profileTroubles() []Trouble {
	habit := func(name string, change func(*Profile)) Trouble {
		return Trouble{Name: name, Arrange: func(m *Machine) func() {
			former := m.bmc.profileNow()
			m.Tweak(change)
			return func() { m.Tweak(func(p *Profile) { *p = *former }) }
		}}
	}
	return []Trouble{
		habit("HTTPBootURIRefused", func(p *Profile) { p.HTTPBootURI = false }),
		habit("OverrideModeRefused", func(p *Profile) { p.OverrideMode = ModeRefused }),
		habit("OverrideModeRequired", func(p *Profile) { p.OverrideMode = ModeRequired }),
		habit("OverrideNeverClears", func(p *Profile) { p.OverrideNeverClears = true }),
		habit("OverrideReadsLate", func(p *Profile) { p.OverrideShowsAfter = 10 * time.Second }),
		habit("OverrideOnTheSystem", func(p *Profile) { p.SettingsID, p.SettingsShows = "Pending", []string{"BootOrder"} }),
		habit("GPUBoardManager", func(p *Profile) {
			p.ExtraSystems, p.TrayUUID = []string{"HGX_Baseboard_0"}, true
			p.ExtraManagers, p.NoManagerLinks = []string{"HGX_BMC_0"}, true
		}),
		habit("OnceReadsContinuous", func(p *Profile) { p.OnceReadsContinuous = true }),
		habit("FewResetTypes", func(p *Profile) { p.ResetTypes = []ResetType{ResetOn, ResetForceOff} }),
		habit("AlreadyIsConflict", func(p *Profile) { p.AlreadyStatus = 409 }),
		habit("RefusesInPOST", func(p *Profile) { p.RefusesInPOST = true }),
		habit("UUIDAbsent", func(p *Profile) { p.UUID = Absent }),
		habit("SerialNull", func(p *Profile) { p.Serial = Null }),
		habit("GPUTray", func(p *Profile) { p.ExtraSystems = []string{"HGX_Baseboard_0"} }),
		habit("TrailingSlash", func(p *Profile) { p.TrailingSlash = true }),
		habit("LowercaseLinks", func(p *Profile) { p.LowercaseLinks = true }),
		habit("WeakETags", func(p *Profile) { p.ETags, p.WeakETags = ETagsOffered, true }),
		habit("ETagsRequired", func(p *Profile) { p.ETags = ETagsRequired }),
		habit("MACNotAvailable", func(p *Profile) { p.ExtraNICs = []string{"Not Available", ""} }),
		habit("NoSystemNICs", func(p *Profile) { p.NoSystemNICs = true }),
	}
}

// machineTroubles are things that happen to the machine or to its accounts.
func machineTroubles() []Trouble {
	nothing := func() {}
	return []Trouble{
		{Name: "PasswordChanged", Arrange: func(m *Machine) func() {
			_, former := m.Credentials()
			m.SetPassword(former + "-changed")
			return func() { m.SetPassword(former) }
		}},
		{Name: "LockedOut", Arrange: func(m *Machine) func() {
			_, password := m.Credentials()
			m.LockOut()
			return func() { m.SetPassword(password) }
		}},
		{Name: "SessionsForgotten", Arrange: func(m *Machine) func() { m.EndSessions(); return nothing }},
		{Name: "BMCRestart", Arrange: func(m *Machine) func() { m.ResetBMC(); return nothing }},
		{Name: "OverrideLost", Arrange: func(m *Machine) func() { m.SetOverride("Disabled", "None"); return nothing }},
		{Name: "ShutdownIgnored", Arrange: func(m *Machine) func() {
			m.IgnoreShutdown(true)
			return func() { m.IgnoreShutdown(false) }
		}},
		{Name: "PowerChangedBehindBack", Arrange: func(m *Machine) func() {
			was := m.Power()
			m.PowerBehindBack(was != PowerOn)
			return func() { m.PowerBehindBack(was == PowerOn) }
		}},
		{Name: "AnotherSystem", Arrange: func(m *Machine) func() {
			former := m.SwapIdentity(Identity{UUID: uuids.Swap(swapHalves(m.Identity().UUID)), SerialNumber: "REPLACED"})
			return func() { m.SwapIdentity(former) }
		}},
		{Name: "DuplicateMAC", Arrange: func(m *Machine) func() {
			former := m.NICs()
			if len(former) > 1 {
				m.SetNICs(former[0], NIC{Name: former[1].Name, MACAddress: former[0].MACAddress})
			}
			return func() { m.SetNICs(former...) }
		}},
	}
}

// swapHalves makes another UUID of one, always the same.
func swapHalves(uuid string) string {
	if len(uuid) != 36 {
		return uuid
	}
	return uuid[24:32] + uuid[8:24] + uuid[:8] + uuid[32:]
}
