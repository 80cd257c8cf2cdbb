// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"go.yaml.in/yaml/v3"
)

const (
	// maxCost bounds what one expression may cost in CEL's units, on the longest facts. Those of the shipped bundles stay
	// below 50.
	maxCost = 1000
	// maxText and maxWords are the longest text and set that a fact is taken to have.
	maxText  = 256
	maxWords = 32
)

// factSizes tells the estimate how long facts are.
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

// affordable reports an expression that would hold up every decision.
func (c *atomCompiler) affordable(checked *cel.Ast, name string, node *yaml.Node) bool {
	estimate, err := c.env.EstimateCost(checked, factSizes{})
	if err != nil {
		c.file.Errorf(node, "cel-program", name, "write it more simply", "its cost cannot be told: %v", err)
		return false
	}
	if estimate.Max > maxCost {
		c.file.ErrorIn(node, 1, 0, "cel-cost", name, "compare with ==, in or startsWith; avoid patterns, and functions within functions",
			fmt.Sprintf("evaluating it may cost %d units, and at most %d are allowed", estimate.Max, maxCost))
		return false
	}
	return true
}
