// SPDX-License-Identifier: Apache-2.0

// Package boot decides which boot configuration and which boot override a machine is to have. It writes nothing itself.
package boot

import (
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

// Source decides from what a machine is switched on. Where its BMC shows no boot override it goes by its boot order, if the
// policy allows that, and never for a wipe: the boot order may lead to the disks that are to be erased. refused says why not.
func Source(target string, missing bool, purpose string, allowed bool) (source, refused string) {
	switch {
	case !missing:
		return target, ""
	case purpose == v1alpha1.BootPurposeWipe:
		return "", "The BMC shows no boot override, so the machine cannot be booted into the wipe for sure. " +
			"It stays off, and its disks stay as they are."
	case !allowed:
		return "", "The BMC shows no boot override, so the machine stays off. If the network is first in its boot order, " +
			"set boot.withoutOverride: true in the bundle."
	}
	return redfish.TargetBootOrder, ""
}

// WithoutOverride says what follows from a BMC that shows no boot override.
func WithoutOverride(allowed bool) string {
	if allowed {
		return "The BMC shows no boot override. The machine boots by its boot order, and is never wiped: its wipe fails. " +
			"To offer it after a claim, erase its disks by hand and force it to Available."
	}
	_, why := Source("", true, "", false)
	return why
}
