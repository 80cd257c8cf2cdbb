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
	// Hidden is storage that the machine has and that no disk shows; HiddenKnown says that the agent looked for it. The registry
	// decides by the policy whether it fails the wipe.
	Hidden      []policyv1alpha1.HiddenStorage `json:"hidden,omitempty"`
	HiddenKnown bool                           `json:"hiddenKnown,omitempty"`
	Message     string                         `json:"message,omitempty"`
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
	// RefusedDisk says why the disk that was asked about may not be erased; empty where it may. It counts beside Current.
	RefusedDisk string `json:"refusedDisk,omitempty"`
	// Proved are the disks that a former boot of this wipe erased and checked, where no boot but ours came between. The agent
	// reads them again, and erases only those where it finds anything else.
	Proved []policyv1alpha1.DiskWipe `json:"proved,omitempty"`
	// RetryAfter is when to ask again, where the registry said so.
	RetryAfter time.Duration `json:"-"`
}

// WipePolicy is what the policy says of a wipe. The manager writes it into the configuration of a wipe's agent.
type WipePolicy struct {
	// AcceptDriveErase lets a verified erase by the drive's own command stand, without an overwrite after it.
	AcceptDriveErase bool `json:"acceptDriveErase,omitempty"`
	// MinimumTerm is the term of NIST SP 800-88 that each disk must reach; a disk that does not fails the wipe. Empty asks for
	// no term.
	MinimumTerm policyv1alpha1.SanitizationTerm `json:"minimumTerm,omitempty"`
	// Excused are disks that are left as they are without failing the wipe, by wwid, serial number or model.
	Excused []string `json:"excused,omitempty"`
	// Allowed are disks that are erased in spite of a doubt, by wwid, serial number or model: they may be shared with other machines, or do
	// not say what they hide. It makes no remote disk local. A disk that another Server's inventory names as well is allowed by its
	// wwid or serial number only.
	Allowed []string `json:"allowed,omitempty"`
	// Removable is RemovableErase where removable media that are not known to be the BMC's are erased like fixed disks.
	// Empty leaves them.
	Removable string `json:"removable,omitempty"`
}

// RemovableErase asks to erase removable media like fixed disks, as the setting wipe.removable of a bundle does.
const RemovableErase = "Erase"

// DiskIdentity names one disk in a question to the registry.
type DiskIdentity struct {
	WWID, Serial, Model string
	SizeBytes           int64
}

// What a report may say of one erase; the API has the same bounds.
const (
	maxSteps      = 16
	maxMethod     = 64
	maxStepAnswer = 512
)

// erase visits what a report says of how a disk was erased.
func (b *bounds) erase(path string, d *policyv1alpha1.DiskWipe) {
	b.texts(path, maxWord, &d.Manufacturer, &d.Model, &d.Firmware, &d.Slot)
	if d.Percent < 0 || d.Percent > 100 {
		b.note("%s.percent: %d is no percentage", path, d.Percent)
	}
	switch d.MediaType {
	case "", policyv1alpha1.MediaHDD, policyv1alpha1.MediaSSD, policyv1alpha1.MediaNVMe, policyv1alpha1.MediaEMMC,
		policyv1alpha1.MediaNVDIMM, policyv1alpha1.MediaVolume:
	default:
		b.note("%s.mediaType: %.64q is not known", path, d.MediaType)
	}
	switch d.Term {
	case "", policyv1alpha1.TermClear, policyv1alpha1.TermPurge:
	default: // Destroy is stated by a person, never by an agent
		b.note("%s.term: %.64q is none that an erase reaches", path, d.Term)
	}
	each(b, path+".steps", &d.Steps, maxSteps, func(path string, s *policyv1alpha1.EraseStep) {
		if s.Method == "" {
			b.note("%s.method: empty", path)
		}
		b.text(path+".method", &s.Method, maxMethod)
		b.text(path+".parameters", &s.Parameters, maxWord)
		b.text(path+".answer", &s.Answer, maxStepAnswer)
		switch s.Result {
		case policyv1alpha1.EraseSucceeded, policyv1alpha1.EraseFailed, policyv1alpha1.EraseUnsupported:
		default:
			b.note("%s.result: %.64q is none of Succeeded, Failed, Unsupported", path, s.Result)
		}
	})
	if v := d.Verification; v != nil {
		if v.Kind != policyv1alpha1.VerifiedZeros && v.Kind != policyv1alpha1.VerifiedSamplesGone {
			b.note("%s.verification.kind: %.64q is none of Zeros, SamplesGone", path, v.Kind)
		}
		natural(b, path+".verification.readBytes", &v.ReadBytes)
		b.text(path+".verification.limits", &v.Limits, maxStepAnswer)
	}
}
