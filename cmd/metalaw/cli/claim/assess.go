// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// assessment is what the fleet has for a claim. It is the same for claims that exist and for those that are only tried.
type assessment struct {
	// Revision is the policy that was asked; empty where none was.
	Revision string `json:"revision,omitempty"`
	// Total is the number of servers, Matching that of those which the claim asks for by name and labels, Fits that of those it
	// could have.
	Total    int `json:"total"`
	Matching int `json:"matching"`
	Fits     int `json:"fits"`
	// Codes count the servers that do not fit, the most frequent first.
	Codes []codeCount `json:"codes"`
	// Servers are those that fit, the best first, and then the others, the nearest misses first. Left is how many are not shown.
	Servers []solve.Verdict `json:"servers"`
	Left    int             `json:"left,omitempty"`
	// Refused is why it gets no server whichever fits.
	Refused *solve.Reason `json:"refused,omitempty"`
	// PolicyError is why the policy could not be evaluated.
	PolicyError string `json:"policyError,omitempty"`

	// barred: it gets no server now, though some fit.
	barred bool
}

// codeCount is one code, with what it means.
type codeCount struct {
	Code    string `json:"code"`
	Servers int    `json:"servers"`
	// Passes says how it passes, Meaning what it says, and Remedy what to do. A code of the bundle has the message of a server.
	Passes  string `json:"passes"`
	Meaning string `json:"meaning"`
	Remedy  string `json:"remedy,omitempty"`
}

func documented() map[string]selection.Code {
	all := map[string]selection.Code{}
	for _, c := range append(selection.Codes(), placement.Codes()...) {
		all[c.Code] = c
	}
	return all
}

// defaultShown is how many servers are shown where not all are asked for.
const defaultShown = 20

func (w *world) assess(a solve.Answer, all bool) *assessment {
	s := &assessment{Total: a.Total, Matching: a.Matching, Fits: a.Fits, Servers: a.Verdicts, Codes: []codeCount{}, Refused: a.Refused}
	if w.bundle != nil {
		s.Revision = w.revision
	}
	if a.Failed != nil {
		s.PolicyError = a.Failed.Error()
	}
	known := documented()
	for code, n := range a.Counts {
		one := codeCount{Code: code, Servers: n, Passes: a.Passes(code), Meaning: known[code].Meaning, Remedy: known[code].Remedy}
		if one.Meaning == "" {
			one.Meaning = "the policy says: " + messageOf(a, code)
		}
		s.Codes = append(s.Codes, one)
	}
	slices.SortFunc(s.Codes, func(a, b codeCount) int {
		return cmp.Or(cmp.Compare(b.Servers, a.Servers), strings.Compare(a.Code, b.Code))
	})
	if !all && len(s.Servers) > defaultShown {
		s.Servers, s.Left = s.Servers[:defaultShown], len(s.Servers)-defaultShown
	}
	return s
}

// messageOf is what is said of the nearest server with a code.
func messageOf(a solve.Answer, code string) string {
	for i := range a.Verdicts {
		for _, r := range a.Verdicts[i].Reasons {
			if r.Code == code {
				return r.Message
			}
		}
	}
	return ""
}

// outcome is what would become of a claim now.
type outcome struct {
	*assessment
	// server is the one that it would get.
	server solve.Verdict
	// binds: it would get that one. unknown: that is not known, because the policy is not known.
	binds, unknown bool
	// waitsFor says in a sentence what it would wait for.
	waitsFor string
}

// unseenOthers is what follows where the claims of other namespaces may not be read.
const unseenOthers = "claims of other namespaces are not known to you: one of them may come first"

