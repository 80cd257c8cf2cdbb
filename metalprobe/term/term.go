// SPDX-License-Identifier: Apache-2.0

// Package term holds the methods of an erase, and the one table of the terms that they reach. The agent and the registry ask it.
package term

import (
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// The methods. A record names them.
const (
	NVMeSanitizeBlock  = "nvme-sanitize-block"
	NVMeSanitizeCrypto = "nvme-sanitize-crypto"
	NVMeFormatCrypto   = "nvme-format-crypto"
	NVMeFormat         = "nvme-format"
	ATASanitizeCrypto  = "ata-sanitize-crypto"
	ATASanitizeBlock   = "ata-sanitize-block"
	ATAEnhancedErase   = "ata-security-erase-enhanced"
	ATAErase           = "ata-security-erase"
	ATAUnlock          = "ata-security-unlock"
	SCSISanitizeCrypto = "scsi-sanitize-crypto"
	SCSISanitizeBlock  = "scsi-sanitize-block"
	SecureDiscard      = "secure-discard"
	Discard            = "discard"
	Zero               = "zero"
	// Emulated is the erase of a disk that exists in memory only.
	Emulated = "emulated"
)

// terms is the one table of NIST SP 800-88 revision 1: what each method reaches on flash, and on other media, when the drive offers
// it and the verification passed. Its appendix A counts the enhanced erase of ATA as Purge on magnetic disks only (table A-5); on
// flash it is Clear (table A-8).
var terms = map[string]struct {
	flash, other policyv1alpha1.SanitizationTerm
}{
	NVMeSanitizeBlock:  {policyv1alpha1.TermPurge, policyv1alpha1.TermPurge},
	NVMeSanitizeCrypto: {policyv1alpha1.TermPurge, policyv1alpha1.TermPurge},
	NVMeFormatCrypto:   {policyv1alpha1.TermPurge, policyv1alpha1.TermPurge},
	NVMeFormat:         {policyv1alpha1.TermClear, policyv1alpha1.TermClear},
	ATASanitizeCrypto:  {policyv1alpha1.TermPurge, policyv1alpha1.TermPurge},
	ATASanitizeBlock:   {policyv1alpha1.TermPurge, policyv1alpha1.TermPurge},
	ATAEnhancedErase:   {policyv1alpha1.TermClear, policyv1alpha1.TermPurge},
	ATAErase:           {policyv1alpha1.TermClear, policyv1alpha1.TermClear},
	SCSISanitizeCrypto: {policyv1alpha1.TermPurge, policyv1alpha1.TermPurge},
	SCSISanitizeBlock:  {policyv1alpha1.TermPurge, policyv1alpha1.TermPurge},
	Zero:               {policyv1alpha1.TermClear, policyv1alpha1.TermClear},
	Emulated:           {policyv1alpha1.TermClear, policyv1alpha1.TermClear},
}

// Of names the NIST SP 800-88 term that an erase reached: that of its strongest step that succeeded, at most Clear for a volume
// of a RAID adapter, and none where the verification did not pass. A discard alone reaches none, because a drive may ignore it.
func Of(
	media policyv1alpha1.MediaType, steps []policyv1alpha1.EraseStep, verification *policyv1alpha1.EraseVerification, volume bool,
) policyv1alpha1.SanitizationTerm {
	if verification == nil || !verification.Passed {
		return ""
	}
	var reached policyv1alpha1.SanitizationTerm
	for _, step := range steps {
		if step.Result != policyv1alpha1.EraseSucceeded {
			continue
		}
		term := terms[step.Method].flash
		if media == policyv1alpha1.MediaHDD {
			term = terms[step.Method].other
		}
		if rank(term) > rank(reached) {
			reached = term
		}
	}
	if reached != "" && (volume || media == policyv1alpha1.MediaVolume) {
		return policyv1alpha1.TermClear
	}
	return reached
}

// OfDisk is the term that an erased disk reached by the names of the methods that its wipe tells of, whatever term the wipe states. A wipe
// that tells of no steps tells of their names joined by a plus. It is none for a disk that did not pass.
func OfDisk(disk *policyv1alpha1.DiskWipe) policyv1alpha1.SanitizationTerm {
	if disk.State != policyv1alpha1.DiskVerified {
		return ""
	}
	steps := disk.Steps
	if len(steps) == 0 && disk.Method != "" {
		for name := range strings.SplitSeq(disk.Method, "+") {
			steps = append(steps, policyv1alpha1.EraseStep{Method: name, Result: policyv1alpha1.EraseSucceeded})
		}
	}
	return Of(disk.MediaType, steps, disk.Verification, false)
}

// Reaches says whether an erase that reached one term satisfies a policy that asks for another; an empty one asks for nothing.
func Reaches(reached, asked policyv1alpha1.SanitizationTerm) bool {
	return rank(reached) >= rank(asked)
}

// rank orders the terms; what is not known ranks above all, so that no erase satisfies it.
func rank(term policyv1alpha1.SanitizationTerm) int {
	switch term {
	case "":
		return 0
	case policyv1alpha1.TermClear:
		return 1
	case policyv1alpha1.TermPurge:
		return 2
	default:
		return 3
	}
}
