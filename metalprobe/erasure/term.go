// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe/term"
)

// The methods. A record names them.
const (
	MethodNVMeSanitizeBlock  = term.NVMeSanitizeBlock
	MethodNVMeSanitizeCrypto = term.NVMeSanitizeCrypto
	MethodNVMeFormatCrypto   = term.NVMeFormatCrypto
	MethodNVMeFormat         = term.NVMeFormat
	MethodATASanitizeCrypto  = term.ATASanitizeCrypto
	MethodATASanitizeBlock   = term.ATASanitizeBlock
	MethodATAEnhancedErase   = term.ATAEnhancedErase
	MethodATAErase           = term.ATAErase
	MethodATAUnlock          = term.ATAUnlock
	MethodSCSISanitizeCrypto = term.SCSISanitizeCrypto
	MethodSCSISanitizeBlock  = term.SCSISanitizeBlock
	MethodSecureDiscard      = term.SecureDiscard
	MethodDiscard            = term.Discard
	MethodZero               = term.Zero
	MethodEmulated           = term.Emulated
)

// Term names the NIST SP 800-88 term that an erase reached, as term.Of does.
func Term(
	media policyv1alpha1.MediaType, steps []policyv1alpha1.EraseStep, verification *policyv1alpha1.EraseVerification, volume bool,
) policyv1alpha1.SanitizationTerm {
	return term.Of(media, steps, verification, volume)
}

// Reaches says whether an erase that reached one term satisfies a policy that asks for another; an empty one asks for nothing.
func Reaches(reached, asked policyv1alpha1.SanitizationTerm) bool {
	return term.Reaches(reached, asked)
}
