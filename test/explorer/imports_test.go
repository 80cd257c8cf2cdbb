// SPDX-License-Identifier: Apache-2.0

package explorer_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// A judge that borrowed from whom it judges would repeat its mistakes.
func TestTheExplorerImportsNothingOfOurs(t *testing.T) {
	sources, err := filepath.Glob("*.go")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			if strings.HasPrefix(i.Path.Value, `"github.com/metalaw/metalaw`) {
				t.Errorf("%s imports %s", source, i.Path.Value)
			}
		}
	}
}
