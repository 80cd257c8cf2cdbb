// SPDX-License-Identifier: Apache-2.0

package yamlpos

import (
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Position turns a place inside the text of a scalar into a place in the file: line counts from 1 and column from 0, both
// within the text and in characters. YAML takes indentation away, folds lines and reads escapes, so that the text is
// followed through the source from its first character on.
func (f *File) Position(n *yaml.Node, line, column int) (int, int) {
	text := []rune(n.Value)
	target := offset(text, line, column)
	s := &source{lines: f.lines, line: n.Line, column: n.Column, style: n.Style}
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		s.line, s.column = n.Line+1, 1
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		s.column++
	}
	for i := range target {
		if unicode.IsSpace(text[i]) {
			continue // what separates words is as long in the source as its author likes
		}
		s.skipSpace()
		if !s.match(text[i]) {
			break
		}
	}
	if target < len(text) && !unicode.IsSpace(text[target]) {
		s.skipSpace()
	}
	return s.line, s.column
}

// offset is the position of a line and a column in a text.
func offset(text []rune, line, column int) int {
	at := 0
	for ; line > 1 && at < len(text); at++ {
		if text[at] == '\n' {
			line--
		}
	}
	return min(at+max(column, 0), len(text))
}

// source walks through the lines of a file.
type source struct {
	lines        []string
	line, column int
	style        yaml.Style
}

// here is the character at the present place; 0 at the end of a line, and false at the end of the file.
func (s *source) here() (rune, bool) {
	if s.line < 1 || s.line > len(s.lines) {
		return 0, false
	}
	if line := []rune(s.lines[s.line-1]); s.column <= len(line) {
		return line[s.column-1], true
	}
	return 0, true
}

func (s *source) skipSpace() {
	for {
		r, ok := s.here()
		switch {
		case r == '\\' && s.lineEnds():
			s.line, s.column = s.line+1, 1
		case !ok, r != 0 && !unicode.IsSpace(r):
			return
		case r == 0 && s.line == len(s.lines):
			return
		case r == 0:
			s.line, s.column = s.line+1, 1
		default:
			s.column++
		}
	}
}

// lineEnds says whether an escaped line end is here.
func (s *source) lineEnds() bool {
	return s.style&yaml.DoubleQuotedStyle != 0 && s.column == len([]rune(s.lines[s.line-1]))
}

// escapes is how many characters follow the backslash and the letter of an escape with a number.
var escapes = map[rune]int{'x': 2, 'u': 4, 'U': 8}

// match steps over the source of one character; false where the source says something else.
func (s *source) match(want rune) bool {
	r, ok := s.here()
	if !ok || r == 0 {
		return false
	}
	switch {
	case s.style&yaml.DoubleQuotedStyle != 0 && r == '\\':
		s.column++
		letter, _ := s.here()
		s.column += 1 + escapes[letter]
		return true
	case s.style&yaml.SingleQuotedStyle != 0 && r == '\'':
		s.column += 2
		return want == '\''
	case r != want:
		return false
	}
	s.column++
	return true
}
