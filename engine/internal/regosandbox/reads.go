// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Reads returns the parts of the input that the rules of the policy can read, each as the keys that lead to it, sorted and
// without those that lie below another. It may return too much, never too little: a part that is handed on as a whole is
// read as a whole.
func (m *Module) Reads() [][]string {
	var all [][]string
	for _, module := range m.compiler.Modules {
		all = append(all, readsOf(module)...)
	}
	return outermost(all)
}

// readsOf are the parts of the input to which a node of the syntax tree refers.
func readsOf(node any) [][]string {
	var all [][]string
	ast.WalkRefs(node, func(ref ast.Ref) bool {
		if ref.HasPrefix(ast.InputRootRef) {
			all = append(all, constantKeys(ref[1:]))
		}
		return false
	})
	return all
}

// constantKeys is how far a reference is known before the evaluation.
func constantKeys(terms ast.Ref) []string {
	keys := []string{}
	for _, term := range terms {
		key, ok := term.Value.(ast.String)
		if !ok {
			break
		}
		keys = append(keys, string(key))
	}
	return keys
}

// outermost sorts paths and drops those that another is a beginning of.
func outermost(all [][]string) [][]string {
	slices.SortFunc(all, slices.Compare[[]string])
	var kept [][]string
	for _, path := range all {
		if n := len(kept); n > 0 && len(path) >= len(kept[n-1]) && slices.Equal(path[:len(kept[n-1])], kept[n-1]) {
			continue
		}
		kept = append(kept, path)
	}
	return kept
}
