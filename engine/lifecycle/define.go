// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"regexp"
	"slices"
)

var definitionName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// celWords are the words that CEL keeps for itself: https://github.com/google/cel-spec/blob/master/doc/langdef.md#syntax.
var celWords = []string{"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
	"namespace", "null", "package", "return", "true", "var", "void", "while"}

// maxAtoms bounds the number of definitions, so that one decision's values fit a fixed array.
const maxAtoms = 128

func (c *compiler) compileAtoms(define []definition) {
	ac := &atomCompiler{language: c.language, file: c.file, defined: map[string]bool{}, marks: c.marks, states: c.states,
		stateHint: c.stateHint}
	for _, d := range define {
		ac.defined[d.name] = true
	}
	for _, d := range define {
		if len(c.list) >= maxAtoms {
			c.file.Errorf(d.key, "define-too-many", d.name, "", "more than %d definitions", maxAtoms)
			return
		}
		if !definitionName.MatchString(d.name) || slices.Contains(celWords, d.name) {
			c.file.Errorf(d.key, "define-name", d.name, "write letters and digits only, for example poweredOff",
				"%q cannot be the name of a definition: no guard could ask for it", d.name)
			c.misnamed = append(c.misnamed, d.name)
			continue
		}
		a := ac.compile(d.name, d.expr)
		if a == nil {
			a = &Expression{Name: d.name} // keeps guards that use the name from being reported a second time
		}
		a.At = placeOf(d.key)
		c.atoms[d.name] = len(c.list)
		c.list = append(c.list, a)
	}
}

// misspoken says that an expression speaks of a definition that has a name which cannot be read there.
func misspoken(expression string, misnamed []string) bool {
	return slices.ContainsFunc(misnamed, func(name string) bool {
		return regexp.MustCompile(`(^|[^A-Za-z0-9_])` + regexp.QuoteMeta(name) + `($|[^A-Za-z0-9_])`).MatchString(expression)
	})
}
