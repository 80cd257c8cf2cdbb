// SPDX-License-Identifier: Apache-2.0

// Command gen writes the pages of docs that follow from code: the default lifecycle and the reference. The same pages are
// made in memory by its test, which fails when a page on disk is another.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// page makes one file of docs from the repository at root.
type page struct {
	file string
	make func(root string) (string, error)
}

// pages lists every generated file.
func pages() []page {
	return append(bundlePages(), []page{
		{"lifecycle.md", lifecyclePage},
		{"reference/facts.md", factsPage},
		{"reference/effects.md", effectsPage},
		{"reference/safety-rules.md", safetyPage},
		{"reference/conditions.md", conditionsPage},
		{"reference/annotations.md", annotationsPage},
		{"reference/placement.md", placementPage},
		{"reference/claim-codes.md", claimCodesPage},
		{"reference/library.md", libraryPage},
		{"reference/metrics.md", metricsPage},
		{"reference/flags.md", flagsPage},
		{"reference/commands.md", commandsPage},
		{"cost.svg", costPicture},
		{"load.svg", loadPicture},
		{"load.md", loadPage},
	}...)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := repository()
	if err != nil {
		return err
	}
	for _, p := range pages() {
		text, err := p.make(root)
		if err != nil {
			return fmt.Errorf("%s: %w", p.file, err)
		}
		path := filepath.Join(root, "docs", filepath.FromSlash(p.file))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // A page of documentation is for everybody.
			return err
		}
	}
	return nil
}

// repository is the folder above the working directory that holds the module and these docs.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "docs", "generate.go")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("run this inside the repository")
		}
		dir = parent
	}
}
