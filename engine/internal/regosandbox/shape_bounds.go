// SPDX-License-Identifier: Apache-2.0

package regosandbox

import "github.com/open-policy-agent/opa/v1/ast"

const (
	// maxTypeWork is how many comparisons of two scalars the compiler may need for all types together; they take seconds.
	maxTypeWork = 1 << 26
	// loopRounds and inputParts, at each of inputLevels, are guesses. By them a value with over maxRepeated parts can make one step too long.
	loopRounds  = 1 << 10
	inputParts  = 1 << 4
	inputLevels = 3
	maxRepeated = 1 << 17
)

// sharedTooOften is what the compiler says of rules whose types it would compare for too long. It cannot be stopped while it does.
const sharedTooOften = "values hold each other so often, or so deep, that their parts cannot be counted"

// withShapesBounded lets a compiler refuse such rules before it compares types.
func withShapesBounded(c *ast.Compiler) *ast.Compiler {
	return c.WithStageAfterID(ast.StageCheckRecursion, ast.CompilerStageDefinition{Name: "BoundShapes", MetricName: "bound_shapes",
		Stage: func(c *ast.Compiler) (err *ast.Error) {
			shapesOf(c, 1, func(s *shapes, rule *ast.Rule) bool {
				if s.most > maxElements || s.work > maxTypeWork {
					err = ast.NewError(ast.CompileErr, rule.Loc(), "%s", sharedTooOften)
				}
				return err == nil
			})
			return err
		}})
}

// repeats says that loops may make a value so large that OPA takes one step through it for longer than any deadline.
func repeats(c *ast.Compiler) bool {
	found := false
	shapesOf(c, loopRounds, func(s *shapes, _ *ast.Rule) bool {
		found = s.most > maxRepeated
		return !found
	})
	return found
}
