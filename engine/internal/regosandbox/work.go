// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// WorkError is the cause of an evaluation that was stopped because it takes too many steps. It does not depend on how fast
// the machine is.
type WorkError struct {
	Steps int64
	// Parts says that it is one step that takes too long, because of a value that it goes through.
	Parts bool
	// File, Line and Column are where the evaluation was; empty where that is not known.
	File         string
	Line, Column int
}

// Error says how many steps, or parts of a value, were allowed.
func (e *WorkError) Error() string {
	if e.Parts {
		return fmt.Sprintf("a value has more than %d parts, those of its parts counted each time that they are in it", maxElements)
	}
	return fmt.Sprintf("the evaluation takes more than %d steps", e.Steps)
}

// Bounded gives all evaluations under a context so many steps together. The step after them cancels the context with the
// cause WorkError.
func Bounded(ctx context.Context, steps int64) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &work{steps: steps, cancel: cancel}
	w.left.Store(steps)
	return context.WithValue(ctx, workKey{}, w), func() { cancel(nil) }
}

type workKey struct{}

// work counts the steps of evaluations.
type work struct {
	steps  int64
	left   atomic.Int64
	cancel context.CancelCauseFunc
}

// workOf is nil where a context bounds no steps.
func workOf(ctx context.Context) *work {
	w, _ := ctx.Value(workKey{}).(*work)
	return w
}

// spend takes steps, and stops the evaluation with the one that takes the last. It returns what is left.
func (w *work) spend(steps int64, e topdown.Event) int64 {
	left := w.left.Add(-steps)
	if left <= 0 && left+steps > 0 {
		w.stop(&WorkError{Steps: w.steps}, e)
	}
	return left
}

func (w *work) stop(cause *WorkError, e topdown.Event) {
	if loc := e.Location; loc != nil {
		cause.File, cause.Line, cause.Column = loc.File, loc.Row, loc.Col
	}
	w.cancel(cause)
}

// overrun is how many steps an evaluation may take that was told to stop. The evaluator asks between two expressions, and so not
// while it compares two values part by part.
const overrun = 2000

// meter counts the steps of evaluations of one module.
type meter struct {
	*work
	// weight is what one step counts for.
	weight int64
	// end leaves an evaluation that does not stop when it is told. It does not return.
	end func()
}

// Enabled implements topdown.QueryTracer.
func (m meter) Enabled() bool { return true }

// Config implements topdown.QueryTracer.
func (m meter) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent implements topdown.QueryTracer.
func (m meter) TraceEvent(e topdown.Event) {
	steps := m.weight
	if e.Op == topdown.UnifyOp {
		parts := partsOf(e.Node)
		if parts > maxElements { // there is no telling how many there are
			m.stop(&WorkError{Steps: m.steps, Parts: true}, e)
			m.end()
		}
		steps += int64(parts / freeParts)
	}
	if m.spend(steps, e) < -overrun*m.weight {
		m.end()
	}
}

// partsOf counts the parts of what an equation gives a name to, or compares; the larger side is meant.
func partsOf(node ast.Node) int {
	most := 0
	if equation, ok := node.(*ast.Expr); ok && equation.IsEquality() {
		for _, side := range equation.Operands() {
			most = max(most, elements(side.Value))
		}
	}
	return most
}

// leave is how an evaluation is left on the goroutine of its caller.
type leave struct{}

func leaveByPanic() { panic(leave{}) }

// leaveGoroutine ends the goroutine that OPA runs a test on, with all that it has deferred. The test has no result then.
func leaveGoroutine() { runtime.Goexit() }

// both traces for two.
type both struct {
	topdown.QueryTracer
	meter meter
}

// TraceEvent implements topdown.QueryTracer.
func (b both) TraceEvent(e topdown.Event) {
	b.QueryTracer.TraceEvent(e)
	b.meter.TraceEvent(e)
}

// freeParts is how many parts a value may have for a step to count once that puts it together, or goes through it.
const freeParts = 64

// cost is what the text of a module says about its evaluations.
type cost struct {
	// weight is what one step counts for: what is written with variables in it is copied each time that it is met.
	weight int64
	// always says that steps are counted in each evaluation, for a value may hold another so often that a deadline does not help.
	always bool
}

// costs is worked out once.
func (m *Module) costs() cost {
	m.costed.Do(func() { m.cost = cost{weightOf(m.compiler.Modules), repeats(m.compiler)} })
	return m.cost
}

func weightOf(modules map[string]*ast.Module) int64 {
	most := 0
	for _, module := range modules {
		ast.WalkTerms(module, func(t *ast.Term) bool {
			switch t.Value.(type) {
			case *ast.Array, ast.Set, ast.Object:
				if t.IsGround() {
					return true
				}
				most = max(most, elements(t.Value))
			}
			return false
		})
	}
	return 1 + int64(most/freeParts)
}
