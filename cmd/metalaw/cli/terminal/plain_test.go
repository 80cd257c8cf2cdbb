// SPDX-License-Identifier: Apache-2.0

package terminal

import "testing"

func TestWhatOthersWroteSteersNoTerminal(t *testing.T) {
	for text, want := range map[string]string{
		"the cooling of zone z1 is being repaired": "the cooling of zone z1 is being repaired",
		"x\x1b[31mRED\nnewline\ttab":               `x\x1b[31mRED\nnewline\ttab`,
		"Kühlung, 冷却":                              "Kühlung, 冷却",
		"\u009b31m":                                `\u009b31m`,
	} {
		if got := Plain(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}
