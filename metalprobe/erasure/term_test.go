// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"strings"
	"testing"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

func TestTermOfAnErase(t *testing.T) {
	for name, c := range map[string]struct {
		media  policyv1alpha1.MediaType
		method string // a minus before a step says that it failed
		volume bool
		passed bool
		want   policyv1alpha1.SanitizationTerm
	}{
		"an overwrite of a hard disk":                {"HDD", "zero", false, true, "Clear"},
		"an overwrite of flash":                      {"NVMe", "zero", false, true, "Clear"},
		"a discard and an overwrite":                 {"SSD", "secure-discard zero", false, true, "Clear"},
		"a discard alone":                            {"SSD", "discard", false, true, ""},
		"a secure discard alone":                     {"eMMC", "secure-discard", false, true, ""},
		"a block sanitize of NVMe":                   {"NVMe", "nvme-sanitize-block", false, true, "Purge"},
		"a crypto sanitize and an overwrite":         {"NVMe", "nvme-sanitize-crypto zero", false, true, "Purge"},
		"a cryptographic format":                     {"NVMe", "nvme-format-crypto", false, true, "Purge"},
		"a format of the user data":                  {"NVMe", "nvme-format zero", false, true, "Clear"},
		"a block sanitize of SATA":                   {"SSD", "ata-sanitize-block", false, true, "Purge"},
		"a crypto sanitize of SAS":                   {"SSD", "scsi-sanitize-crypto", false, true, "Purge"},
		"an enhanced security erase of a hard disk":  {"HDD", "ata-security-erase-enhanced", false, true, "Purge"},
		"an enhanced security erase of flash":        {"SSD", "ata-security-erase-enhanced", false, true, "Clear"},
		"a plain security erase":                     {"HDD", "ata-security-erase", false, true, "Clear"},
		"a sanitize that failed, and an overwrite":   {"NVMe", "-nvme-sanitize-block zero", false, true, "Clear"},
		"a sanitize whose verification did not pass": {"NVMe", "nvme-sanitize-block", false, false, ""},
		"a volume of a RAID adapter":                 {"Volume", "zero", true, true, "Clear"},
		"a volume never reaches more":                {"HDD", "scsi-sanitize-block", true, true, "Clear"},
		"nothing":                                    {"HDD", "", false, true, ""},
		"a method that is not known":                 {"HDD", "magnet", false, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var steps []policyv1alpha1.EraseStep
			for _, method := range strings.Fields(c.method) {
				step := policyv1alpha1.EraseStep{Method: strings.TrimPrefix(method, "-"), Result: policyv1alpha1.EraseSucceeded}
				if method != step.Method {
					step.Result = policyv1alpha1.EraseFailed
				}
				steps = append(steps, step)
			}
			if got := Term(c.media, steps, &policyv1alpha1.EraseVerification{Passed: c.passed}, c.volume); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := Term(c.media, steps, nil, c.volume); got != "" {
				t.Errorf("without a verification: %q", got)
			}
		})
	}
}

func TestWhatATermSatisfies(t *testing.T) {
	for name, c := range map[string]struct {
		reached, asked policyv1alpha1.SanitizationTerm
		want           bool
	}{
		"nothing is asked":           {"", "", true},
		"Clear is asked and reached": {"Clear", "Clear", true},
		"more is reached":            {"Purge", "Clear", true},
		"less is reached":            {"Clear", "Purge", false},
		"nothing is reached":         {"", "Clear", false},
		"no erase destroys":          {"Purge", "Destroy", false},
		"what is not known":          {"Purge", "Burn", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Reaches(c.reached, c.asked); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
