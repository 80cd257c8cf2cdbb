// SPDX-License-Identifier: Apache-2.0

package term

import (
	"testing"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

func TestTheTermOfADiskComesFromItsMethods(t *testing.T) {
	passed := &policyv1alpha1.EraseVerification{Passed: true}
	step := func(method string, result policyv1alpha1.EraseResult) []policyv1alpha1.EraseStep {
		return []policyv1alpha1.EraseStep{{Method: method, Result: result}}
	}
	for name, c := range map[string]struct {
		disk policyv1alpha1.DiskWipe
		want policyv1alpha1.SanitizationTerm
	}{
		"a purge that passed": {policyv1alpha1.DiskWipe{State: "Verified", MediaType: "NVMe", Verification: passed,
			Steps: step(NVMeSanitizeBlock, policyv1alpha1.EraseSucceeded)}, "Purge"},
		"whatever term the agent states": {policyv1alpha1.DiskWipe{State: "Verified", Term: "Purge", MediaType: "SSD", Verification: passed,
			Steps: step(Zero, policyv1alpha1.EraseSucceeded)}, "Clear"},
		"none by a step that failed": {policyv1alpha1.DiskWipe{State: "Verified", Term: "Purge", MediaType: "NVMe", Verification: passed,
			Steps: step(NVMeSanitizeBlock, policyv1alpha1.EraseFailed)}, ""},
		"none for a disk that failed": {policyv1alpha1.DiskWipe{State: "Failed", Term: "Purge", MediaType: "NVMe", Verification: passed,
			Steps: step(NVMeSanitizeBlock, policyv1alpha1.EraseSucceeded)}, ""},
		"none without a check": {policyv1alpha1.DiskWipe{State: "Verified", Term: "Clear", Steps: step(Zero, policyv1alpha1.EraseSucceeded)}, ""},
		"none where the check did not pass": {policyv1alpha1.DiskWipe{State: "Verified", Term: "Clear", Verification: &policyv1alpha1.EraseVerification{},
			Steps: step(Zero, policyv1alpha1.EraseSucceeded)}, ""},
		"none by the agent's word alone": {policyv1alpha1.DiskWipe{State: "Verified", Term: "Purge", Verification: passed}, ""},
		"a volume is cleared at most": {policyv1alpha1.DiskWipe{State: "Verified", MediaType: "Volume", Verification: passed,
			Steps: step(SCSISanitizeBlock, policyv1alpha1.EraseSucceeded)}, "Clear"},
		"names without steps":   {policyv1alpha1.DiskWipe{State: "Verified", MediaType: "NVMe", Verification: passed, Method: "nvme-format+zero"}, "Clear"},
		"no name that is known": {policyv1alpha1.DiskWipe{State: "Verified", Verification: passed, Method: "destroy"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := OfDisk(&c.disk); got != c.want {
				t.Errorf("OfDisk() = %q, want %q", got, c.want)
			}
		})
	}
}
