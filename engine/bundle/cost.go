// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"
	"fmt"

	"github.com/metalaw/metalaw/engine/admission"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/regosandbox"
	"github.com/metalaw/metalaw/engine/selection"
)

const (
	// mostRegoSteps bounds what choosing among some servers, or looking at one request, may take. It is counted in steps of
	// the evaluation and not in time, so that a busy machine refuses nothing.
	mostRegoSteps = 200_000
	// candidates is how many servers are chosen among.
	candidates = 64
)

// regoCost evaluates the policies on claims and servers such as there are, a plain one of each among them. Rego has no bound of its own:
// a rule that runs away is found by running it.
func (b *Bundle) regoCost(ctx context.Context) diag.List {
	var found diag.List
	report := func(file string, err error, what string) {
		if err == nil || ctx.Err() != nil {
			return
		}
		found = append(found, regoFailure(file, err, what))
	}
	if b.Selection != nil {
		report(SelectionFile, b.selectOnce(ctx), fmt.Sprintf("choosing among %d servers", candidates))
	}
	if b.Admission != nil {
		err := b.admitOnce(ctx, plainRequest())
		if err == nil {
			err = b.admitOnce(ctx, typicalRequest())
		}
		report(AdmissionFile, err, "looking at a new ServerClaim")
	}
	return found
}

func (b *Bundle) selectOnce(ctx context.Context) error {
	ctx, cancel := regosandbox.Bounded(ctx, mostRegoSteps)
	defer cancel()
	// Steps are the interpreter's; what is evaluated natively takes no more.
	policy, all, claim, fleet := b.Selection.Interpreted(), typicalServers(candidates), typicalClaim(), typicalFleet(candidates)
	result, err := policy.Select(ctx, claim, all, fleet)
	for i := 0; err == nil && result.Unjudged.Count > 0 && i < len(all); i++ { // what it fails on is among these
		_, err = policy.Judge(ctx, claim, all[i], fleet)
	}
	return err
}

func (b *Bundle) admitOnce(ctx context.Context, request admission.Input) error {
	ctx, cancel := regosandbox.Bounded(ctx, mostRegoSteps)
	defer cancel()
	_, err := b.Admission.Admit(ctx, request)
	return err
}

// regoFailure is the finding about an evaluation that was stopped, or that has no result.
func regoFailure(file string, err error, what string) diag.Diagnostic {
	d := diag.Diagnostic{Severity: diag.Error, File: file}
	if e, ok := errors.AsType[*selection.EvalError](err); ok {
		if err = e.Cause; e.File != "" {
			d.File, d.Line, d.Column, d.Rule = e.File, e.Line, e.Column, e.Rule
		}
	}
	work, stopped := errors.AsType[*regosandbox.WorkError](err)
	if stopped && work.File != "" {
		d.File, d.Line, d.Column = work.File, work.Line, work.Column
	}
	if stopped && work.Parts {
		d.Code, d.Message, d.Hint = regosandbox.CodeBound, what+" fails: "+work.Error(), regosandbox.BoundHint
		return d
	}
	if bound, ok := errors.AsType[*regosandbox.BoundError](err); ok {
		d.Code, d.Message, d.Hint = regosandbox.CodeBound, what+" fails: "+bound.Error(), regosandbox.BoundHint
		return d
	}
	if stopped || errors.Is(err, context.DeadlineExceeded) {
		d.Code, d.Message = "rego-cost", fmt.Sprintf("%s takes more than %d steps and was stopped", what, mostRegoSteps)
		d.Hint = fmt.Sprintf("look at fewer combinations: avoid loops within loops, and compare with ==, which is indexed; "+
			"each server has %d labels here, and the claim %d", serverLabels, claimLabels)
		return d
	}
	d.Code, d.Message = "rego-evaluation", what+" fails: "+err.Error()
	d.Hint = "a rule must have one value for an input, and functions take values of the right kind only"
	return d
}
