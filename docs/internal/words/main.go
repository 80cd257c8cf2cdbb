// SPDX-License-Identifier: Apache-2.0

// Command words reports sentences that are too long, and words that only this project used, in what users read.
// It fails for hand-written pages, and counts findings in generated pages and in the messages of Go files.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// generated begins the first line of a page that a program writes. Its texts are in Go files.
const generated = "<!-- Generated from"

// measured lists hand-written pages that may break the rules. A page that is rewritten leaves the list.
var measured = []string{
	"docs/reference/verification-proof.md", // Tables that make test-mutants prints.
}

// Lengths of a sentence, in words.
const (
	aim   = 25
	limit = 28
)

func main() {
	all := flag.Bool("all", false, "print the findings of every text, not only of hand-written pages")
	flag.Parse()
	failed, err := run(os.Stdout, flag.Args(), *all)
	if err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
	}
	if failed || err != nil {
		os.Exit(1)
	}
}

// run reports on the files, or on all texts of the repository in which it is called.
func run(out io.Writer, files []string, all bool) (failed bool, err error) {
	if len(files) == 0 {
		if files, err = texts("."); err != nil {
			return false, err
		}
	}
	var pages, programs counts
	var page strings.Builder
	for _, file := range files {
		found, err := read(file)
		if err != nil {
			return failed, err
		}
		if all || found.strict {
			for _, f := range found.findings {
				fmt.Fprintf(&page, "%s:%d: %s\n", file, f.line, f.text)
			}
		}
		failed = failed || found.strict && len(found.findings) > 0
		if filepath.Ext(file) == ".go" {
			programs.add(found.counts)
		} else {
			pages.add(found.counts)
		}
	}
	fmt.Fprintf(&page, "words: pages: %s\nwords: messages in Go files: %s\n", pages, programs)
	_, err = io.WriteString(out, page.String())
	return failed, err
}

// read judges the sentences of a file.
func read(file string) (verdict, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return verdict{}, err
	}
	if filepath.Ext(file) != ".go" {
		found := judge(markdownSentences(string(text)))
		found.strict = !strings.HasPrefix(string(text), generated) && !slices.Contains(measured, filepath.ToSlash(file))
		return found, nil
	}
	sentences, err := messages(file, text)
	return judge(sentences), err
}

// texts lists the pages and the Go files that hold messages, below the repository's root.
func texts(root string) ([]string, error) {
	var all []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	for _, folder := range []string{"cmd", "controllers", "policies", "webhooks"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry os.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && isMessageFile(path) {
				all = append(all, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
