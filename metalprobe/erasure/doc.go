// SPDX-License-Identifier: Apache-2.0

// Package erasure erases one disk and checks the result. It knows the erase commands of NVMe, ATA and SCSI drives, overwrites with
// zeros, reads back, and names the NIST SP 800-88 term that was reached. It never decides whether a disk may be erased: its caller
// opens the disk exclusively, after having asked.
package erasure
