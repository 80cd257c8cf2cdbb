// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"net/http"

	"github.com/metalaw/metalaw/redfish/emulator"
)

// machineView is a machine as the control interface shows it.
type machineView struct {
	Name         string      `json:"name"`
	Profile      string      `json:"profile"`
	URL          string      `json:"url"`
	BMCMAC       string      `json:"bmcMAC"`
	Username     string      `json:"username"`
	Password     string      `json:"password"`
	SystemURI    string      `json:"systemURI"`
	UUID         string      `json:"uuid"`
	SerialNumber string      `json:"serialNumber"`
	Power        string      `json:"power"`
	Running      string      `json:"running,omitempty"`
	Boots        int         `json:"boots"`
	Override     string      `json:"override"`
	LED          string      `json:"led"`
	Sessions     int         `json:"sessions"`
	LockedOut    bool        `json:"lockedOut"`
	MACs         []string    `json:"macs"`
	Drives       []driveView `json:"drives"`
}

type driveView struct {
	Name     string `json:"name"`
	Serial   string `json:"serial"`
	Contents string `json:"contents"`
	Erased   bool   `json:"erased"`
}

type faultView struct {
	Name    string `json:"name"`
	Machine string `json:"machine,omitempty"`
	Method  string `json:"method,omitempty"`
	Path    string `json:"path,omitempty"`
	Hits    int    `json:"hits"`
}

func view(m *emulator.Machine) machineView {
	user, password := m.Credentials()
	enabled, target := m.Override()
	running, _ := m.Running()
	id := m.Identity()
	v := machineView{
		Name: m.Name(), Profile: m.ProfileName(), URL: m.URL(), BMCMAC: m.BMCMAC(), Username: user, Password: password,
		SystemURI: m.SystemURI(), UUID: id.UUID, SerialNumber: id.SerialNumber, Power: string(m.Power()),
		Running: running.Target, Boots: m.Boots(), Override: enabled + " " + target, LED: m.LED(),
		Sessions: len(m.Sessions()), LockedOut: m.LockedOut(), MACs: []string{}, Drives: []driveView{},
	}
	for _, n := range m.NICs() {
		v.MACs = append(v.MACs, n.MACAddress)
	}
	for _, d := range m.Drives() {
		v.Drives = append(v.Drives, driveView{d.Name, d.Serial, d.Contents(), d.Erased()})
	}
	return v
}

func setPower(m *emulator.Machine, r *http.Request) error {
	var in struct {
		Power string `json:"power"`
	}
	if err := decode(r, &in); err != nil {
		return err
	}
	switch in.Power {
	case "On", "Off":
		m.PowerBehindBack(in.Power == "On")
		return nil
	}
	return fmt.Errorf("power %q: use On or Off", in.Power)
}

func setReachability(m *emulator.Machine, r *http.Request) error {
	var in struct {
		Reachability emulator.Reachability `json:"reachability"`
	}
	if err := decode(r, &in); err != nil {
		return err
	}
	return m.SetReachability(in.Reachability)
}

func setPassword(m *emulator.Machine, r *http.Request) error {
	var in struct {
		Password string `json:"password"`
	}
	if err := decode(r, &in); err != nil {
		return err
	}
	if in.Password == "" {
		return fmt.Errorf("the password is empty: give one")
	}
	m.SetPassword(in.Password)
	return nil
}

func setIdentity(m *emulator.Machine, r *http.Request) error {
	var in struct {
		UUID         string `json:"uuid"`
		SerialNumber string `json:"serialNumber"`
		Manufacturer string `json:"manufacturer"`
		Model        string `json:"model"`
		SKU          string `json:"sku"`
	}
	if err := decode(r, &in); err != nil {
		return err
	}
	m.SwapIdentity(emulator.Identity(in))
	return nil
}

func writeDrive(m *emulator.Machine, r *http.Request) error {
	var in struct {
		Contents string `json:"contents"`
	}
	if err := decode(r, &in); err != nil {
		return err
	}
	for _, d := range m.Drives() {
		if d.Name == r.PathValue("drive") {
			d.Write(in.Contents)
			return nil
		}
	}
	return notFoundError("drive " + r.PathValue("drive"))
}
