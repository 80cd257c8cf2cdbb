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
		cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType), cel.Variable("request", cel.DynType))
})

// tidy checks an expression, and writes it with as few brackets as it needs.
func tidy(expression string) string {
	if expression == "" {
		return ""
	}
	env, err := environment()
	if err != nil {
		fail("CEL is not there: " + err.Error())
	}
	if _, issues := env.Compile(expression); issues.Err() != nil {
		fail("its CEL would not compile: " + issues.Err().Error())
	}
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil {
		fail("its CEL would not compile: " + issues.Err().Error())
	}
	text, err := cel.AstToString(parsed)
	if err != nil {
		fail("its CEL cannot be written: " + err.Error())
	}
	return strings.ReplaceAll(strings.TrimPrefix(text, "!!"), "\n", " ") // within strings it is escaped
}
