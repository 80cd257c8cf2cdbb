// SPDX-License-Identifier: Apache-2.0

package pid1

import "strings"

// uevent is what the kernel says of a device.
type uevent struct {
	action, path, subsystem, modalias string
}

// parseUevent reads a message of the kernel: "add@/devices/…" and then KEY=VALUE, each with a zero byte at its end. Messages
// of udev, and what is no message, are not ok.
func parseUevent(message []byte) (event uevent, ok bool) {
	head, rest, found := strings.Cut(string(message), "\x00")
	action, path, hasPath := strings.Cut(head, "@")
	if !found || !hasPath || action == "" || !strings.HasPrefix(path, "/") {
		return uevent{}, false
	}
	event = uevent{action: action, path: path}
	for field := range strings.SplitSeq(rest, "\x00") {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "SUBSYSTEM":
			event.subsystem = value
		case "MODALIAS":
			event.modalias = value
		}
	}
	return event, true
}
