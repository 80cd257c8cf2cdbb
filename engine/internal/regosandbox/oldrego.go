// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/metalaw/metalaw/engine/diag"
)

// sayV0 names the cause where a text is Rego of version 0: the parser finds fault with each rule of it. The first
// finding stays.
func sayV0(file string, text []byte, found diag.List) diag.List {
	if len(found) == 0 {
		return found
	}
	module, err := ast.ParseModuleWithOpts(file, string(text), ast.ParserOptions{RegoVersion: ast.RegoV0})
	if err != nil || module == nil {
		return found
	}
	first := found[0]
	first.Message = "this is Rego v0, and a bundle is written in Rego v1: " + first.Message
	first.Hint = "let opa fmt --v0-v1 --write " + file + " rewrite it, which needs the program opa; " +
		"or write if before each body"
	return diag.List{first}
}
