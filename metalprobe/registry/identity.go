// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"fmt"

	"github.com/metalaw/metalaw/internal/uuids"
	"github.com/metalaw/metalaw/metalprobe"
)

// check says everything that is wrong with a report. A server reports only about itself: the UUID that its firmware
// shows, where it shows one, is the one that the report speaks for, in either byte order. A report of nothing at all is none.
func check(report *metalprobe.Report) error {
	if err := report.Validate(); err != nil {
		return err
	}
	own := report.Data.SystemInfo.SystemInformation.UUID
	if identifies(own) && !uuids.Same(own, report.SystemUUID) {
		return fmt.Errorf("data.systemInfo.systemInformation.uuid: %s is another machine than systemUUID %s; a server reports only about itself",
			own, report.SystemUUID)
	}
	if d := &report.Data; len(d.CPU)+len(d.Memory)+len(d.Storage)+len(d.NICs)+len(d.NetworkInterfaces) == 0 {
		return errors.New("data: no processor, memory, disk or network interface is in it. An agent that sees none of them cannot " +
			"read its machine: see whether /sys and /proc are mounted in its image")
	}
	return nil
}

// identifies tells a UUID of a machine from what vendors leave in an empty field: text that is no UUID, and UUIDs that whole product
// lines carry, in either byte order.
func identifies(text string) bool {
	uuid, err := metalprobe.NormalizeUUID(text)
	return err == nil && !uuids.Shared(uuid)
}
