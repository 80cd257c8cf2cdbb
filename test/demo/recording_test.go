// SPDX-License-Identifier: Apache-2.0

package main

import (
	"html"
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheRecordingShowsEveryStep(t *testing.T) {
	recording, err := os.ReadFile("../../docs/demo.svg")
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, m := range regexp.MustCompile(`(?m)s  ok  (.*) \(\d+\.\ds\)</text>$`).FindAllStringSubmatch(string(recording), -1) {
		shown = append(shown, html.UnescapeString(m[1]))
	}
	var want []string
	for _, c := range story(&world{options: options{servers: 20}}) {
		for _, s := range c.steps {
			want = append(want, s.name)
		}
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("docs/demo.svg is stale; CONTRIBUTING.md says how to record it anew (- is the story, + is shown):\n%s", diff)
	}
}
