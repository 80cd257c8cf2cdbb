// SPDX-License-Identifier: Apache-2.0

// Package admission asks the rules of a bundle (Rego, package metalaw.admission) whether an object may be created, changed
// or deleted. It is pure. The rules of metalaw itself hold besides and are not here.
package admission

import (
	"context"
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/regosandbox"
)

// Package is the Rego package of an admission policy.
const Package = "metalaw.admission"

// maxInputBytes bounds the strings of one request; the API server itself ends at 3 MiB.
const maxInputBytes = 4 << 20

// The rules that metalaw asks for.
const (
	ruleDeny = "deny"
	ruleWarn = "warn"
)

// partFacts is the field of the input that metalaw fills from what it knows.
const partFacts = "facts"

// Input is what the rules see as `input`.
type Input struct {
	Operation string         `json:"operation" doc:"What is asked for." enum:"CREATE,UPDATE,DELETE"`
	Kind      string         `json:"kind" doc:"Kind of the object, for example ServerClaim."`
	Object    map[string]any `json:"object" doc:"The object as it would be stored; empty on DELETE."`
	OldObject map[string]any `json:"oldObject" doc:"The object as it is stored; empty on CREATE."`
	User      User           `json:"user" doc:"Who asks."`
	Facts     map[string]any `json:"facts" doc:"What metalaw knows besides; the keys depend on the kind."`
}

// User is who asks, as the API server authenticated it.
type User struct {
	Name   string   `json:"name" doc:"Name of the user or service account."`
	Groups []string `json:"groups" doc:"Groups of the user."`
}

// Finding is one denial or warning.
type Finding struct {
	// Code is stable; Message is for people; Field is a path such as spec.image, or empty.
	Code, Message, Field string
}

// Verdict holds what the rules said, each list sorted by code and message. The request passes when there is no denial.
type Verdict struct{ Denials, Warnings []Finding }

// Schema is the JSON schema of Input, with the descriptions that the reference page prints.
func Schema() map[string]any { return regosandbox.Schema(Input{}) }

func spec() regosandbox.Spec {
	fields := []string{"field"}
	return regosandbox.Spec{
		Package: Package,
		Others:  []string{"metalaw.selection"},
		Entrypoints: []regosandbox.Entrypoint{
			{Name: ruleDeny, Form: regosandbox.Messages, Fields: fields},
			{Name: ruleWarn, Form: regosandbox.Messages, Fields: fields},
		},
		InputSchema: Schema(),
	}
}

// Policy is a compiled admission policy. It is immutable and safe for use by many goroutines at once.
type Policy struct {
	module *regosandbox.Module
	// standing is what of it follows from the object alone; nil where that could not be made, and apart says why.
	standing *regosandbox.Module
	apart    error
	// early is what of it refuses without the facts; nil where all of it does, or none could be told apart. looks says that some rule
	// reads the facts.
	early *regosandbox.Module
	looks bool
}

// Compile compiles those .rego files of a bundle that belong to package metalaw.admission (and metalaw.lib); others and
// tests are passed over. A bundle without any admits everything. When a finding is an Error the Policy is nil.
func Compile(files map[string][]byte) (*Policy, diag.List) {
	module, found := regosandbox.Compile(spec(), files)
	if module == nil {
		return nil, found
	}
	p := &Policy{module: module}
	var left []regosandbox.LeftOut
	p.standing, left, p.apart = module.Part(files, ruleDeny, "user", "oldObject", partFacts)
	if p.looks = readsFacts(module); p.looks {
		p.early, _, _ = module.Part(files, ruleDeny, partFacts) // without it everything is asked at once
	}
	return p, append(found, onlyAtAdmission(left)...)
}

// readsFacts says that a rule reads what metalaw knows besides.
func readsFacts(module *regosandbox.Module) bool {
	return slices.ContainsFunc(module.Reads(), func(path []string) bool { return len(path) == 0 || path[0] == partFacts })
}

// ReadsFacts says that some rule reads Input.Facts.
func (p *Policy) ReadsFacts() bool { return p.looks }

