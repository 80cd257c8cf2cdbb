// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/regonative"
	"github.com/metalaw/metalaw/engine/internal/regosandbox"
)

// CodeInterpreted: a rule is evaluated by the interpreter, which takes far longer.
const CodeInterpreted = "rego-interpreted"

// native is a policy whose rules are all translated into Go.
type native struct {
	program *regonative.Program
	allow   *regonative.Rule
	// score is nil where the policy gives none.
	score   *regonative.Rule
	rejects []*regonative.Message
	// codes are those of all reject rules, after CodeNotAllowed for what has none; code says which one a reject rule has.
	codes []string
	code  []int
	// lasting says of each reject rule, and lastingAllow of allow, that they read nothing which passes by itself.
	lasting      []bool
	lastingAllow bool
	// longest is the most bytes that a string may have so that no message gets too long.
	longest int

	places  atomic.Pointer[places]
	scratch sync.Pool
}

// mostCodes is how many codes a verdict can hold.
const mostCodes = 64

// newNative translates a policy. Where that is not possible it says why, and returns nil.
func newNative(module *regosandbox.Module) (*native, diag.List) {
	ref := func(rule string) ast.Ref { return ast.MustParseRef("data." + Package + "." + rule) }
	t := regonative.NewTranslator(module.Compiler(), source)
	n := &native{allow: t.Rule(ref(ruleAllow)), score: t.Rule(ref(ruleScore)), rejects: t.Messages(ref(ruleReject)),
		codes: []string{CodeNotAllowed}, longest: math.MaxInt}
	program, outside := t.Program()
	if len(outside) > 0 {
		return nil, interpreted(outside)
	}
	n.program, n.lastingAllow = program, !reads{fields: n.allow.Reads}.judgePassing()
	for _, r := range n.rejects {
		n.lasting = append(n.lasting, !reads{fields: r.Reads}.judgePassing())
		switch {
		case !regosandbox.ValidCode(r.Code), r.Late && r.Fixed > regosandbox.MaxMessage:
			n.longest = -1 // the interpreter tells what is wrong
		case r.Late && r.Fields > 0:
			n.longest = min(n.longest, (regosandbox.MaxMessage-r.Fixed)/r.Fields)
		}
		i := slices.Index(n.codes[1:], r.Code) + 1
		if i == 0 {
			i = len(n.codes)
			n.codes = append(n.codes, r.Code)
		}
		n.code = append(n.code, i)
	}
	if len(n.codes) > mostCodes {
		return nil, diag.List{{Severity: diag.Warning, Code: CodeInterpreted, File: "selection.rego", Rule: ruleReject,
			Message: fmt.Sprintf("the policy is interpreted for each server, because it has more than %d codes", mostCodes-1),
			Hint:    "keep the number of codes small"}}
	}
	n.places.Store(newPlaces(program.Factors))
	n.scratch.New = func() any { return &scratch{frame: program.NewFrame()} }
	return n, nil
}

// interpreted are the findings about rules that only the interpreter evaluates.
func interpreted(outside []regonative.Outside) diag.List {
	var found diag.List
	for _, o := range outside {
		d := diag.Diagnostic{Severity: diag.Warning, Code: CodeInterpreted, File: o.Location.File, Line: o.Location.Row, Column: o.Location.Col,
			Rule: o.Rule, Hint: o.Hint,
			Message: "the policy is interpreted for each server, which takes about a thousand times as long, because " + o.Why}
		if !slices.Contains(found, d) {
			found = append(found, d)
		}
	}
	return found
}

// scratch is what one Select works on. It is kept for the next.
type scratch struct {
	frame    *regonative.Frame
	subject  subject
	verdicts verdicts
	// alone is the verdict of the candidate that was judged last for itself.
	alone verdict
}

// verdict is what the rules say of a class, without the words.
type verdict struct {
	// unsure: the interpreter has to be asked.
	unsure, allowed bool
	// lasting: a rule turns the class away that reads nothing which passes by itself.
	lasting bool
	// codes has a bit for each code with which the class is turned away.
	codes uint64
	score float64
}

