// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/claims/solve"
)

type page struct {
	*terminal.Terminal
	// all shows every server in a line of its own.
	all bool
}

func (p *page) explained(e *explanation) {
	state := p.Paint(terminal.Wary, "waits", 0)
	if e.Bound {
		state = p.Paint(terminal.Good, "is bound", 0)
	}
	reason := ""
	if e.Reason != "" {
		reason = " (" + e.Reason + ")"
	}
	p.Printf("Claim %s/%s %s since %s%s\n\n", e.Namespace, e.Name, state, p.Ago(e.Since), terminal.Plain(reason))
	p.Field("It says", e.Message)
	p.said("Ready", e.Ready)
	p.said("Stalled", e.Stalled)
	if e.DeletedAt != nil {
		p.Field("Deleted", "its deletion was asked for "+p.Ago(*e.DeletedAt)+" ago")
	}
	p.Field("Waits for", e.WaitsFor)
	if e.Order != nil {
		p.Field("Order", e.Order.words())
	}
	if b := e.Binding; b != nil {
		p.Field("Server", b.Server)
		switch {
		case b.Recorded == nil:
			p.Field("Chosen by", "not known, because the server, which keeps the record, cannot be read")
		case *b.Recorded:
			p.Field("Chosen by", fmt.Sprintf("%s, with score %s; %s", b.Revision, number(b.Score), runnersUp(b.RunnersUp)))
		case b.Lost:
			p.Field("Chosen by", "not known any more, because the server does not name this claim")
		default:
			p.Field("Chosen by", "not recorded, as after an adoption")
		}
		if b.At != nil {
			p.Field("Chosen", p.Ago(*b.At)+" ago")
		}
	}
	p.assessed(e.assessment, false)
	p.Notes(e.Notes)
}

func (p *page) said(name string, s *said) {
	if s == nil {
		return
	}
	status := map[string]string{"True": "yes", "False": "no"}[s.Status]
	p.Field(name, strings.TrimSuffix(fmt.Sprintf("%s, since %s (%s): %s", cmp.Or(status, "unknown"), p.Ago(s.Since), s.Reason, s.Message), ": "))
}

func (o *order) words() string {
	where := "in this namespace"
	if o.Everywhere {
		where = "in all namespaces"
	}
	words := fmt.Sprintf("%d of %d claims that wait %s; priority %d", o.Place, o.Of, where, o.Priority)
	if o.Asked != o.Priority {
		words += fmt.Sprintf(" (it asks for %d)", o.Asked)
	}
	if o.Aged != o.Priority {
		words += fmt.Sprintf(", %d with what it has waited", o.Aged)
	}
	return words
}

func runnersUp(n int) string {
	if n == 0 {
		return "no other server would have done"
	}
	return terminal.Count(n, "other server") + " would have done"
}

func number(score float64) string { return strconv.FormatFloat(score, 'f', -1, 64) }

// assessed writes what the fleet has for a claim; for one that would be bound, only what fits.
func (p *page) assessed(a *assessment, binds bool) {
	if a == nil {
		return
	}
	if binds {
		brief := *a
		brief.Servers = a.Servers[:min(a.Fits, len(a.Servers))]
		brief.Left, brief.Codes = a.Fits-len(brief.Servers), nil
		a = &brief
	}
	p.Field("Policy", a.Revision)
	fits := "could be had now"
	if a.barred && a.Fits > 0 {
		fits = "would do but for what it waits for"
	}
	p.Field("Servers", fmt.Sprintf("%d of %d match, %d %s", a.Matching, a.Total, a.Fits, fits))
	p.Field("Failure", a.PolicyError)
	if len(a.Servers) > 0 {
		p.Printf("\n")
		p.servers(a)
	}
	if len(a.Codes) == 0 {
		return
	}
	p.Printf("\nWhy not the others:\n")
	for _, c := range a.Codes {
		p.Printf("  %-16s %5d  %s\n", terminal.Plain(c.Code), c.Servers, terminal.Plain(c.Meaning))
		if c.Passes != solve.PassingOf(c.Code).Words() { // else that is what the code always means
			p.Printf("  %-16s %5s  Passes: %s\n", "", "", terminal.Plain(c.Passes))
		}
		if c.Remedy != "" {
			p.Printf("  %-16s %5s  Do: %s\n", "", "", terminal.Plain(c.Remedy))
		}
	}
}

// servers is the table of servers, with what fits in green.
func (p *page) servers(a *assessment) {
	name, code := len("SERVER"), len("FITS")
	for i := range a.Servers {
		name, code = max(name, len(a.Servers[i].Name)), max(code, len(word(&a.Servers[i])))
	}
	p.Printf("%-*s  %-*s  %s\n", name, "SERVER", code, "FITS", "WHY")
	for i := 0; i < len(a.Servers); i++ {
		v := &a.Servers[i]
		if n := alike(a.Servers, i); n > 0 && !p.all {
			p.Printf("%-*s  %s\n", name, fmt.Sprintf("and %d more", n), "for which the same is to be said; --all shows them")
			i += n - 1
			continue
		}
		colour := terminal.Bad
		switch {
		case v.Fits:
			colour = terminal.Good
		case v.Unknown || len(v.Reasons) > 0 && v.Passing(v.Reasons[0]) <= solve.ByOthers:
			colour = terminal.Wary
		}
		p.Printf("%s\n", strings.TrimRight(fmt.Sprintf("%-*s  %s  %s", name, v.Name, p.Paint(colour, word(v), code), terminal.Plain(words(v))), " "))
	}
	if a.Left > 0 {
		p.Printf("and %d more; --all shows them\n", a.Left)
	}
}

// shownAlike is how many servers in a row are shown of which the same is to be said.
const shownAlike = 3

// alike is how many servers from i on have nothing to say but what those before them said; 0 where a line for each is better.
func alike(all []solve.Verdict, i int) int {
	if i < shownAlike || all[i].Fits {
		return 0
	}
	same := func(k int) bool {
		return !all[k].Fits && word(&all[k]) == word(&all[i]) && words(&all[k]) == words(&all[i])
	}
	for k := i - shownAlike; k < i; k++ {
		if !same(k) {
			return 0
		}
	}
	n := 0
	for i+n < len(all) && same(i+n) {
		n++
	}
	if n < 2 {
		return 0
	}
	return n
}

// word is what stands for a server: its place in the ranking, or the first code.
func word(v *solve.Verdict) string {
	switch {
	case v.Fits:
		return "yes, " + strconv.Itoa(v.Rank)
	case len(v.Reasons) > 0:
		return terminal.Plain(v.Reasons[0].Code)
	default:
		return "unknown"
	}
}

func words(v *solve.Verdict) string {
	var parts []string
	for i, r := range v.Reasons {
		if i == 0 {
			parts = append(parts, r.Message)
			continue
		}
		part := r.Code + ": " + r.Message
		if passing := v.Passing(r); passing != solve.PassingOf(r.Code) {
			part += " (that passes " + passing.Words() + ")"
		}
		if i == 1 {
			part = "then " + part
		}
		parts = append(parts, part)
	}
	if v.Fits && v.Score != nil {
		parts = append(parts, "score "+number(*v.Score))
	}
	if v.Alternative > 0 {
		parts = append(parts, fmt.Sprintf("alternative %d", v.Alternative))
	}
	if v.Later {
		parts = append(parts, "only once no server of an earlier alternative can be had")
	}
	return strings.Join(parts, "; ")
}
