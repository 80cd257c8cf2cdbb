// SPDX-License-Identifier: Apache-2.0

package machine

import "golang.org/x/sys/unix"

// uptimeSeconds is how long the machine has been up; 0 where that is not known.
func uptimeSeconds() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0
	}
	return now.Nano() / 1e9
}
