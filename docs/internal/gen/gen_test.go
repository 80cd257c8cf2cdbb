// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNoGeneratedPageIsStale(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages() {
		t.Run(p.file, func(t *testing.T) {
			want, err := p.make(root)
			if err != nil {
				t.Fatal(err)
			}
			again, err := p.make(root)
			if err != nil || again != want {
				t.Fatalf("made twice, the page is not the same (error %v)", err)
			}
			have, err := os.ReadFile(filepath.Join(root, "docs", p.file))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(have), want); diff != "" {
				t.Errorf("docs/%s is stale; run `go generate ./docs` (- is on disk, + is right):\n%s", p.file, diff)
			}
		})
	}
}

var (
	link    = regexp.MustCompile(`!?\[[^\]]*\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	noSlug  = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// slug is the anchor that a heading gets.
func slug(title string) string {
	return strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
}

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	files := []string{filepath.Join(root, "README.md")}
	for _, pattern := range []string{"*.md", "*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, "docs", pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, from := range files {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range link.FindAllStringSubmatch(string(text), -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			to := from
			if target != "" {
				to = filepath.Join(filepath.Dir(from), filepath.FromSlash(target))
			}
			content, err := os.ReadFile(to)
			if info, statErr := os.Stat(to); statErr == nil && info.IsDir() {
				continue
			}
			if err != nil {
				t.Errorf("%s: %s leads nowhere", from, found[1])
				continue
			}
			if anchor != "" && !hasHeading(string(content), anchor) {
				t.Errorf("%s: %s: there is no such heading", from, found[1])
			}
		}
	}
}

func hasHeading(text, anchor string) bool {
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		if slug(h[1]) == anchor {
			return true
		}
	}
	return false
}

var stateExcerpt = regexp.MustCompile("(?s)```yaml\n([A-Z][a-z]+:\n.*?)```")

func TestEveryStateThatIsShownIsAsTheBundleHasIt(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	lifecycle, err := os.ReadFile(filepath.Join(root, "policies/bundles/default/lifecycle.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"README.md", "docs/concepts.md"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		shown := stateExcerpt.FindStringSubmatch(string(text))
		if shown == nil {
			t.Errorf("%s shows no state", file)
			continue
		}
		indented := "  " + strings.ReplaceAll(strings.TrimRight(shown[1], "\n"), "\n", "\n  ")
		if !strings.Contains(string(lifecycle), indented+"\n") {
			t.Errorf("%s shows a state that lifecycle.yaml does not have like this:\n%s", file, indented)
		}
	}
}
