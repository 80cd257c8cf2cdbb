// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package machine

// uptimeSeconds is how long the machine has been up; only Linux tells it.
func uptimeSeconds() int64 { return 0 }
