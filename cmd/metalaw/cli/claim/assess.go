// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/why"
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
	Servers []why.Verdict `json:"servers"`
	Left    int           `json:"left,omitempty"`
	// Refused is why it gets no server whichever fits.
	Refused *why.Reason `json:"refused,omitempty"`
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

// documented are metalaw's own codes.
func documented() map[string]selection.Code {
	all := map[string]selection.Code{}
	for _, c := range append(selection.Codes(), placement.Codes()...) {
		all[c.Code] = c
	}
	return all
}

// defaultShown is how many servers are shown where not all are asked for.
const defaultShown = 20

// assess turns an answer into what is shown.
func (w *world) assess(a why.Answer, all bool) *assessment {
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
func messageOf(a why.Answer, code string) string {
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
	server why.Verdict
	// binds: it would get that one. unknown: nobody can tell, because the policy is not known.
	binds, unknown bool
	// waitsFor says in a sentence what it would wait for.
	waitsFor string
	// mayBeKept: that server may be kept free for a gang whose turn is before. doubtful: it may be that no other would do then, for the
	// claim or another of its gang.
	mayBeKept, doubtful bool
}

// serve finds out what would become of some claims that get servers together; what is in the way of one is in the way of all.
func (w *world) serve(ctx context.Context, claims []*v1alpha1.ServerClaim, all bool) ([]outcome, error) {
	others := make([]*v1alpha1.ServerClaim, len(w.claims))
	for i := range w.claims {
		others[i] = &w.claims[i]
	}
	missing := ""
	if claims[0].Spec.ServerRef == nil { // one that asks for the server that it had waits for no other
		missing = why.Missing(w.quota(), claims, others, w.fleet)
	}
	policy := w.policy()
	members := make([]why.Member, len(claims))
	for i, c := range claims {
		members[i] = why.Member{Claim: c, Priority: w.priority(c)}
	}
	served, err := why.Serve(ctx, policy, w.quota(), members, w.fleet)
	if err != nil {
		return nil, err
	}
	if w.forbid(ctx, claims, served.Answers) {
		missing = "the policy forbids a member"
	}
	complete := served.Complete && missing == ""
	outcomes := make([]outcome, len(claims))
	for i, a := range served.Answers {
		o := outcome{assessment: w.assess(a, all)}
		o.server, o.binds = a.Taken()
		outcomes[i] = w.frozen(o.held(a, missing, complete, policy != nil))
		outcomes[i].barred = !outcomes[i].binds
	}
	if complete {
		if err := w.doubt(ctx, members, outcomes); err != nil {
			return nil, err
		}
		w.fleet = served.After
	}
	return outcomes, nil
}

// held says what a claim waits for: what keeps its gang from coming together, what is in its own way, or servers for the others.
func (o outcome) held(a why.Answer, gang string, complete, hasPolicy bool) outcome {
	isDenied := a.Refused != nil && a.Refused.Stage == why.Claim
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

// forbid refuses claims that no server is written for and that a rule of the bundle forbids. It says whether there are any.
func (w *world) forbid(ctx context.Context, claims []*v1alpha1.ServerClaim, answers []why.Answer) (found bool) {
	for i, c := range claims {
		if answers[i].Has != "" {
			continue
		}
		if forbidden := w.forbids(ctx, c); forbidden != nil {
			answers[i].Refused, found = forbidden, true
		}
	}
	return found
}

// forbids is the rule of the bundle that forbids a claim; nil where none does, or none is known.
func (w *world) forbids(ctx context.Context, c *v1alpha1.ServerClaim) *why.Reason {
	if w.bundle == nil || w.bundle.Admission == nil {
		return nil
	}
	reason, words := policies.Forbids(ctx, w.bundle.Admission, w.bundle.Revision.Name, c)
	if words == "" {
		return nil
	}
	return &why.Reason{Code: reason, Message: words, Stage: why.Claim}
}

// policy chooses servers; nil where it is not known.
func (w *world) policy() *selection.Policy {
	if w.bundle == nil {
		return nil
	}
	return w.bundle.Selection
}

// policyUnknown is what a claim waits for where servers would do and only the policy could tell.
const policyUnknown = "what the policy says, which is not known here"

// lacks says what a claim without a server waits for.
func lacks(a why.Answer, hasPolicy bool) string {
	switch {
	case a.Refused != nil:
		return fmt.Sprintf("%s (%s)", a.Refused.Message, a.Refused.Code)
	case a.Total == 0:
		return "servers: there are none"
	case a.Failed != nil:
		return "whoever keeps the policy: it cannot be evaluated: " + a.Failed.Error()
	case a.Matching == 0:
		words := "a server that it asks for: none matches its serverRef and serverSelector"
		if a.Unlabelled > 0 {
			words += fmt.Sprintf("; whether %d of them may is known once it is reported what they are made of", a.Unlabelled)
		}
		return words
	case !hasPolicy && slices.ContainsFunc(a.Verdicts, func(v why.Verdict) bool { return v.Unknown }):
		return policyUnknown
	}
	nearest := a.Verdicts[0]
	if last, passing := nearest.Last(); passing == why.ByClaim { // whatever else is in the way, this stays
		return "a change of the claim, or other servers; the nearest is " + inTheWay(nearest, last)
	}
	first := nearest.Reasons[0]
	words := inTheWay(nearest, first)
	if passing := nearest.Passing(first); passing != why.PassingOf(first.Code) {
		words += "; that passes " + passing.Words()
	}
	if a.Short {
		return "more servers for its gang; the nearest is " + words
	}
	return words
}

// inTheWay says of a server one reason, and how many there are besides.
func inTheWay(v why.Verdict, r why.Reason) string {
	words := fmt.Sprintf("%s: %s (%s)", v.Name, r.Message, r.Code)
	if more := len(v.Reasons) - 1; more > 0 {
		words += fmt.Sprintf(", and %d more in its way", more)
	}
	return words
}
