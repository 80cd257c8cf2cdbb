// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"regexp"
	"strings"
)

// command is a command that a page shows.
type command struct {
	line  int
	words []string
	// whole says that it stands in a block that a reader copies, and not as a mention in a text.
	whole bool
}

var (
	fence    = regexp.MustCompile("^ *```(\\w*)")
	document = regexp.MustCompile(`<<-?'?(\w+)'?`)
	mention  = regexp.MustCompile("`((?:kubectl )?(?:metalaw|make|redfish-emulator) [^`]+)`")
)

// shown finds the commands of a page: in blocks of sh, in blocks of console behind a prompt, and between backquotes.
func shown(page string) []command {
	var all []command
	lines := strings.Split(page, "\n")
	language, inside, until := "", false, ""
	for i := 0; i < len(lines); i++ {
		text, at := lines[i], i+1
		if m := fence.FindStringSubmatch(text); m != nil && until == "" {
			language, inside = m[1], !inside
			continue
		}
		switch {
		case until != "":
			if strings.TrimSpace(text) == until {
				until = ""
			}
			continue
		case !inside:
			for _, m := range mention.FindAllStringSubmatch(text, -1) {
				for _, words := range split(m[1]) {
					all = append(all, command{line: at, words: words})
				}
			}
			continue
		case language == "console" && strings.HasPrefix(text, "$ "):
			text = text[2:]
		case language != "sh" && language != "bash":
			continue
		}
		for strings.HasSuffix(text, "\\") && i+1 < len(lines) {
			i++
			text = strings.TrimSuffix(text, "\\") + " " + lines[i]
		}
		if m := document.FindStringSubmatch(text); m != nil {
			until = m[1]
		}
		for _, words := range split(text) {
			all = append(all, command{line: at, words: words, whole: true})
		}
	}
	return all
}

// split cuts a line into commands and these into words, as a shell does; where a stream goes is left out.
func split(line string) [][]string {
	var all [][]string
	var words []string
	var word strings.Builder
	quote, begun, redirects := rune(0), false, false
	end := func() {
		if begun && !redirects {
			words = append(words, word.String())
		}
		redirects = redirects && !begun
		word.Reset()
		begun = false
	}
	next := func() {
		end()
		if len(words) > 0 {
			all = append(all, words)
		}
		words, redirects = nil, false
	}
	for i, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case r == ' ' || r == '\t':
			end()
		case r == '#' && !begun:
			next()
			return all
		case r == '<' || r == '>':
			end()
			redirects = true
		case r == '|' && begun && i+1 < len(line) && line[i+1] != ' ', r != '|' && r != ';' && r != '&':
			word.WriteRune(r)
			begun = true
		default:
			next()
		}
	}
	next()
	return all
}
