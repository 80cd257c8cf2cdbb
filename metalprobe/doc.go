// SPDX-License-Identifier: Apache-2.0

// Package metalprobe is the agent that runs inside a server: it describes the hardware to the registry and, when the
// server was booted to be wiped, erases its disks and proves it. The package also holds what both sides of the wire
// share: the report, its bounds, the client and the boot configuration that starts the agent.
package metalprobe
