// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/topdown"
)

const (
	resultVar = "result"
	// Longest bounds an evaluation whose context has no earlier deadline.
	Longest = 2 * time.Second
)

// EvalError is a policy that could not be evaluated. It is never an answer: a caller that gets one changes nothing.
type EvalError struct {
	// Package is the policy's package; File, Line, Column and Rule are empty where the place is not known.
	Package, File string
	Line, Column  int
	Rule          string
	// Cause is context.DeadlineExceeded or context.Canceled where the evaluation was stopped.
	Cause error
}

// Place is file, line, column and rule, as far as they are known; empty where the evaluation failed at no place, such as for lack of time.
func (e *EvalError) Place() string {
	if e.File == "" && e.Rule == "" {
		return ""
	}
	return e.place()
}

func (e *EvalError) place() string {
	place := "policy " + e.Package
	if e.File != "" {
		place = fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column)
	}
	if e.Rule != "" {
		place += ": rule " + e.Rule
	}
	return place
}

// Error names the place, the rule and the cause.
func (e *EvalError) Error() string {
	place := e.place()
	if errors.Is(e.Cause, context.DeadlineExceeded) {
		return place + ": the evaluation took too long and was stopped; let the rules look at less (" + e.Cause.Error() + ")"
	}
	return place + ": " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *EvalError) Unwrap() error { return e.Cause }

// Evaluation is a series of evaluations under one deadline. It is for one goroutine.
type Evaluation struct {
	module *Module
	ctx    context.Context
	cancel topdown.Cancel
	store  storage.Store
	txn    storage.Transaction
	// made is what functions have made in the present one.
	made  *atomic.Int64
	close func()
}

// mostSteps is for evaluations that are counted though no caller asked for it. It is more than Longest lets most
// machines take.
const mostSteps = 5_000_000

// longestBounded is for evaluations of which the steps are counted: what they may take does not depend on the machine.
const longestBounded = time.Minute

// Begin starts a series that ends with the context, and after Longest at the latest, or a minute where steps are counted.
// Close must be called.
func (m *Module) Begin(ctx context.Context) (*Evaluation, error) {
	limit, uncount := Longest, func() {}
	switch {
	case workOf(ctx) != nil:
		limit = longestBounded
	case m.costs().always:
		ctx, uncount = Bounded(ctx, mostSteps)
	}
	ctx, made := withBudget(ctx)
	ctx, cancelTime := context.WithTimeout(ctx, limit)
	release := func() { cancelTime(); uncount() }
	store := inmem.New()
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		release()
		return nil, &EvalError{Package: m.spec.Package, Cause: err}
	}
	cancel := topdown.NewCancel()
	stop := context.AfterFunc(ctx, cancel.Cancel)
	return &Evaluation{module: m, ctx: ctx, cancel: cancel, store: store, txn: txn, made: made, close: func() {
		stop()
		store.Abort(ctx, txn)
		release()
	}}, nil
}

// Close ends the series.
func (e *Evaluation) Close() { e.close() }

// Eval returns one value per entry point, in the order of the Spec; nil where it is undefined.
func (e *Evaluation) Eval(input *ast.Term) ([]ast.Value, error) {
	if err := context.Cause(e.ctx); err != nil {
		return nil, e.failed(err)
	}
	results, err := e.run(input)
	if err != nil {
		return nil, e.failed(err)
	}
	if len(results) != 1 {
		return nil, e.failed(fmt.Errorf("the evaluation has %d results and not 1", len(results)))
	}
	lists, ok := results[0][ast.Var(resultVar)].Value.(*ast.Array)
	if !ok {
		return nil, e.failed(errors.New("the evaluation has no result"))
	}
	values := make([]ast.Value, lists.Len())
	for i := range values {
		if list, ok := lists.Elem(i).Value.(*ast.Array); ok && list.Len() > 0 {
			values[i] = list.Elem(0).Value
		}
	}
	return values, nil
}

// Stopped says that the series has ended, so that every other evaluation would fail as well.
func (e *Evaluation) Stopped() bool { return e.ctx.Err() != nil }

// run evaluates the query. An evaluation that goes on though it was told to stop is left.
func (e *Evaluation) run(input *ast.Term) (results topdown.QueryResultSet, err error) {
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case leave:
			results, err = nil, context.Cause(e.ctx)
		default:
			panic(reason)
		}
	}()
	e.made.Store(0)
	query := topdown.NewQuery(e.module.query)
	if w := workOf(e.ctx); w != nil {
		query = query.WithQueryTracer(meter{w, e.module.costs().weight, leaveByPanic})
	}
	return query.
		WithCompiler(e.module.compiler).
		WithStore(e.store).
		WithTransaction(e.txn).
		WithInput(input).
		WithCancel(e.cancel).
		WithStrictBuiltinErrors(true).
		WithMetrics(metrics.NoOp()).
		WithTime(time.Unix(0, 0)). // otherwise OPA reads the clock
		Run(e.ctx)
}

func (e *Evaluation) failed(err error) error {
	out := &EvalError{Package: e.module.spec.Package, Cause: err}
	if cause := context.Cause(e.ctx); cause != nil {
		out.Cause = cause
	}
	var topdownErr *topdown.Error
	if errors.As(err, &topdownErr) {
		bound, isBound := errors.AsType[*BoundError](err)
		switch {
		case isBound:
			out.Cause = bound
		case !topdown.IsCancel(err):
			out.Cause = errors.New(strings.Join(strings.Fields(topdownErr.Message), " "))
		}
		if loc := topdownErr.Location; loc != nil && loc.File != "" {
			out.File, out.Line, out.Column = loc.File, loc.Row, loc.Col
			out.Rule = ruleAt(e.module.compiler.Modules[loc.File], loc.Row)
		}
	}
	return out
}

// Stopped is the error of an evaluation that the context does not let go on; nil where it does.
func (m *Module) Stopped(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil {
		return &EvalError{Package: m.spec.Package, Cause: cause}
	}
	return nil
}

// Compiler holds the compiled rules. It is not to be changed.
func (m *Module) Compiler() *ast.Compiler { return m.compiler }

// Misshapen is the error for a rule whose value has another form than metalaw asks for.
func (m *Module) Misshapen(rule, format string, args ...any) error {
	return &EvalError{Package: m.spec.Package, Rule: rule, Cause: fmt.Errorf(format, args...)}
}
