// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
)

// sentence is one sentence as a reader sees it, and the line on which its paragraph begins.
type sentence struct {
	line int
	text string
}

// someCode stands for inline code, which counts as one word.
const someCode = "Code"

var (
	fence      = regexp.MustCompile("^\\s*(```+|~~~+)")
	opensBlock = regexp.MustCompile(`^\s*(?:>\s*)*(?:[*+-]|\d+[.)])\s+|^\s*>\s?|^#{1,6}\s+`)
	comment    = regexp.MustCompile(`(?s)<!--.*?(?:-->|$)`)
	code       = regexp.MustCompile("``[^`].*?``|`[^`]*`")
	anchor     = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	tableRule  = regexp.MustCompile(`^[\s|:-]+$`)
	cellEdge   = regexp.MustCompile(`\\\|`)
	end        = regexp.MustCompile(`[.!?]["')\]*_]*\s+`)
	shortForm  = regexp.MustCompile(`(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|[A-Z])\.$`)
)

// markdownSentences splits the prose of a page: headings, paragraphs, list items and each cell of a table. Code is left out.
func markdownSentences(text string) []sentence {
	text = comment.ReplaceAllStringFunc(text, func(c string) string { return strings.Repeat("\n", strings.Count(c, "\n")) })
	var all []sentence
	block, begins, fenced := "", 0, ""
	flush := func() {
		all = append(all, split(block, begins)...)
		block = ""
	}
	for i, line := range strings.Split(text, "\n") {
		mark := fence.FindStringSubmatch(line)
		switch {
		case fenced != "":
			if len(mark) > 1 && strings.HasPrefix(mark[1], fenced) {
				fenced = ""
			}
		case mark != nil:
			flush()
			fenced = mark[1]
		case strings.TrimSpace(line) == "":
			flush()
		case strings.HasPrefix(strings.TrimSpace(line), "|"):
			flush()
			all = append(all, cells(line, i+1)...)
		case opensBlock.MatchString(line):
			flush()
			block, begins = opensBlock.ReplaceAllString(line, "")+"\n", i+1
			if strings.HasPrefix(line, "#") {
				flush()
			}
		default:
			if block == "" {
				begins = i + 1
			}
			block += line + "\n"
		}
	}
	flush()
	return all
}

// cells splits each cell of a table's row by itself.
func cells(row string, line int) []sentence {
	if tableRule.MatchString(row) {
		return nil
	}
	var all []sentence
	for cell := range strings.SplitSeq(plain(cellEdge.ReplaceAllString(row, "/")), "|") {
		all = append(all, split(cell, line)...)
	}
	return all
}

// plain takes the marks of Markdown away: code becomes one word, a link its text.
func plain(text string) string {
	text = code.ReplaceAllString(text, someCode)
	return anchor.ReplaceAllString(text, "$1")
}

// split cuts a paragraph at its full stops, but for those of short forms and ellipses.
func split(block string, line int) []sentence {
	text := strings.Join(strings.Fields(plain(block)), " ")
	var all []sentence
	add := func(part string) {
		if len(wordsOf(part)) > 0 {
			all = append(all, sentence{line, strings.TrimSpace(part)})
		}
	}
	from := 0
	for _, at := range end.FindAllStringIndex(text, -1) {
		if before := text[from : at[0]+1]; shortForm.MatchString(before) || strings.HasSuffix(before, "...") {
			continue
		}
		add(text[from:at[1]])
		from = at[1]
	}
	add(text[from:])
	return all
}
