// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/topdown"
)

// WorkError is the cause of an evaluation that was stopped because it takes too many steps. It does not depend on how fast
// the machine is.
type WorkError struct {
	Steps int64
	// File, Line and Column are where the evaluation was; empty where that is not known.
	File         string
	Line, Column int
}

// Error says how many steps were allowed.
func (e *WorkError) Error() string {
	return fmt.Sprintf("the evaluation takes more than %d steps", e.Steps)
}

// Bounded gives all evaluations under a context so many steps together. The step after them cancels the context with the
// cause WorkError.
func Bounded(ctx context.Context, steps int64) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &work{left: steps, stop: func(e topdown.Event) {
		cause := &WorkError{Steps: steps}
		if loc := e.Location; loc != nil {
			cause.File, cause.Line, cause.Column = loc.File, loc.Row, loc.Col
		}
		cancel(cause)
	}}
	return context.WithValue(ctx, workKey{}, w), func() { cancel(nil) }
}

type workKey struct{}

// work counts the steps of evaluations.
type work struct {
	left int64
	stop func(topdown.Event)
}

// workOf is nil where a context bounds no steps.
func workOf(ctx context.Context) *work {
	w, _ := ctx.Value(workKey{}).(*work)
	return w
}

// Enabled implements topdown.QueryTracer.
func (w *work) Enabled() bool { return true }

// Config implements topdown.QueryTracer.
func (w *work) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent implements topdown.QueryTracer.
func (w *work) TraceEvent(e topdown.Event) {
	if atomic.AddInt64(&w.left, -1) == 0 {
		w.stop(e)
	}
}

// both traces for two.
type both struct {
	topdown.QueryTracer
	*work
}

// Enabled implements topdown.QueryTracer.
func (b both) Enabled() bool { return true }

// Config implements topdown.QueryTracer.
func (b both) Config() topdown.TraceConfig { return b.QueryTracer.Config() }

// TraceEvent implements topdown.QueryTracer.
func (b both) TraceEvent(e topdown.Event) {
	b.QueryTracer.TraceEvent(e)
	b.work.TraceEvent(e)
}
