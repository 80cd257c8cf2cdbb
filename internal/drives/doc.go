// SPDX-License-Identifier: Apache-2.0

// Package drives compares the drives that a BMC lists with the disks that the agent saw. It is pure. The leader reads
// the list where Settled is false; the registry judges it by Unseen and Withheld.
package drives
