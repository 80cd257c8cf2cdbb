// SPDX-License-Identifier: Apache-2.0

package pid1

import (
	"net"
	"strings"
)

// ignitionArgument is where boot operators name the ignition.
const ignitionArgument = "ignition.config.url"

// bootInterfaceArgument is where boot loaders name the interface that the machine booted from.
const bootInterfaceArgument = "BOOTIF"

// arguments reads a kernel command line; quotes keep spaces together. Of what is said twice the last counts. What stands after
// "--" is for init, and is read alike.
func arguments(line string) map[string]string {
	found := map[string]string{}
	var word strings.Builder
	quoted := false
	take := func() {
		name, value, _ := strings.Cut(word.String(), "=")
		if name != "" {
			found[name] = value
		}
		word.Reset()
	}
	for _, letter := range line {
		switch {
		case letter == '"':
			quoted = !quoted
		case !quoted && strings.ContainsRune(" \t\n\r\x00", letter):
			take()
		default:
			word.WriteRune(letter)
		}
	}
	take()
	return found
}

// bootInterface reads the address of the interface that the machine booted from: "01-52-54-00-…" as PXE loaders write it, or the
// address alone. It is nil where nothing usable is said.
func bootInterface(value string) net.HardwareAddr {
	text := strings.ReplaceAll(value, "-", ":")
	if strings.Count(text, ":") == 6 {
		_, text, _ = strings.Cut(text, ":") // the kind of hardware
	}
	address, err := net.ParseMAC(text)
	if err != nil || len(address) != 6 {
		return nil
	}
	return address
}
