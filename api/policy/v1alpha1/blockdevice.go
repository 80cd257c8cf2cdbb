// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "strings"

// RemovableMedium says that a disk is a removable medium which is not the BMC's: the agent reads all of those, and none of the BMC's.
func (d *BlockDevice) RemovableMedium() bool {
	return d.Removable && !d.ReadOnly && !d.Remote() && d.Content != ""
}

// Remote reports that a disk is attached over a network in every way that the agent names: it is not the machine's own. A wipe
// refuses it until it is disconnected. A disk of unknown transport counts as the machine's own.
func (d *BlockDevice) Remote() bool {
	controllers, nvme := strings.CutPrefix(d.Transport, "nvme/")
	if !nvme {
		return d.Transport == "iscsi" || d.Transport == "fc"
	}
	for word := range strings.SplitSeq(controllers, "+") {
		if word != "tcp" && word != "rdma" && word != "fc" {
			return false
		}
	}
	return true
}
