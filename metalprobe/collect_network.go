// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// interfaces reads the ports that have hardware behind them.
func (h *Host) interfaces(data *Data) error {
	names, err := h.list("sys/class/net")
	if err != nil {
		return err
	}
	var problems []error
	for _, name := range names {
		dir := path.Join("sys/class/net", name)
		if !h.exists(dir + "/device") {
			continue
		}
		port := policyv1alpha1.ProbeNetworkInterface{Name: name, MACAddress: h.word(dir + "/address"), CarrierStatus: h.word(dir + "/operstate")}
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
			PCIAddress: cmp.Or(h.uevent(dir+"/device", "PCI_SLOT_NAME"), pciAddress(h.resolve(dir))),
			Speed:      speed(h.number(dir + "/speed")),
			Driver:     h.uevent(dir+"/device", "DRIVER"),
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

var pciFunction = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// pciAddress finds the PCI function that a device hangs below, by its path; empty where there is none.
func pciAddress(device string) string {
	for _, part := range slices.Backward(strings.Split(device, "/")) {
		if pciFunction.MatchString(part) {
			return part
		}
	}
	return ""
}
