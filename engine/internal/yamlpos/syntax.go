// SPDX-License-Identifier: Apache-2.0

package yamlpos

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// unreadable reports the first character that YAML cannot have where it stands: a byte that is no UTF-8, a control character,
// and a tab or a space of another kind in the indentation, which looks like a space and is none.
func (f *File) unreadable() bool {
	for i, line := range f.lines {
		blank, indentation, column := strings.TrimSpace(line) == "", true, 0
		for at := 0; at < len(line); {
			r, size := utf8.DecodeRuneInString(line[at:])
			at += size
			column++
			if code, message, hint := strange(r, size, indentation, blank); code != "" {
				f.addAt(i+1, column, code, "", message, hint)
				return true
			}
			indentation = indentation && r == ' '
		}
	}
	return false
}

// strange says what is wrong with a character of so many bytes, in a line that may be blank; code is empty where YAML can have it there.
func strange(r rune, size int, indentation, blank bool) (code, message, hint string) {
	switch {
	case r == utf8.RuneError && size == 1:
		return "yaml-character", "here is a byte that is no UTF-8 text", "put it in again by hand, or save the file as UTF-8"
	case r < ' ' && r != '\t' && r != '\r' || r == 0x7f:
		return "yaml-character", fmt.Sprintf("here is the control character U+%04X", r), "take it out"
	case indentation && r == '\t' && !blank:
		return "yaml-tab", "a tab is used for indentation", "YAML indents with spaces only"
	case indentation && r > 0x7f && unicode.IsSpace(r):
		return "yaml-character", fmt.Sprintf("the indentation holds U+%04X, which looks like a space", r), "indent with plain spaces only"
	}
	return "", "", ""
}

func (f *File) syntaxError(err error) {
	if errors.Is(err, io.EOF) {
		f.addAt(1, 1, "yaml-empty", "", "the file is empty", "write the file or leave its key out")
		return
	}
	line, cause := f.firstBroken(err)
	if f.quotedBeginning(line) || f.exclamation(line) {
		return
	}
	message := yamlPrefix.ReplaceAllString(cause.Error(), "")
	if strings.Contains(message, "unexpected end of stream") {
		f.addAt(line, 1, "yaml-syntax", "", "a quote that begins in this line is not ended", "end the quote, or take it away")
		return
	}
	f.addAt(line, 1, "yaml-syntax", "", "YAML cannot be read on from here: "+message,
		"check indentation, brackets and quotes in this line and the next")
}

// span is how many lines in a row may not be readable by themselves because a value goes on behind them.
const span = 20

// firstBroken finds the line with which the text stops being YAML, and what is wrong with the text up to it: of most mistakes
// the parser says no more than where the block begins in which it was confused.
func (f *File) firstBroken(whole error) (int, error) {
	broken := func(lines int) error {
		var doc yaml.Node
		err := yaml.Unmarshal([]byte(strings.Join(f.lines[:lines], "\n")+"\n"), &doc)
		return err
	}
	good, bad, cause := 0, len(f.lines), whole
	for bad-good > 1 {
		middle := (good + bad) / 2
		if err := broken(middle); err != nil {
			bad, cause = middle, err
		} else {
			good = middle
		}
		if bad-good > 1 {
			continue
		}
		// A value that goes on over several lines is no mistake.
		for next := bad + 1; next <= min(bad+span, len(f.lines)-1); next++ {
			if broken(next) == nil {
				good, bad, cause = next, len(f.lines), whole
				break
			}
		}
	}
	return bad, cause
}

var (
	yamlPrefix = regexp.MustCompile(`^yaml: (line \d+: )?`)
	// quoted is a value that begins with a quote and goes on behind the quote that ends it.
	quoted = regexp.MustCompile(`^(\s*(?:- )?(?:\{.*[{,] *)?[\w.-]+: +(?:\{.*: *)?)("[^"]*"|'[^']*')\s+([^\s#,}\]])`)
	// negated is a value that begins with an exclamation mark.
	negated = regexp.MustCompile(`[\w.-]+: +(![\w(])`)
)
