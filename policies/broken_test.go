// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/policies/corpus"
)

var update = flag.Bool("update", false, "write what is found into testdata/broken")

// brokenBundles are the broken bundles, as archives that corpus reads.
var brokenBundles = filepath.Join("testdata", "broken")

// doubtfulBundles are bundles that may be stored, and of which their author is warned.
var doubtfulBundles = filepath.Join("testdata", "doubtful")

func TestADoubtfulBundleIsAcceptedWithAWarning(t *testing.T) {
	archives, err := corpus.Read(doubtfulBundles)
	if err != nil || len(archives) == 0 {
		t.Fatalf("%d doubtful bundles: %v", len(archives), err)
	}
	for _, archive := range archives {
		t.Run(archive.Name, func(t *testing.T) {
			files, fill, err := archive.Bundle(shippedFiles(t, DefaultBundle))
			if err != nil {
				t.Fatal(err)
			}
			accepted, report, err := bundle.Accept(t.Context(), files, Acceptance(fill))
			if err != nil {
				t.Fatal(err)
			}
			if accepted == nil {
				t.Errorf("it is refused: %v", report.Found.Err())
			}
			checkFindings(t, report.Found)
			got := ""
			for _, d := range report.Found {
				if d.Severity == diag.Warning && d.File == bundle.LifecycleFile {
					got += d.String() + "\n"
				}
			}
			wantOrWrite(t, archive, got)
		})
	}
}

func TestABrokenBundleIsAnsweredWithPlaceCauseAndRemedy(t *testing.T) {
	archives, err := corpus.Read(brokenBundles)
	if err != nil {
		t.Fatal(err)
	}
	if len(archives) < 60 {
		t.Errorf("there are %d broken bundles and not 60", len(archives))
	}
	for _, archive := range archives {
		t.Run(archive.Name, func(t *testing.T) {
			files, fill, err := archive.Bundle(shippedFiles(t, DefaultBundle))
			if err != nil {
				t.Fatal(err)
			}
			accepted, report, err := bundle.Accept(t.Context(), files, Acceptance(fill))
			if err != nil {
				t.Fatal(err)
			}
			if accepted != nil {
				t.Error("it is accepted")
			}
			checkFindings(t, report.Found)
			got := ""
			for _, d := range report.Found {
				if d.Severity == diag.Error { // what the default itself draws is no error
					got += d.String() + "\n"
				}
			}
			wantOrWrite(t, archive, got)
		})
	}
}

// wantOrWrite compares what is found with what an archive says, or has the archive say it.
func wantOrWrite(t *testing.T, archive corpus.Archive, got string) {
	t.Helper()
	if *update {
		if err := archive.Write(got); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, says := archive.Want()
	if !says {
		t.Fatal("it does not say what is found; run the test with -update and read what it writes")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// checkFindings holds every finding to its form: a documented code, a remedy, and a place inside the file.
func checkFindings(t *testing.T, found diag.List) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "docs", "reference", "diagnostics.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range found {
		if d.Hint == "" {
			t.Errorf("no remedy: %s", d)
		}
		if !strings.Contains(string(page), "\n| `"+d.Code+"` |") {
			t.Errorf("the code is not documented: %s", d)
		}
		if d.File == "" || d.Line < 0 || (d.Line > 0 && d.Column < 1) {
			t.Errorf("no place: %s", d)
		}
	}
}
