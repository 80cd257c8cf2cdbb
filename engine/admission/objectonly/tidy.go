// SPDX-License-Identifier: Apache-2.0

package objectonly

import (
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
)

// environment is the part of the API server's environment that expressions are written in.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(cel.OptionalTypes(), ext.Strings(ext.StringsVersion(2)), cel.EnableMacroCallTracking(),
		cel.HomogeneousAggregateLiterals(), cel.CrossTypeNumericComparisons(true), cel.ASTValidators(cel.ValidateRegexLiterals()),
		cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType), cel.Variable("request", cel.DynType))
})

// tidy writes an expression with as few brackets as it needs.
func tidy(expression string) string {
	env, err := environment()
	if err != nil {
		fail("CEL is not there: " + err.Error())
	}
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil {
		fail("its CEL would not compile: " + issues.Errors()[0].Message)
	}
	written, err := cel.AstToString(parsed)
	if err != nil {
		fail("its CEL cannot be written: " + err.Error())
	}
	return strings.TrimPrefix(strings.ReplaceAll(written, "\n", " "), "!!") // within strings a line's end is escaped
}

// check holds an expression to what the API server takes.
func check(expression string, wanted *cel.Type) {
	env, err := environment()
	if err != nil {
		fail("CEL is not there: " + err.Error())
	}
	compiled, issues := env.Compile(expression)
	if issues.Err() != nil {
		fail("its CEL would not compile: " + issues.Errors()[0].Message)
	}
	if !compiled.OutputType().IsExactType(wanted) {
		fail("its CEL would be of type " + compiled.OutputType().String())
	}
}
