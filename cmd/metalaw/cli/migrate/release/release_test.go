// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// Every word that some release has for leaving an object alone.
var every = []string{"ignore", "ignore-reconciliation", "ignore-child", "ignore-child-reconciliation", "ignore-child-and-self",
	"ignore-child-and-self-reconciliation", "ignore-propagated", "ignore-reconciliation-propagated", "ignore-for-audit"}

func TestEachReleaseHonoursItsOwnWordsByKind(t *testing.T) {
	old := map[Kind][]string{Server: {"ignore-reconciliation"}, ServerClaim: {"ignore-reconciliation"},
		Endpoint: {"ignore-reconciliation"}, BMC: {"ignore-reconciliation", "ignore-child-and-self-reconciliation"}}
	seven := map[Kind][]string{Server: {"ignore"}, ServerClaim: {"ignore"}, Endpoint: {"ignore"},
		BMC: {"ignore", "ignore-child-and-self"}}
	branch := map[Kind][]string{Server: {"ignore"}, ServerClaim: {"ignore"}, Endpoint: {"ignore"}, BMC: {"ignore"}}
	for version, honours := range map[string]map[Kind][]string{
		"v0.4": old, "v0.4.0": old, "v0.5.0": old, "v0.6": old, "v0.6.2": old, "0.6.2": old,
		"v0.7": seven, "v0.7.0": seven, "v0.7.1": seven, "main": branch,
	} {
		r, err := Parse(version)
		if err != nil {
			t.Fatal(err)
		}
		for kind, want := range honours {
			for _, word := range every {
				if got := r.Honours(kind, word); got != slices.Contains(want, word) {
					t.Errorf("%s honours %s on a %s: %v", version, word, kind, got)
				}
			}
			if !r.Honours(kind, r.Word()) {
				t.Errorf("%s does not honour its own word %s on a %s", version, r.Word(), kind)
			}
		}
		if r.source == "" {
			t.Errorf("%s has no source", version)
		}
	}
}

func TestAWordThatIsNotKnownIsRemovedFromAServerSinceVersionSeven(t *testing.T) {
	for version, want := range map[string][2]string{
		"v0.6.2": {"acts on it", "acts on it"},
		"v0.7.0": {"removes the word and acts on it", "acts on it"},
		"main":   {"removes the word and acts on it", "acts on it"},
	} {
		r, err := Parse(version)
		if got := [2]string{r.Wrong(Server), r.Wrong(BMC)}; err != nil || got != want {
			t.Errorf("%s: %q, %v", version, got, err)
		}
	}
}

func TestAReleaseLacksTheStatesThatCameLater(t *testing.T) {
	for version, want := range map[string]bool{"v0.6": false, "v0.7": true, "main": true} {
		r, err := Parse(version)
		if err != nil || r.Has(v1alpha1.StateParked) != want || r.Has(v1alpha1.StateObserving) || r.Has(v1alpha1.StateDecommissioned) ||
			!r.Has(v1alpha1.StateReserved) {
			t.Errorf("%s: %v", version, err)
		}
	}
}

func TestAVersionWhoseWordsAreNotKnownIsRefused(t *testing.T) {
	for version, want := range map[string]string{
		"":        `"" is no version of metal-operator; it is v0.4 to v0.7, or main`,
		"latest":  `"latest" is no version of metal-operator; it is v0.4 to v0.7, or main`,
		"v1.7":    `"v1.7" is no version of metal-operator; it is v0.4 to v0.7, or main`,
		"v0.7-rc": `"v0.7-rc" is no version of metal-operator; it is v0.4 to v0.7, or main`,
		"v0.3.1":  "which words metal-operator v0.3.1 honours is not known; known are v0.4 to v0.7, or main",
		"0.8":     "which words metal-operator v0.8 honours is not known; known are v0.4 to v0.7, or main",
	} {
		if _, err := Parse(version); err == nil || err.Error() != want {
			t.Errorf("%q: %v", version, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("v0.7.0")
	f.Add("main")
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := Parse(text); err == nil && (!v1alpha1.IsIgnore(r.Word()) || strings.TrimSpace(r.name) != r.name) {
			t.Errorf("%q is taken for %+v", text, r)
		}
	})
}
