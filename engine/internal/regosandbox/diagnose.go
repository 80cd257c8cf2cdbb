// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/spelling"
)

var undefinedFunction = regexp.MustCompile(`undefined function (\S+)`)

// fromOPA turns the compiler's errors into diagnostics, in the order of the text.
func fromOPA(modules map[string]*ast.Module, errs ast.Errors) diag.List {
	var found diag.List
	more := false
	for _, err := range errs {
		if err.Location == nil && err.Message == limitReached {
			more = true
			continue
		}
		d := diag.Diagnostic{Severity: diag.Error, Code: CodeCompile, Message: err.Message}
		if err.Location != nil {
			d.File, d.Line, d.Column = err.Location.File, max(err.Location.Row, 1), max(err.Location.Col, 1)
			d.Rule = ruleAt(modules[d.File], d.Line)
		}
		switch err.Code {
		case ast.ParseErr:
			d.Code, d.Message = CodeParse, strings.TrimPrefix(d.Message, "rego_parse_error: ")
		case ast.TypeErr:
			explainType(&d, err)
		}
		if d.Message == sharedTooOften {
			d.Code = CodeLimit
		}
		if d.Hint == "" {
			d.Hint = remedy(d)
		}
		again := slices.ContainsFunc(found, func(other diag.Diagnostic) bool { // the parser says the same of one place in several ways
			return other == d || d.Code == CodeParse && other.File == d.File && other.Line == d.Line && other.Column == d.Column
		})
		if !again {
			found = append(found, d)
		}
	}
	slices.SortStableFunc(found, func(a, b diag.Diagnostic) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
	})
	if more {
		found = append(found, andMore(found[len(found)-1]))
	}
	return found
}

// limitReached is what OPA says behind as many errors as it was asked for.
const limitReached = "error limit reached"

// andMore says at the place of the last finding that there are others.
func andMore(last diag.Diagnostic) diag.Diagnostic {
	return diag.Diagnostic{Severity: diag.Error, Code: CodeLimit, File: last.File, Line: last.Line, Column: last.Column,
		Message: fmt.Sprintf("there are more mistakes than the %d that are shown", maxFindings), Hint: "mend these first"}
}

// remedies says what to do by what OPA's message says; first match wins.
var remedies = []struct{ says, hint string }{
	{"unsafe", "give it a value with :=, some or an import before it is used"},
	{"unused", "use it, or take it out"},
	{"declared", "use another name"},
	{"recurs", "a rule cannot depend on itself"},
	{"conflict", "rules of one name need one form"},
	{sharedTooOften, "let each value hold another once, and compare the values themselves"},
}

func remedy(d diag.Diagnostic) string {
	if d.Code == CodeParse {
		return "correct the Rego here or right before; a bracket or a comma may be missing"
	}
	for _, r := range remedies {
		if strings.Contains(d.Message, r.says) {
			return r.hint
		}
	}
	return "correct the rule; opa check --strict says the same"
}

func explainType(d *diag.Diagnostic, err *ast.Error) {
	d.Code = CodeType
	if m := undefinedFunction.FindStringSubmatch(err.Message); m != nil {
		if _, exists := ast.BuiltinMap[m[1]]; exists {
			name := strings.TrimPrefix(m[1], "internal.") // print becomes internal.print
			d.Code = CodeForbiddenBuiltin
			d.Message = fmt.Sprintf("the built-in function %s is not available to policies", name)
			d.Hint = refusalHint(name)
			return
		}
		d.Message = fmt.Sprintf("there is no function %s", m[1])
		d.Hint = spelling.Hint(m[1], allowedNames(), "define it, or import the package that does")
		return
	}
	switch details := err.Details.(type) {
	case *ast.RefErrInvalidDetail:
		d.Message = fmt.Sprintf("%s does not exist", details.Ref[:details.Pos+1])
		d.Hint = wanted(details)
	case *ast.RefErrUnsupportedDetail:
		d.Hint = fmt.Sprintf("%s is a %v and has no fields", details.Ref[:details.Pos+1], details.Have)
	case nil:
	default:
		d.Hint = strings.Join(trimmed(details.Lines()), "; ")
	}
}

// wanted names the fields that do exist, the most similar first.
func wanted(details *ast.RefErrInvalidDetail) string {
	if len(details.OneOf) == 0 {
		return ""
	}
	have := ""
	if s, ok := details.Ref[details.Pos].Value.(ast.String); ok {
		have = string(s)
	}
	var names []string
	for _, v := range details.OneOf {
		names = append(names, strings.Trim(v.String(), `"`))
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(similarity(b, have)-similarity(a, have), strings.Compare(a, b))
	})
	return "there are " + strings.Join(names, ", ")
}

// similarity is the length of the longest common beginning, upper and lower case being the same.
func similarity(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func trimmed(lines []string) []string {
	var out []string
	for _, line := range lines {
		if line = strings.TrimSpace(line); strings.Trim(line, "^") != "" {
			out = append(out, line)
		}
	}
	return out
}

// ruleAt names the rule that begins last at or before line.
func ruleAt(module *ast.Module, line int) string {
	if module == nil {
		return ""
	}
	name, at := "", 0
	for _, rule := range module.Rules {
		if row := rule.Loc().Row; row <= line && row >= at {
			name, at = rule.Head.Ref().GroundPrefix().String(), row
		}
	}
	return name
}
