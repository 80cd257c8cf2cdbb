// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"errors"
	"fmt"
	"strings"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"
)

// portKinds are the bits of the legacy mask that name kinds of port.
var portKinds = []struct {
	bit  uint
	name string
}{
	{unix.ETHTOOL_LINK_MODE_TP_BIT, "TP"}, {unix.ETHTOOL_LINK_MODE_AUI_BIT, "AUI"}, {unix.ETHTOOL_LINK_MODE_MII_BIT, "MII"},
	{unix.ETHTOOL_LINK_MODE_FIBRE_BIT, "FIBRE"}, {unix.ETHTOOL_LINK_MODE_BNC_BIT, "BNC"}, {unix.ETHTOOL_LINK_MODE_Backplane_BIT, "Backplane"},
}

// LinkOf asks the driver of an interface of this machine. A driver that does not tell something, as virtual ones do, is no error.
func LinkOf(name string) (link Link, err error) {
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return link, err
	}
	defer tool.Close()
	info, err := tool.DriverInfo(name)
	if err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		return link, fmt.Errorf("asking for its firmware: %w", err)
	}
	link.Driver, link.Firmware = info.Driver, strings.TrimSpace(info.FwVersion)
	if link.Firmware == "N/A" {
		link.Firmware = ""
	}
	settings, err := tool.GetLinkSettings(name)
	if err != nil {
		return link, unlessUnsupported(err)
	}
	for _, mode := range settings.SupportedLinkModes {
		link.Modes = append(link.Modes, strings.ReplaceAll(mode, "_", "/"))
	}
	var command ethtool.EthtoolCmd
	if _, err := tool.CmdGet(&command, name); err != nil {
		return link, unlessUnsupported(err)
	}
	for _, kind := range portKinds {
		if command.Supported&(1<<kind.bit) != 0 {
			link.Ports = append(link.Ports, kind.name)
		}
	}
	return link, nil
}

// unlessUnsupported drops the answer of a driver that offers no such question.
func unlessUnsupported(err error) error {
	if errors.Is(err, unix.EOPNOTSUPP) || strings.Contains(err.Error(), unix.EOPNOTSUPP.Error()) {
		return nil
	}
	return fmt.Errorf("asking for its link modes: %w", err)
}
