// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestThePagesKnowTheHighestScoreOfTheDefault(t *testing.T) {
	healthy, failing, err := mostPoints()
	if err != nil || healthy != 180 || failing != 80 {
		t.Fatalf("%v, and %v for a server with a warning: docs/claims.md and the weights of the library follow these; %v", healthy, failing, err)
	}
	page, err := os.ReadFile("../../claims.md")
	if want := fmt.Sprintf("the default's are at most %v.", healthy); err != nil || !strings.Contains(string(page), want) {
		t.Errorf("docs/claims.md does not say %q: %v", want, err)
	}
}
