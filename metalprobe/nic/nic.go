// SPDX-License-Identifier: Apache-2.0

// Package nic asks the drivers of network cards what /sys does not tell.
package nic

// Link is what a driver says of a network interface.
type Link struct {
	Driver, Firmware string
	// Modes are the link modes that it can do, Ports the kinds of port.
	Modes, Ports []string
}
