// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// WipeReport is the body of POST /wipe.
type WipeReport struct {
	SystemUUID string                    `json:"systemUUID"`
	State      policyv1alpha1.WipeState  `json:"state"`
	Disks      []policyv1alpha1.DiskWipe `json:"disks,omitempty"`
	// Skipped is what the wipe left alone because it is no fixed disk. It does not fail the wipe.
	Skipped []policyv1alpha1.SkippedDisk `json:"skipped,omitempty"`
	Message string                       `json:"message,omitempty"`
}

// WipeStatus is the answer of GET /wipe/{uuid}: may the agent go on?
type WipeStatus struct {
	// Current is true only where the registry said so.
	Current bool `json:"current"`
	// Held says that the agent may not go on for now, and should ask again.
	Held bool `json:"held,omitempty"`
	// Entry is the lifecycle entry that the wipe belongs to.
	Entry int64 `json:"entry,omitempty"`
	// Reason says why not.
	Reason string `json:"reason,omitempty"`
	// RetryAfter is when to ask again, where the registry said so.
	RetryAfter time.Duration `json:"-"`
}
