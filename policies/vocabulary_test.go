// SPDX-License-Identifier: Apache-2.0

package policies

import "testing"

func TestQuietFactsAreThoseOfACleanFreeMachineThatIsKnownAndOff(t *testing.T) {
	for name, want := range map[string]string{
		"server.claimRefSet":   "false",
		"server.reclaimPolicy": `"Recycle"`,
		"lifecycle.entry":      "1",
		"lifecycle.age":        "0s",
		"lifecycle.marks":      "[]",
		"bmc.reachable":        "true",
		"bmc.power":            `"Off"`,
		"bmc.health":           `"OK"`,
		"bmc.identity":         `"Same"`,
		"boot.purpose":         `"None"`,
		"claim.power":          `"None"`,
		"probe.entry":          "-1",
		"wipe.entry":           "-1",
		"wipe.budget":          "4h0m0s",
		"operation.name":       `"None"`,
		"operation.entry":      "-1",
		"policy.sanitization":  `"required"`,
	} {
		i, ok := Vocabulary().Index(name)
		if !ok {
			t.Fatalf("there is no fact %s", name)
		}
		if got := Vocabulary().Facts[i].Quiet.String(); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
