// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

func TestEveryCodeOfAServerHasASentenceAndARemedy(t *testing.T) {
	page := read(t, "docs/reference/claim-codes.md")
	seen := map[string]bool{}
	for _, c := range append(selection.Codes(), placement.Codes()...) {
		if !strings.HasSuffix(c.Meaning, ".") || !strings.HasSuffix(c.Remedy, ".") || strings.Contains(c.Code, " ") || seen[c.Code] {
			t.Errorf("%+v is not documented, or twice", c)
		}
		seen[c.Code] = true
		if !strings.Contains(page, "\n### "+c.Code+"\n\n"+c.Meaning+"\n\n**Do:** "+c.Remedy+"\n") {
			t.Errorf("docs/reference/claim-codes.md lacks %s", c.Code)
		}
	}
	for _, from := range []string{"docs/claims.md", "docs/runbooks/claim.md", "docs/runbooks/MetalawClaimsPending.md", "docs/README.md"} {
		if !strings.Contains(read(t, from), "reference/claim-codes.md") {
			t.Errorf("%s does not link the codes", from)
		}
	}
}
