// SPDX-License-Identifier: Apache-2.0

// Command words reports sentences that are too long, and words that only this project used, in what users read.
// It fails for the pages that are declared clean, and counts the rest.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// clean lists the texts in which every finding is a failure. A text that was rewritten joins the list.
var clean = []string{
	"CHANGELOG.md",
	"CONTRIBUTING.md",
	"README.md",
	"docs/README.md",
	"docs/admission.md",
	"docs/bundles.md",
	"docs/burn-in.md",
	"docs/claims.md",
	"docs/comparison.md",
	"docs/concepts.md",
	"docs/emulator.md",
	"docs/first-claim.md",
	"docs/from-metal-operator.md",
	"docs/glossary.md",
	"docs/load.md",
	"docs/operations.md",
	"docs/security.md",
	"docs/tested-bmcs.md",
}

// Lengths of a sentence, in words.
const (
	aim   = 25
	limit = 28
)

func main() {
	all := flag.Bool("all", false, "print the findings of every text, not only of the clean ones")
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
	for _, file := range files {
		found, err := read(file)
		if err != nil {
			return failed, err
		}
		if isClean := slices.Contains(clean, filepath.ToSlash(file)); all || isClean {
			for _, f := range found.findings {
				fmt.Fprintf(out, "%s:%d: %s\n", file, f.line, f.text)
			}
			failed = failed || isClean && len(found.findings) > 0
		}
		if filepath.Ext(file) == ".go" {
			programs.add(found.counts)
		} else {
			pages.add(found.counts)
		}
	}
	fmt.Fprintf(out, "words: pages: %s\nwords: messages in Go files: %s\n", pages, programs)
	return failed, nil
}

// read judges the sentences of a file.
func read(file string) (verdict, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return verdict{}, err
	}
	if filepath.Ext(file) != ".go" {
		return judge(markdownSentences(string(text))), nil
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
