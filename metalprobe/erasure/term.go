// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// The methods. A record names them.
const (
	MethodNVMeSanitizeBlock  = "nvme-sanitize-block"
	MethodNVMeSanitizeCrypto = "nvme-sanitize-crypto"
	MethodNVMeFormatCrypto   = "nvme-format-crypto"
	MethodNVMeFormat         = "nvme-format"
	MethodATASanitizeCrypto  = "ata-sanitize-crypto"
	MethodATASanitizeBlock   = "ata-sanitize-block"
	MethodATAEnhancedErase   = "ata-security-erase-enhanced"
	MethodATAErase           = "ata-security-erase"
	MethodATAUnlock          = "ata-security-unlock"
	MethodSCSISanitizeCrypto = "scsi-sanitize-crypto"
	MethodSCSISanitizeBlock  = "scsi-sanitize-block"
	MethodSecureDiscard      = "secure-discard"
	MethodDiscard            = "discard"
	MethodZero               = "zero"
	// MethodEmulated is the erase of a disk that exists in memory only.
	MethodEmulated = "emulated"
)

// terms is the one table of NIST SP 800-88 revision 1: what each method reaches on flash, and on other media, when the drive offers
// it and the verification passed. Its appendix A counts the enhanced erase of ATA as Purge on magnetic disks only (table A-5); on
// flash it is Clear (table A-8).
var terms = map[string]struct {
	flash, other policyv1alpha1.SanitizationTerm
}{
	MethodNVMeSanitizeBlock:  {policyv1alpha1.TermPurge, policyv1alpha1.TermPurge},
	MethodNVMeSanitizeCrypto: {policyv1alpha1.TermPurge, policyv1alpha1.TermPurge},
	MethodNVMeFormatCrypto:   {policyv1alpha1.TermPurge, policyv1alpha1.TermPurge},
	MethodNVMeFormat:         {policyv1alpha1.TermClear, policyv1alpha1.TermClear},
	MethodATASanitizeCrypto:  {policyv1alpha1.TermPurge, policyv1alpha1.TermPurge},
	MethodATASanitizeBlock:   {policyv1alpha1.TermPurge, policyv1alpha1.TermPurge},
	MethodATAEnhancedErase:   {policyv1alpha1.TermClear, policyv1alpha1.TermPurge},
	MethodATAErase:           {policyv1alpha1.TermClear, policyv1alpha1.TermClear},
	MethodSCSISanitizeCrypto: {policyv1alpha1.TermPurge, policyv1alpha1.TermPurge},
	MethodSCSISanitizeBlock:  {policyv1alpha1.TermPurge, policyv1alpha1.TermPurge},
	MethodZero:               {policyv1alpha1.TermClear, policyv1alpha1.TermClear},
	MethodEmulated:           {policyv1alpha1.TermClear, policyv1alpha1.TermClear},
}

// Term names the NIST SP 800-88 term that an erase reached: that of its strongest step that succeeded, at most Clear for a volume
// of a RAID adapter, and none where the verification did not pass. A discard alone reaches none, because a drive may ignore it.
func Term(
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
