// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// isMessageFile tells hand-written code of the program.
func isMessageFile(path string) bool {
	return strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "zz_generated")
}

// messages finds the texts of help, conditions, events and errors: literals of at least four words. Literals that are
// joined by + are one text.
func messages(name string, source []byte) ([]sentence, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var all []sentence
	ast.Inspect(file, func(n ast.Node) bool {
		var text string
		switch e := n.(type) {
		case *ast.ImportSpec, *ast.Field:
			return false
		case *ast.BinaryExpr:
			if text = joined(e); text == "" {
				return true
			}
		case *ast.BasicLit:
			text = joined(e)
		default:
			return true
		}
		if len(wordsOf(text)) >= 4 {
			line := files.Position(n.Pos()).Line
			for paragraph := range strings.SplitSeq(text, "\n\n") {
				all = append(all, split(paragraph, line)...)
			}
		}
		return false
	})
	return all, nil
}

// joined is the text of a literal, or of literals and values that + joins; a value is one word.
func joined(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value)
			return text
		}
	case *ast.BinaryExpr:
		left, right := joined(e.X), joined(e.Y)
		if e.Op != token.ADD || left+right == "" {
			return ""
		}
		if left == "" {
			left = someCode
		}
		if right == "" {
			right = someCode
		}
		return left + right
	}
	return ""
}
