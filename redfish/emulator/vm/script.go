// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"regexp"
	"strings"
)

// script is what an iPXE script boots.
type script struct {
	kernel      string
	initrds     []string
	commandLine string
}

var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// readScript reads a script as iPXE would for a machine: set, kernel, initrd and boot. Any other command is an error, as what it does
// would be left out.
func readScript(text, uuid string) (script, error) {
	var s script
	values := map[string]string{"uuid": uuid}
	lines := strings.Split(text, "\n")
	if strings.TrimSpace(lines[0]) != "#!ipxe" {
		return s, fmt.Errorf("no iPXE script: it begins with %.40q", lines[0])
	}
	for _, line := range lines {
		line = variable.ReplaceAllStringFunc(line, func(use string) string { return values[use[2:len(use)-1]] })
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		command, words := words[0], words[1:]
		for len(words) > 1 && strings.HasPrefix(words[0], "-") { // --name NAME
			words = words[2:]
		}
		switch {
		case command == "set" && len(words) > 0:
			values[words[0]] = strings.Join(words[1:], " ")
		case command == "kernel" && len(words) > 0:
			s.kernel, s.commandLine = words[0], strings.Join(words[1:], " ")
		case command == "initrd" && len(words) > 0:
			s.initrds = append(s.initrds, words[0])
		case command == "boot":
			if s.kernel == "" {
				return s, fmt.Errorf("the iPXE script boots without a kernel: name one")
			}
			return s, nil
		default:
			return s, fmt.Errorf("the iPXE script has %.80q: use set, kernel, initrd and boot", line)
		}
	}
	return s, fmt.Errorf("the iPXE script has no boot: add one at its end")
}
