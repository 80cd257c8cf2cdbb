// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
)

var update = flag.Bool("update", false, "write what is found into testdata/broken")

// A broken bundle is a txtar archive. Each of its files is one of these:
//
//	-- NAME --             the file of the bundle as it is, in place of the default's
//	-- NAME: edit --       pairs of a line "<<<" with what the default's file says once, and a line ">>>" with what is put there
//	-- NAME: drop --       the bundle has no such file, and nothing is filled in
//	-- NAME: repeat N --   the content, N times
//	-- want --             what is found, one finding in a line
//
// The comment before the first file says what somebody did.
const (
	wantFile  = "want"
	separator = "-- "
)

// section is one file of an archive.
type section struct{ name, content string }

// readArchive reads a txtar archive.
func readArchive(data []byte) (comment string, sections []section) {
	for line := range strings.Lines(string(data)) {
		head := strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(head, separator) && strings.HasSuffix(head, " --"):
			sections = append(sections, section{name: strings.TrimSuffix(strings.TrimPrefix(head, separator), " --")})
		case len(sections) == 0:
			comment += line
		default:
			sections[len(sections)-1].content += line
		}
	}
	return comment, sections
}

func writeArchive(comment string, sections []section) []byte {
	var b bytes.Buffer
	b.WriteString(comment)
	for _, s := range sections {
		b.WriteString(separator + s.name + " --\n" + s.content)
	}
	return b.Bytes()
}

// broken is a bundle as an archive describes it, and the default without what the archive drops.
func broken(t *testing.T, sections []section) (files, fill bundle.Files) {
	t.Helper()
	fill = maps.Clone(shippedFiles(t, DefaultBundle))
	files = maps.Clone(fill)
	for _, s := range sections {
		name, how, _ := strings.Cut(s.name, ": ")
		switch {
		case name == wantFile:
		case how == "":
			files[name] = []byte(s.content)
		case how == "drop":
			delete(files, name)
			delete(fill, name)
		case how == "edit":
			files[name] = []byte(edited(t, name, string(fill[name]), s.content))
		case strings.HasPrefix(how, "repeat "):
			times, err := strconv.Atoi(strings.TrimPrefix(how, "repeat "))
			if err != nil {
				t.Fatal(err)
			}
			files[name] = bytes.Repeat([]byte(s.content), times)
		default:
			t.Fatalf("%s: there is no such form", s.name)
		}
	}
	return files, fill
}

// edited replaces what stands once in a text.
func edited(t *testing.T, name, text, edits string) string {
	t.Helper()
	for edit := range strings.SplitSeq(strings.TrimPrefix(edits, "<<<\n"), "\n<<<\n") {
		old, fresh, ok := strings.Cut(edit+"\n", "\n>>>\n")
		fresh = strings.TrimRight(fresh, "\n")
		if !ok || strings.Count(text, old) != 1 {
			t.Fatalf("%s does not say once: %s", name, old)
		}
		text = strings.Replace(text, old, fresh, 1)
	}
	return text
}

// archives lists the broken bundles.
func archives(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "broken", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestABrokenBundleIsAnsweredWithPlaceCauseAndRemedy(t *testing.T) {
	paths := archives(t)
	if len(paths) < 60 {
		t.Errorf("there are %d broken bundles and not 60", len(paths))
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			comment, sections := readArchive(data)
			files, fill := broken(t, sections)
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
			at := slices.IndexFunc(sections, func(s section) bool { return s.name == wantFile })
			if *update {
				if at < 0 {
					at, sections = len(sections), append(sections, section{name: wantFile})
				}
				sections[at].content = got
				if err := os.WriteFile(path, writeArchive(comment, sections), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if at < 0 {
				t.Fatal("it does not say what is found; run the test with -update and read what it writes")
			}
			if diff := cmp.Diff(sections[at].content, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// checkFindings holds every finding to its form: a registered code, a remedy, and a place inside the file.
func checkFindings(t *testing.T, found diag.List) {
	t.Helper()
	for _, d := range found {
		if d.Hint == "" {
			t.Errorf("no remedy: %s", d)
		}
		if _, ok := diag.Registered(d.Code); !ok {
			t.Errorf("the code is not documented: %s", d)
		}
		if d.File == "" || d.Line < 0 || (d.Line > 0 && d.Column < 1) {
			t.Errorf("no place: %s", d)
		}
	}
}
