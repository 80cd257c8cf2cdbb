// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strconv"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe/kernel"
)

// interfaces reads the ports that have hardware behind them.
func (h *Host) interfaces(data *Data) error {
	names, err := h.sys().List("sys/class/net")
	if err != nil {
		return err
	}
	var problems []error
	for _, name := range names {
		dir := path.Join("sys/class/net", name)
		if !h.sys().Exists(dir + "/device") {
			continue
		}
		port := policyv1alpha1.ProbeNetworkInterface{Name: name, MACAddress: h.sys().Word(dir + "/address"), CarrierStatus: h.sys().Word(dir + "/operstate")}
		if h.Addresses != nil {
			if port.IPAddresses, err = h.Addresses(name); err != nil {
				problems = append(problems, fmt.Errorf("addresses of %s: %w", name, err))
			}
		}
		data.NetworkInterfaces = append(data.NetworkInterfaces, port)
		card := policyv1alpha1.NIC{
			Name: name,
			MAC:  port.MACAddress,
			// A virtio card hangs below its PCI function.
			PCIAddress: cmp.Or(h.sys().Uevent(dir+"/device", "PCI_SLOT_NAME"), kernel.PCIAddress(h.sys().Resolve(dir))),
			Speed:      speed(h.sys().Number(dir + "/speed")),
			Driver:     h.sys().Uevent(dir+"/device", "DRIVER"),
		}
		if h.Link != nil {
			link, err := h.Link(name)
			if err != nil {
				problems = append(problems, fmt.Errorf("the driver of %s: %w", name, err))
			}
			card.Driver = cmp.Or(card.Driver, link.Driver)
			card.FirmwareVersion, card.LinkModes, card.SupportedPorts = link.Firmware, link.Modes, link.Ports
		}
		data.NICs = append(data.NICs, card)
	}
	return errors.Join(problems...)
}

// neighbors takes what was heard by LLDP so far.
func (h *Host) neighbors(data *Data) (err error) {
	if h.Neighbors == nil {
		return nil
	}
	data.LLDP, err = h.Neighbors()
	return err
}

// speed words a link speed; a port without a link says -1.
func speed(megabits int64) string {
	if megabits <= 0 {
		return ""
	}
	return strconv.FormatInt(megabits, 10) + "Mb/s"
}
