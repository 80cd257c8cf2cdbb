// SPDX-License-Identifier: Apache-2.0

// Package pages finds the commands that a reader copies from a page, so that a spec can run them.
package pages

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Block is a fenced block of shell commands.
type Block struct {
	// Line is that of its first command. Heading is the heading above it.
	Line    int
	Heading string
	Lines   []string
}

// First is the block's first line, by which a spec names it.
func (b Block) First() string { return Line(b.Lines[0]) }

// Blocks lists the blocks of sh and bash in the order of the page. A block of console shows output of one day and is left out.
func Blocks(page string) []Block {
	var all []Block
	heading, fence := "", ""
	for i, line := range strings.Split(page, "\n") {
		text := strings.TrimSpace(line)
		switch {
		case fence == "" && strings.HasPrefix(text, "```"):
			fence = strings.TrimPrefix(text, "```")
			if fence == "" {
				fence = "text"
			}
			if shell(fence) {
				all = append(all, Block{Line: i + 2, Heading: heading})
			}
		case fence != "" && text == "```":
			fence = ""
		case fence == "" && strings.HasPrefix(line, "#"):
			heading = strings.TrimSpace(strings.TrimLeft(line, "#"))
		case shell(fence):
			all[len(all)-1].Lines = append(all[len(all)-1].Lines, line)
		}
	}
	return slices.DeleteFunc(all, func(b Block) bool { return len(b.Lines) == 0 })
}

func shell(fence string) bool { return fence == "sh" || fence == "bash" }

// Line is a line of a block without the remark behind it.
func Line(text string) string {
	if before, _, found := strings.Cut(text, "  # "); found {
		text = before
	}
	return strings.TrimSpace(text)
}

// Script is what runs of a block. left holds the lines that do not run, and fails those whose exit code 1 is an answer.
func (b Block) Script(left, fails map[string]string, names map[string]string) string {
	var script strings.Builder
	for _, line := range b.Lines {
		key := Line(line)
		if _, is := left[key]; is {
			continue
		}
		if _, is := fails[key]; is {
			line = key + " || [ $? -eq 1 ]"
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			line = strings.ReplaceAll(line, name, names[name])
		}
		script.WriteString(line + "\n")
	}
	return script.String()
}

// Missing lists what a spec says of lines that no block has: the page changed, and the spec must follow.
func Missing(blocks []Block, said ...map[string]string) []string {
	stands := map[string]bool{}
	for _, b := range blocks {
		for _, line := range b.Lines {
			stands[Line(line)] = true
		}
	}
	var missing []string
	for _, table := range said {
		for line := range table {
			if !stands[line] {
				missing = append(missing, fmt.Sprintf("no block has the line %q", line))
			}
		}
	}
	slices.Sort(missing)
	return missing
}