// begin takes up the work on a claim.
func (n *native) begin(claim *Claim, fleet *Fleet) *scratch {
	s := n.scratch.Get().(*scratch)
	s.subject = subject{claim: claim, fleet: fleet}
	s.frame.In = &s.subject
	s.frame.Begin()
	s.verdicts.empty()
	return s
}

func (n *native) end(s *scratch) {
	s.subject = subject{}
	s.frame.Release()
	n.scratch.Put(s)
}

// generation is the current one of the places.
func (n *native) generation() *places {
	p := n.places.Load()
	if p.full() {
		n.places.CompareAndSwap(p, newPlaces(n.program.Factors))
		p = n.places.Load()
	}
	return p
}

// verdict judges a candidate, or takes the judgement of its class, which holds until the next call.
func (n *native) verdict(s *scratch, at []uint16, candidate *PreparedCandidate) *verdict {
	c := s.frame.Class(at, func() { n.look(s, at, candidate) })
	if c == nil {
		s.alone = n.decide(s, at, candidate)
		return &s.alone
	}
	found := s.verdicts.at(c)
	if found.series != s.verdicts.series {
		found = s.verdicts.put(found, c, n.decide(s, at, candidate))
	}
	return &found.verdict
}

// decide evaluates all rules. An error in the score is one of a candidate too that is not allowed.
func (n *native) decide(s *scratch, at []uint16, candidate *PreparedCandidate) verdict {
	f := s.frame
	n.look(s, at, candidate)
	v := verdict{}
	if allow, ok := n.allow.Eval(f); ok {
		allowed, isBool := allow.Truth()
		v.allowed, v.unsure = allowed, !isBool
	}
	v.lasting = n.lastingAllow && !v.allowed
	held := n.reject(f, &v)
	if held == 0 && !v.allowed {
		v.codes = 1
	}
	v.allowed = v.codes == 0
	n.rate(f, &v)
	v.unsure = v.unsure || f.GaveUp || held > regosandbox.MaxMessages
	return v
}

// rate evaluates the score.
func (n *native) rate(f *regonative.Frame, v *verdict) {
	if n.score == nil {
		return
	}
	if score, ok := n.score.Eval(f); ok && v.allowed {
		v.score, ok = float(score)
		v.unsure = v.unsure || !ok
	}
}

// reject puts into a verdict which reject rules hold, and returns how many do.
func (n *native) reject(f *regonative.Frame, v *verdict) (held int) {
	for i, r := range n.rejects {
		if !r.Holds(f) {
			continue
		}
		held++
		v.lasting = v.lasting || n.lasting[i]
		v.codes |= 1 << n.code[i]
		if !r.Late {
			words := r.Text(f)
			v.unsure = v.unsure || words == "" || len(words) > regosandbox.MaxMessage
		}
	}
	return held
}

// look lets the rules see a candidate.
func (n *native) look(s *scratch, at []uint16, candidate *PreparedCandidate) {
	s.subject.candidate = &candidate.facts
	s.frame.Next(at)
}

func float(score value) (float64, bool) {
	if whole, ok := score.Number(); ok {
		return float64(whole), true
	}
	number, ok := score.Term().Value.(ast.Number)
	if !ok {
		return 0, false
	}
	f, ok := number.Float64()
	return f, ok && !math.IsInf(f, 0) && !math.IsNaN(f)
}

// reasons are all words with which a candidate is turned away, sorted; ok is false where the interpreter has to be asked.
func (n *native) reasons(s *scratch, at []uint16, candidate *PreparedCandidate) (all []Reason, ok bool) {
	n.look(s, at, candidate)
	for _, r := range n.rejects {
		if r.Holds(s.frame) {
			all = append(all, Reason{r.Code, r.Text(s.frame)})
		}
	}
	slices.SortFunc(all, compareReasons)
	return slices.Compact(all), !s.frame.GaveUp
}
