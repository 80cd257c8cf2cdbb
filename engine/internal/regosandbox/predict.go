// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"regexp/syntax"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// tooMuch is what a prediction says as soon as it is over the limit.
const tooMuch = maxResult + 1

// elements counts the parts of a value and the parts of these, up to one more than maxElements. A part that is shared counts as often
// as it is met: that is how often a walk through the value meets it. What is no collection has none.
func elements(v ast.Value) int { return elementsUpTo(v, maxElements) }

func elementsUpTo(v ast.Value, most int) int {
	n := 0
	switch v := v.(type) {
	case *ast.Array:
		for i := 0; i < v.Len() && n <= most; i++ {
			n += 1 + elementsUpTo(v.Elem(i).Value, most-n-1)
		}
	case ast.Set:
		all := v.Slice()
		for i := 0; i < len(all) && n <= most; i++ {
			n += 1 + elementsUpTo(all[i].Value, most-n-1)
		}
	case ast.Object:
		return objectElements(v, most)
	}
	return n
}

// objectElements is apart because what it hands on is made on the heap, and most values are no objects.
func objectElements(v ast.Object, most int) int {
	n := 0
	v.Until(func(k, t *ast.Term) bool {
		n += 2 + elementsUpTo(k.Value, most-n-2)
		n += elementsUpTo(t.Value, most-n)
		return n > most
	})
	return n
}

// textSize is at most how long a value is when it is written as text; tooMuch where it has too many parts to tell.
func textSize(v ast.Value) int {
	switch v := v.(type) {
	case ast.String:
		return len(v)
	case ast.Number:
		return len(v)
	case *ast.Array, ast.Set, ast.Object:
		if elements(v) > maxElements {
			return tooMuch
		}
		return collectionText(v)
	}
	return len("false")
}

// collectionText is the length of a collection as text, in which texts are quoted: each byte takes six at most.
func collectionText(v ast.Value) int {
	size := len("set()")
	add := func(parts ...*ast.Term) {
		for _, part := range parts {
			size += len(`"", `)
			switch v := part.Value.(type) {
			case *ast.Array, ast.Set, ast.Object:
				size += collectionText(v)
			case ast.String:
				size += quotedSize(string(v))
			default:
				size += textSize(v)
			}
			size = min(size, tooMuch)
		}
	}
	switch v := v.(type) {
	case *ast.Array:
		v.Foreach(func(t *ast.Term) { add(t) })
	case ast.Set:
		v.Foreach(func(t *ast.Term) { add(t) })
	case ast.Object:
		v.Foreach(func(k, t *ast.Term) { add(k, t) })
	}
	return size
}

// quotedSize is at most how long a text is in quotation marks: what is not plain becomes an escape of at most ten bytes.
func quotedSize(text string) int {
	size := len(text)
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			size += len(`\U0010ffff`) - 1
		}
	}
	return size
}

func concatSize(operands []*ast.Term) int {
	separator, size := textSize(operands[0].Value), 0
	add := func(t *ast.Term) bool {
		size += textSize(t.Value) + separator
		return size > maxResult
	}
	switch v := operands[1].Value.(type) {
	case *ast.Array:
		v.Until(add)
	case ast.Set:
		v.Until(add)
	}
	return size
}

func replaceSize(operands []*ast.Term) int {
	text, old, by := asText(operands[0]), asText(operands[1]), asText(operands[2])
	if len(by) <= len(old) {
		return len(text)
	}
	return len(text) + strings.Count(text, old)*(len(by)-len(old))
}

// splitSize counts the pieces, each of which is a term of its own.
func splitSize(operands []*ast.Term) int {
	const pieceBytes = 64
	return (strings.Count(asText(operands[0]), asText(operands[1])) + 1) * pieceBytes
}

func templateSize(operands []*ast.Term) int {
	size := 0
	if parts, ok := operands[0].Value.(*ast.Array); ok {
		parts.Until(func(t *ast.Term) bool {
			size += textSize(t.Value)
			return size > maxResult
		})
	}
	return size
}

// sprintfSize adds up the widths of the format and what each verb can make of its argument.
func sprintfSize(operands []*ast.Term) int {
	format := asText(operands[0])
	arguments, largest := 0, 0
	if all, ok := operands[1].Value.(*ast.Array); ok {
		all.Until(func(t *ast.Term) bool {
			one := printedSize(t.Value)
			arguments, largest = arguments+one, max(largest, one)
			return arguments > maxResult
		})
	}
	verbs := readVerbs(format)
	switch {
	case verbs.star:
		return tooMuch // a width that is not written down is of any length
	case verbs.again:
		arguments = verbs.count * largest
	}
	return len(format) + verbs.width + arguments*verbs.factor + verbs.count*len("%!v(json.Number=)")
}

// printedSize is what a verb can make of a value: a number may have as many zeros as its exponent says.
func printedSize(v ast.Value) int {
	if n, ok := v.(ast.Number); ok {
		if manyDigitsIn(string(n)) {
			return tooMuch
		}
		return len(n) + maxDigits
	}
	return textSize(v)
}

// verbs is what a format of sprintf asks for.
type verbs struct {
	// count is the number of verbs, width the sum of what is written before them, and factor the most that one makes of one byte.
	count, width, factor int
	// star says that a width is an argument, and again that a verb names the argument that it prints.
	star, again bool
}

func readVerbs(format string) verbs {
	all := verbs{factor: 1}
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		all.count++
		number := 0
		for i++; i < len(format) && strings.IndexByte("+-# 0123456789.*[]", format[i]) >= 0; i++ {
			switch c := format[i]; {
			case '0' <= c && c <= '9':
				number = min(number*10+int(c-'0'), tooMuch)
				continue
			case c == '*':
				all.star = true
			case c == '[':
				all.again = true
			}
			all.width, number = min(all.width+number, tooMuch), 0
		}
		all.width = min(all.width+number, tooMuch)
		if i < len(format) && strings.IndexByte("qxXbUTp", format[i]) >= 0 {
			all.factor = len(`\U0010ffff`)
		}
	}
	return all
}

// regexWork is how much of a program of a pattern is gone through in the worst case, in sixteenths: each byte of the text may meet
// each instruction.
func regexWork(operands []*ast.Term) int {
	const perByte = 16
	pattern, text := asText(operands[0]), ""
	if len(operands) > 1 {
		text = asText(operands[1])
	}
	if len(pattern) > maxParsed {
		return tooMuch
	}
	size := len(pattern)
	if strings.Contains(pattern, "{") { // only a count makes more of a pattern than is written
		if parsed, err := syntax.Parse(pattern, syntax.Perl); err == nil {
			size = programSize(parsed)
		}
	}
	if size > maxResult/perByte {
		return tooMuch
	}
	return (len(text) + 1) * size / perByte
}

// programSize is about how many instructions a pattern takes, where what is counted is written out.
func programSize(re *syntax.Regexp) int {
	size := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		size = min(size+programSize(sub), tooMuch)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min, re.Max, 1)
	}
	return min(size, tooMuch)
}

// globWork is how much of a text is gone through: what follows each * may be looked for at each place.
func globWork(operands []*ast.Term) int {
	pattern, text := asText(operands[0]), asText(operands[len(operands)-1])
	if len(pattern) > maxParsed || len(text) > maxParsed {
		return tooMuch
	}
	return (len(text) + 1) * (len(pattern) + 1)
}

func asText(t *ast.Term) string {
	text, _ := t.Value.(ast.String)
	return string(text)
}
