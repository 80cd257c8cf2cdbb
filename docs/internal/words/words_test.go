// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMarkdownIsReadAsSentences(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"a full stop ends a sentence", "One is here. Two is\nthere.", []string{"One is here.", "Two is there."}},
		{"a short form ends none", "Disks, e.g. NVMe, count. So do A. B. Miller's.", []string{"Disks, e.g. NVMe, count.", "So do A. B. Miller's."}},
		{"a sentence may begin with a small letter", "It stops. metalaw goes on ... later.", []string{"It stops.", "metalaw goes on ... later."}},
		{"a number is not cut", "Version 0.1.0 works.", []string{"Version 0.1.0 works."}},
		{"inline code is one word", "Call `make test now`. `gen.go` writes.", []string{"Call Code.", "Code writes."}},
		{"a link is its text", "See [the page. Really](a.md#b).", []string{"See the page.", "Really."}},
		{"each item of a list is a sentence", "Do:\n\n* this\n  and that\n1. then this", []string{"Do:", "this and that", "then this"}},
		{"each cell of a table is a sentence", "| a | b \\| c |\n|---|---|\n| d. E | |", []string{"a", "b / c", "d.", "E"}},
		{"a heading is a sentence", "# One\ntwo", []string{"One", "two"}},
		{"code is left out", "a\n```sh\nb. C\n```\nd", []string{"a", "d"}},
		{"a longer fence holds a shorter one", "````\n```\nb\n````\nc", []string{"c"}},
		{"a comment is left out", "a\n<!-- b\nc -->\nd", []string{"a", "d"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, s := range markdownSentences(c.text) {
				got = append(got, s.text)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMessagesAreReadFromLiterals(t *testing.T) {
	source := `package p
import "fmt"
type t struct { A string ` + "`json:\"not a message at all\"`" + ` }
var short = "three words only"
var joined = "the server " + name +
	" is gone. Delete it"
var help = fmt.Sprintf("one two three four\n\nfive six", 1)
`
	want := []sentence{{5, "the server Code is gone."}, {5, "Delete it"}, {7, "one two three four"}, {7, "five six"}}
	got, err := messages("a.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(sentence{})); diff != "" {
		t.Error(diff)
	}
}

func TestASentenceIsJudged(t *testing.T) {
	words := func(n int) string { return strings.Repeat("word - ", n) + "." }
	for _, c := range []struct {
		name, text string
		want       counts
		says       string
	}{
		{"25 words pass", words(25), counts{sentences: 1}, ""},
		{"26 words are counted", words(26), counts{sentences: 1, overAim: 1}, ""},
		{"29 words are a finding", words(29), counts{sentences: 1, overAim: 1, overLimit: 1}, "a sentence of 29 words: "},
		{"a word that was given up is a finding", "Then *Somebody* looks.", counts{sentences: 1, words: 1}, `write for "somebody": the actor`},
		{"a part of a word is none", "Revisited.", counts{sentences: 1}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := judge([]sentence{{7, c.text}})
			said := ""
			for _, f := range got.findings {
				said += f.text
			}
			if got.counts != c.want || !strings.HasPrefix(said, c.says) || c.says == "" && said != "" {
				t.Errorf("%+v: %s", got.counts, said)
			}
		})
	}
}

func TestOnlyAHandWrittenPageFails(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		name, file, text string
		want             bool
	}{
		{"a hand-written page fails", "page.md", "one\n\nSomebody acts.\n", true},
		{"a generated page is counted", "made.md", generated + " code. -->\n\nSomebody acts.\n", false},
		{"a message is counted", "code.go", "package p\n\nvar a = \"somebody acts on this server\"\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(c.file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			failed, err := run(&out, []string{c.file}, false)
			if err != nil || failed != c.want || strings.Contains(out.String(), c.file+":3: write for") != c.want {
				t.Errorf("%v, %v\n%s", failed, err, out.String())
			}
			if !strings.Contains(out.String(), "1 words to replace") {
				t.Errorf("the word is not counted\n%s", out.String())
			}
		})
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, seed := range []string{"# a\n* b. C\n| d | e |\n```\nf\n```", "<!--", "`a", "[a](b", "~~~\n```\n~~~", "1. a\n> b\\| |"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		last := strings.Count(text, "\n") + 1
		for _, s := range markdownSentences(text) {
			if s.line < 1 || s.line > last || len(wordsOf(s.text)) == 0 || strings.Contains(s.text, "\n") {
				t.Errorf("%d: %q", s.line, s.text)
			}
		}
	})
}
