// SPDX-License-Identifier: Apache-2.0

package trees

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/test/env"
)

func TestThePageOfTestedBMCsSaysWhatTheTreesShow(t *testing.T) {
	repository, err := env.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(repository, "docs", "tested-bmcs.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range outcomes {
		row := fmt.Sprintf("| %s | %s | captured tree | %s |\n", o.machine, o.firmware, o.works)
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/tested-bmcs.md lacks the row\n%s", row)
		}
	}
	if rows := strings.Count(string(page), "| captured tree |"); rows != len(outcomes) {
		t.Errorf("docs/tested-bmcs.md has %d rows of captured trees, and %d were tried", rows, len(outcomes))
	}
}
