// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"context"
	"strings"

	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/regonative"
	"github.com/metalaw/metalaw/engine/internal/regosandbox"
)

// Package is the Rego package of a selection policy.
const Package = "metalaw.selection"

// What one call of Select may be given. Real objects stay far below: the API server ends at 256 KiB of annotations.
const (
	MaxCandidates = 20000
	// MaxRanked is how much of a ranking Select returns.
	MaxRanked         = 64
	maxClaimBytes     = 512 << 10
	maxCandidateBytes = 512 << 10
)

// The rules that metalaw asks for.
const (
	ruleAllow  = "allow"
	ruleReject = "reject"
	ruleScore  = "score"
)

func spec() regosandbox.Spec {
	return regosandbox.Spec{
		Package: Package,
		Others:  []string{"metalaw.admission"},
		Entrypoints: []regosandbox.Entrypoint{
			{Name: ruleAllow, Form: regosandbox.Boolean, Required: true},
			{Name: ruleReject, Form: regosandbox.Messages},
			{Name: ruleScore, Form: regosandbox.Number},
		},
		InputSchema: Schema(),
	}
}

// Policy is a compiled selection policy. It is immutable and safe for use by many goroutines at once.
type Policy struct {
	module *regosandbox.Module
	// native is nil where a rule is outside of what is evaluated natively.
	native *native
	reads  reads
	// asks are the fields of a claim that the rules can read, and tells those of a candidate.
	asks, tells regonative.Fields
	// single: candidates of one class are evaluated each.
	single bool
	// passing: allow or reject follow what passes by itself, such as counts, time or health. Where the rules are interpreted score
	// counts as well.
	passing bool
}

// Compile compiles those .rego files of a bundle that belong to package metalaw.selection (and metalaw.lib); others and
// tests are passed over. When a finding is an Error the Policy is nil.
func Compile(files map[string][]byte) (*Policy, diag.List) {
	module, found := regosandbox.Compile(spec(), files)
	if module == nil {
		return nil, found
	}
	p := &Policy{module: module}
	n, findings := newNative(module)
	if p.native = n; n != nil {
		p.reads, p.passing = n.reads(), n.judging().judgePassing()
	} else {
		p.reads = readsOf(module)
		p.passing = p.reads.judgePassing()
	}
	p.asks, p.tells = p.reads.asking(), p.reads.of(ofCandidate)
	return p, append(found, findings...)
}

// Interpreted is the same policy, evaluated by the interpreter for each candidate. It shows what that costs, and is what the
// native evaluation is held against.
func (p *Policy) Interpreted() *Policy {
	return &Policy{module: p.module, single: true, passing: p.passing, reads: p.reads, asks: p.asks, tells: p.tells}
}

// IsNative says that no rule needs the interpreter.
func (p *Policy) IsNative() bool { return p.native != nil }

// EvalError is a policy that could not be evaluated, with the rule and the cause.
type EvalError = regosandbox.EvalError

// TestReport is what the tests of a bundle showed.
type TestReport = regosandbox.TestReport

// RunTests runs the tests of the bundle (files ending in _test.rego) that belong to this package.
func RunTests(ctx context.Context, files map[string][]byte) (TestReport, diag.List) {
	return regosandbox.RunTests(ctx, spec(), files)
}

// Judgement is what a policy says about one candidate.
type Judgement struct {
	// Allowed: allow is true and nothing rejects.
	Allowed bool
	// Score orders the allowed candidates, higher first; 0 where the policy gives none.
	Score float64
	// Reasons is empty when allowed; else it holds at least one, sorted by code.
	Reasons []Reason
	// Lasting: a rule turns it away which reads only what lasts.
	Lasting bool
}

// Reason is why a candidate was turned away.
type Reason struct{ Code, Message string }

func compareReasons(a, b Reason) int {
	return cmp.Or(strings.Compare(a.Code, b.Code), strings.Compare(a.Message, b.Message))
}
