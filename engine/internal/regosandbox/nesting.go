// SPDX-License-Identifier: Apache-2.0

package regosandbox

const (
	// maxNesting is how deep brackets, calls and operators may be nested.
	maxNesting = 25
	// maxClosures is how deep comprehensions, every and template strings may be nested in each other. The compiler goes into each of
	// them several times over: twelve take it half a second, and sixteen half a minute.
	maxClosures = 5
)

// position is that of a character in a file.
type position struct{ line, column int }

// deepest looks for a bracket that is nested deeper than maxNesting, before the parser does, which takes a time that grows with the
// square of the depth. Texts and comments are passed over, but for the expressions in template strings.
func deepest(text []byte) (position, bool) {
	s := scanner{text: text, at: position{1, 0}}
	for s.i = 0; s.i < len(text); s.i++ {
		s.advance()
		s.step()
		if len(s.open) > maxNesting {
			return s.at, true
		}
	}
	return position{}, false
}

// scanner goes through a file character by character. open holds what is not closed yet: brackets, and the quotation marks of texts.
type scanner struct {
	text []byte
	i    int
	at   position
	open []byte
}

// What is open besides brackets; a template is a text with expressions in braces.
const (
	template    = 'T'
	rawTemplate = 'R'
)

func (s *scanner) advance() {
	switch c := s.text[s.i]; {
	case c == '\n':
		s.at = position{s.at.line + 1, 0}
	case c&0xC0 != 0x80: // not within a character
		s.at.column++
	}
}

func (s *scanner) top() byte {
	if len(s.open) == 0 {
		return 0
	}
	return s.open[len(s.open)-1]
}

func (s *scanner) push(c byte) { s.open = append(s.open, c) }
func (s *scanner) pop()        { s.open = s.open[:max(0, len(s.open)-1)] }

func (s *scanner) step() {
	c := s.text[s.i]
	switch s.top() {
	case '"', template:
		s.inText(c, '"', true)
	case '`', rawTemplate:
		s.inText(c, '`', false)
	case '#':
		if c == '\n' {
			s.pop()
		}
	default:
		s.inCode(c)
	}
}

func (s *scanner) inText(c, end byte, escapes bool) {
	isTemplate := s.top() == template || s.top() == rawTemplate
	switch {
	case c == '\\' && (escapes || isTemplate) && s.i+1 < len(s.text) && s.text[s.i+1] != '\n':
		s.i++
		s.advance()
	case c == end, c == '\n' && end == '"':
		s.pop()
	case c == '{' && isTemplate:
		s.push(c)
	}
}

func (s *scanner) inCode(c byte) {
	isTemplate := s.i > 0 && s.text[s.i-1] == '$'
	switch c {
	case '"':
		if isTemplate {
			c = template
		}
		s.push(c)
	case '`':
		if isTemplate {
			c = rawTemplate
		}
		s.push(c)
	case '(', '[', '{', '#':
		s.push(c)
	case ')', ']', '}':
		s.pop()
	}
}
