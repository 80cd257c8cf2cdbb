// SPDX-License-Identifier: Apache-2.0

package celrule

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/internal/yamlpos"
)

const (
	// maxText and maxWords are the longest text and set that a fact is taken to have.
	maxText  = 256
	maxWords = 32
)

// factSizes gives the estimate the lengths of facts.
type factSizes struct{}

// EstimateSize implements checker.CostEstimator.
func (factSizes) EstimateSize(n checker.AstNode) *checker.SizeEstimate {
	if n.Type() != nil && n.Type().Kind() == cel.ListKind {
		return &checker.SizeEstimate{Min: 0, Max: maxWords}
	}
	return &checker.SizeEstimate{Min: 0, Max: maxText}
}

// EstimateCallCost implements checker.CostEstimator. CEL knows its own functions.
//
//nolint:gocritic // The interface has these types.
func (factSizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// affordable reports an expression that would slow its evaluator down: one that may cost more than most. It returns
// what the expression may cost.
func affordable(env *cel.Env, file *yamlpos.File, checked *cel.Ast, rule string, node *yaml.Node, most uint64) (uint64, bool) {
	estimate, err := env.EstimateCost(checked, factSizes{})
	if err != nil {
		file.Errorf(node, "cel-program", rule, "write it more simply", "its cost cannot be estimated: %v", err)
		return 0, false
	}
	if estimate.Max > most {
		file.ErrorIn(node, 1, 0, "cel-cost", rule, "compare with ==, in or startsWith; avoid patterns, and functions within functions",
			fmt.Sprintf("evaluating it may cost %d units, and at most %d are allowed", estimate.Max, most))
		return estimate.Max, false
	}
	return estimate.Max, true
}
