// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"errors"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/metalaw/metalaw/engine/diag"
)

// messagesSeen holds what rules of form Messages add while tests run to the form that it has to have. A test that looks at a part of it, or
// counts, passes whatever the rest is.
type messagesSeen struct {
	topdown.QueryTracer
	// module reads the messages as it does outside of tests.
	module *Module
	// entrypoints are the rules, as the compiler has them, by the name that metalaw asks for.
	entrypoints map[*ast.Rule]Entrypoint
	// test is the one that runs.
	test  string
	found diag.List
}

func watchMessages(spec Spec, tracer topdown.QueryTracer) *messagesSeen {
	return &messagesSeen{QueryTracer: tracer, module: &Module{spec: spec}, entrypoints: map[*ast.Rule]Entrypoint{}}
}

// among says which rules there are.
func (m *messagesSeen) among(modules map[string]*ast.Module) {
	for _, e := range m.module.spec.Entrypoints {
		if e.Form != Messages {
			continue
		}
		for _, rule := range rulesNamed(m.module.spec.Package, e.Name, modules) {
			m.entrypoints[rule] = e
		}
	}
}

// TraceEvent implements topdown.QueryTracer.
func (m *messagesSeen) TraceEvent(e topdown.Event) {
	m.QueryTracer.TraceEvent(e)
	if e.Op != topdown.ExitOp {
		return
	}
	rule, is := e.Node.(*ast.Rule)
	if !is || rule.Head.Key == nil {
		return
	}
	entrypoint, is := m.entrypoints[rule]
	if !is || len(m.found) == maxFindings {
		return
	}
	_, err := m.module.message(entrypoint.Name, e.Plug(rule.Head.Key))
	if failed, is := errors.AsType[*EvalError](err); is {
		m.add(diag.Diagnostic{Severity: diag.Warning, Code: CodeEntrypoint, File: rule.Loc().File, Line: rule.Loc().Row, Column: rule.Loc().Col,
			Rule: entrypoint.Name, Message: entrypoint.Name + " " + failed.Cause.Error(), Hint: "write it like " + example(entrypoint) +
				", or correct the test where only its own data is like that"})
	}
}

// add keeps what the first test alone shows of a rule.
func (m *messagesSeen) add(d diag.Diagnostic) {
	for _, other := range m.found {
		if other.Line == d.Line && other.Column == d.Column && other.File == d.File {
			return
		}
	}
	d.Message += " (seen in " + m.test + ")"
	m.found = append(m.found, d)
}