// AdmitEarly asks the rules that refuse without reading the facts, of a policy of which others read them: before the
// caller finds the facts out, which may take long. Nothing that it lets pass is admitted yet. The error is that of
// Admit.
func (p *Policy) AdmitEarly(ctx context.Context, in Input) (v Verdict, err error) {
	if p.early != nil {
		v.Denials, err = p.denials(ctx, p.early, in)
	}
	return v, err
}

// denials asks a part of the policy that only denies.
func (p *Policy) denials(ctx context.Context, part *regosandbox.Module, in Input) ([]Finding, error) {
	values, err := evaluate(ctx, part, in)
	if err != nil {
		return nil, err
	}
	return p.findings(ruleDeny, values[0])
}

// EvalError is a policy that could not be evaluated, with the rule and the cause.
type EvalError = regosandbox.EvalError

// TestReport is what the tests of a bundle showed.
type TestReport = regosandbox.TestReport

// RunTests runs the tests of the bundle (files ending in _test.rego) that belong to this package.
func RunTests(ctx context.Context, files map[string][]byte) (TestReport, diag.List) {
	return regosandbox.RunTests(ctx, spec(), files)
}

// Admit asks the rules. An error means that nothing is known: a rule failed, the deadline of ctx (or two seconds) passed,
// or the input is too large. It is neither a denial nor a permission; the caller refuses the request and says why.
func (p *Policy) Admit(ctx context.Context, in Input) (Verdict, error) {
	values, err := evaluate(ctx, p.module, in)
	if err != nil {
		return Verdict{}, err
	}
	var v Verdict
	if v.Denials, err = p.findings(ruleDeny, values[0]); err != nil {
		return Verdict{}, err
	}
	if v.Warnings, err = p.findings(ruleWarn, values[1]); err != nil {
		return Verdict{}, err
	}
	return v, nil
}

func evaluate(ctx context.Context, module *regosandbox.Module, in Input) ([]ast.Value, error) {
	input, err := term(in)
	if err != nil {
		return nil, err
	}
	evaluation, err := module.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer evaluation.Close()
	values, err := evaluation.Eval(input)
	if err != nil {
		return nil, fmt.Errorf("admission: %w", err)
	}
	return values, nil
}

func (p *Policy) findings(rule string, value ast.Value) ([]Finding, error) {
	messages, err := p.module.Messages(rule, value)
	if err != nil {
		return nil, fmt.Errorf("admission: %w", err)
	}
	var out []Finding
	for _, m := range messages {
		out = append(out, Finding{m.Code, m.Message, m.Fields["field"]})
	}
	return out, nil
}

// term turns the request into what Rego reads. Absent objects are empty, so that every field of the input exists.
func term(in Input) (*ast.Term, error) {
	parts := map[string]map[string]any{"object": in.Object, "oldObject": in.OldObject, partFacts: in.Facts}
	size := 0
	for _, part := range parts {
		size += sizeOf(part)
	}
	if size > maxInputBytes {
		return nil, fmt.Errorf("admission: the request has %d bytes and at most %d are read; make the object smaller", size, maxInputBytes)
	}
	pairs := [][2]*ast.Term{
		{ast.StringTerm("operation"), ast.StringTerm(in.Operation)},
		{ast.StringTerm("kind"), ast.StringTerm(in.Kind)},
		{ast.StringTerm("user"), regosandbox.Value(in.User)},
	}
	for name, part := range parts {
		if part == nil {
			part = map[string]any{}
		}
		value, err := ast.InterfaceToValue(part)
		if err != nil {
			return nil, fmt.Errorf("admission: %s of the request cannot be read: %w", name, err)
		}
		pairs = append(pairs, [2]*ast.Term{ast.StringTerm(name), ast.NewTerm(value)})
	}
	return ast.ObjectTerm(pairs...), nil
}

// sizeOf counts the bytes of all strings, and eight for everything else.
func sizeOf(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case map[string]any:
		size := 0
		for key, value := range v {
			size += len(key) + sizeOf(value)
		}
		return size
	case []any:
		size := 0
		for _, value := range v {
			size += sizeOf(value)
		}
		return size
	}
	return 8
}
