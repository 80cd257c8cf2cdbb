// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"slices"
	"strings"
	"testing"
)

// settingsOf reads the settings of a bundle, and says what is wrong with them.
func settingsOf(text string) (*Settings, string) {
	m, found := parseManifest([]byte("apiVersion: policy.metalaw.dev/v1alpha1\nkind: Bundle\nname: x\nversion: 1.0.0\nsettings:\n" + text))
	var wrong []string
	for _, d := range found {
		wrong = append(wrong, d.Message)
	}
	return &m.Settings, strings.Join(wrong, "; ")
}

func TestWhichDisksAMachineMayBeOfferedWith(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		want  []string
		wrong string
	}{
		"nothing is said":                      {"  releaseGrace: 0s\n", []string{"Wiped", "Blank", "Attested"}, ""},
		"a waived wipe accepts every disk":     {"  sanitization: none\n", []string{"Wiped", "Blank", "Attested", "Unread", "Data"}, ""},
		"a waived wipe may be strict for once": {"  sanitization: none\n  offer: {accepts: [Blank]}\n", []string{"Blank"}, ""},
		"another agent is accepted":            {"  offer: {accepts: [Wiped, Unread]}\n", []string{"Wiped", "Unread"}, ""},
		"nothing is accepted":                  {"  offer: {accepts: []}\n", nil, ""},
		"a word that nobody knows":             {"  offer: {accepts: [Clean]}\n", nil, `accepts cannot be "Clean"`},
	} {
		t.Run(name, func(t *testing.T) {
			s, wrong := settingsOf(c.text)
			var got []string
			for _, w := range acceptWords {
				if s.Accepts(w) {
					got = append(got, w)
				}
			}
			if !slices.Equal(got, c.want) || wrong != c.wrong {
				t.Errorf("it accepts %v, and says %q", got, wrong)
			}
		})
	}
}

func TestTheTermOfAWipe(t *testing.T) {
	for name, c := range map[string]struct {
		text, namespace, want, wrong string
	}{
		"nothing is said":                     {"  wipe: {acceptDriveErase: true}\n", "shop", "", ""},
		"the fleet asks for a term":           {"  wipe: {minimumTerm: Clear}\n", "shop", "Clear", ""},
		"a namespace asks for more":           {"  wipe: {minimumTerm: Clear, namespaces: {bank: Purge}}\n", "bank", "Purge", ""},
		"a namespace gets no less":            {"  wipe: {minimumTerm: Purge, namespaces: {shop: Clear}}\n", "shop", "Purge", ""},
		"another namespace gets the fleet's":  {"  wipe: {minimumTerm: Clear, namespaces: {bank: Purge}}\n", "shop", "Clear", ""},
		"no erase reaches Destroy":            {"  wipe: {minimumTerm: Destroy}\n", "shop", "", `minimumTerm cannot be "Destroy"`},
		"a namespace that there cannot be":    {"  wipe: {namespaces: {Bank*: Purge}}\n", "shop", "", `"Bank*" cannot be a namespace`},
		"a disk without a name is no disk":    {"  wipe: {excused: [\"\"]}\n", "shop", "", `excused cannot be ""`},
		"disks are named by model or serial":  {"  wipe: {excused: [BOSS-S1], allowed: [\"naa.5000\"]}\n", "shop", "", ""},
		"the empty term is that of no policy": {"  wipe: {minimumTerm: \"\"}\n", "shop", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, wrong := settingsOf(c.text)
			if got := s.Wipe.TermFor(c.namespace); got != c.want || wrong != c.wrong {
				t.Errorf("the term is %q, and it says %q", got, wrong)
			}
		})
	}
}
