// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

const (
	// maxNamed bounds what a message names.
	maxNamed = 4
	// maxWord bounds one word of it, in bytes.
	maxWord = 60
)

// Remedy says what to do about hidden storage.
const Remedy = "Bind its driver, take it out, excuse it (wipe.excused) or attest it (metalaw server attest); then retry"

// Failure is the message of a wipe that fails for hidden storage.
func Failure(open []policyv1alpha1.HiddenStorage) string {
	return "no disk shows this storage of the machine, and it may hold data: " + Words(open) + ". " + Remedy
}

// Words names hidden storage: its name, function, slot and serial number, as far as they are known.
func Words(all []policyv1alpha1.HiddenStorage) string {
	names := make([]string, 0, maxNamed+1)
	for i, h := range all {
		if i == maxNamed {
			names = append(names, fmt.Sprintf("and %d more", len(all)-maxNamed))
			break
		}
		names = append(names, Word(h))
	}
	return strings.Join(names, "; ")
}

// Word names one part of it.
func Word(h policyv1alpha1.HiddenStorage) string {
	what := "function"
	if h.Source == policyv1alpha1.HiddenByBMC {
		what = "drive"
	}
	words := []string{what, cut(name(h))}
	for _, part := range []struct{ kind, value string }{
		{"function", h.Address}, {"PCI", h.PCIID}, {"slot", h.Slot}, {"serial", h.Serial},
	} {
		if part.value != "" && part.value != name(h) {
			words = append(words, part.kind, cut(part.value))
		}
	}
	words = slices.Compact(words)
	if h.Source == policyv1alpha1.HiddenByBMC {
		words = append(words, "(the BMC lists it)")
	}
	return strings.Join(words, " ")
}

// name is the shortest way to name it; empty where it has no name at all.
func name(h policyv1alpha1.HiddenStorage) string {
	return cmp.Or(h.Name, h.Address, h.Slot, h.Serial, h.PCIID, h.Model)
}

func cut(text string) string {
	if len(text) <= maxWord {
		return text
	}
	return strings.ToValidUTF8(text[:maxWord], "")
}
