// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path"
	"regexp"
	"testing"
)

// decides finds a function that answers a question, in a package that is to import no client, no cache and no clock.
var decides = regexp.MustCompile(`(?m)^func (Decide|Plan|Record)\b`)

// decidesBesides are the packages with such a function that the rule "decisions" of .golangci.yml leaves out.
var decidesBesides = map[string]string{
	"controllers/server/identity": "it also reads the BMC by a cache of its own; Decide takes the reading as it was",
	"metalprobe/holders":          "the agent has neither client nor cache; the package reads the files of its machine",
	"webhooks/bundles":            "Record is the text of an annotation, and the package is the shell of admission",
}

func TestEachPackageThatDecidesIsHeldToTheRule(t *testing.T) {
	rules, err := os.ReadFile("../../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	files, err := sources(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for name, text := range files {
		if decides.Match(text) {
			found[path.Dir(name)] = true
		}
	}
	for name := range found {
		held := bytes.Contains(rules, []byte("- ${base-path}/"+name+"/"))
		if _, besides := decidesBesides[name]; held == besides {
			t.Errorf("%s: it is in the rule: %t, and among those left out: %t", name, held, besides)
		}
	}
	for name, reason := range decidesBesides {
		if !found[name] || reason == "" {
			t.Errorf("%s decides nothing any more, or has no reason to be left out", name)
		}
	}
	if len(found) < 10 {
		t.Errorf("only %v were found", found)
	}
}