// serve asks the solver what becomes of some claims that get servers together. What is in the way of one is in the way of all.
func (w *world) serve(ctx context.Context, some []*claims.Claim, all bool) ([]outcome, error) {
	missing := ""
	if some[0].ServerRef == "" { // one that asks for the server that it had waits for no other
		missing = solve.Missing(w.fleet, some)
	}
	results := solve.Solve(ctx, w.fleet, some, solve.Want{Mode: solve.Reasons, Forbids: w.forbids(ctx)})
	complete, isForbidden := true, false
	for _, r := range results {
		if r.Err != nil {
			return nil, r.Err
		}
		complete = complete && r.Action != solve.Refuse && r.Action != solve.Again
		isForbidden = isForbidden || r.Answer.Refused != nil && r.Answer.Refused.Stage == solve.ClaimStage
	}
	if isForbidden {
		missing = "the policy forbids a member"
	}
	complete = complete && missing == ""
	outcomes := make([]outcome, len(results))
	for i, r := range results {
		o := outcome{assessment: w.assess(*r.Answer, all)}
		o.server, o.binds = r.Answer.Taken()
		outcomes[i] = w.frozen(o.held(*r.Answer, missing, complete, w.bundle != nil))
		outcomes[i].barred = !outcomes[i].binds
	}
	if !complete {
		return outcomes, nil
	}
	w.fleet.Bind(results)
	if !w.everywhere && !slices.Contains(w.notes, unseenOthers) && slices.ContainsFunc(outcomes, func(o outcome) bool { return o.binds }) {
		w.notes = append(w.notes, unseenOthers)
	}
	return outcomes, nil
}

// held says what a claim waits for: what keeps its gang from coming together, what is in its own way, or servers for the others.
func (o outcome) held(a solve.Answer, gang string, complete, hasPolicy bool) outcome {
	isDenied := a.Refused != nil && a.Refused.Stage == solve.ClaimStage
	switch {
	case gang != "" && !isDenied:
		o.binds, o.waitsFor = false, "its gang: "+gang
	case a.Lacking != "":
		o.binds, o.waitsFor = false, "its gang: no server is left for its member "+a.Lacking
	case !o.binds:
		o.waitsFor = lacks(a, hasPolicy)
		o.unknown = o.waitsFor == policyUnknown
	case !complete:
		o.binds, o.waitsFor = false, "its gang: not every member finds a server"
	}
	return o
}

// forbids finds the rule of the bundle that forbids a claim; nil where no rules are known.
func (w *world) forbids(ctx context.Context) func(*claims.Claim) (reason, message string) {
	if w.bundle == nil || w.bundle.Admission == nil {
		return nil
	}
	return func(c *claims.Claim) (reason, message string) {
		return policies.Forbids(ctx, w.bundle.Admission, w.bundle.Revision.Name, w.objects[c])
	}
}

// policyUnknown is what a claim waits for where servers would do and only the policy could tell.
const policyUnknown = "what the policy says, which is not known here"

func lacks(a solve.Answer, hasPolicy bool) string {
	switch {
	case a.Refused != nil:
		return fmt.Sprintf("%s (%s)", a.Refused.Message, a.Refused.Code)
	case a.Total == 0:
		return "servers: there are none"
	case a.Failed != nil:
		return "a policy that can be evaluated: " + a.Failed.Error()
	case a.Matching == 0:
		words := "a server that it asks for: none matches its serverRef and serverSelector"
		if a.Unlabelled > 0 {
			words += fmt.Sprintf("; whether %d of them may is known once it is reported what they are made of", a.Unlabelled)
		}
		return words
	case !hasPolicy && slices.ContainsFunc(a.Verdicts, func(v solve.Verdict) bool { return v.Unknown }):
		return policyUnknown
	}
	nearest := a.Verdicts[0]
	if last, passing := nearest.Last(); passing == solve.ByClaim { // whatever else is in the way, this stays
		return "a change of the claim, or other servers; the nearest is " + inTheWay(nearest, last)
	}
	first := nearest.Reasons[0]
	words := inTheWay(nearest, first)
	if passing := nearest.Passing(first); passing != solve.PassingOf(first.Code) {
		words += "; that passes " + passing.Words()
	}
	if a.Short {
		return "more servers for its gang; the nearest is " + words
	}
	return words
}

// inTheWay says of a server one reason, and how many there are besides.
func inTheWay(v solve.Verdict, r solve.Reason) string {
	words := fmt.Sprintf("%s: %s (%s)", v.Name, r.Message, r.Code)
	if more := len(v.Reasons) - 1; more > 0 {
		words += fmt.Sprintf(", and %d more in its way", more)
	}
	return words
}
