// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/claims/solve"
)

// page writes text for people.
type page struct {
	*terminal.Terminal
	now time.Time
	// all shows every server in a line of its own.
	all bool
	err error
}

func (p *page) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.Out, format+"\n", args...)
	}
}

// field is one line with a name before it.
func (p *page) field(name, text string) {
	if text != "" {
		p.line("%-12s %s", name+":", terminal.Plain(text))
	}
}

// notes go to the standard error.
func (p *page) notes(notes []string) {
	for _, note := range notes {
		fmt.Fprintf(p.Err, "note: %s\n", terminal.Plain(note)) //nolint:errcheck // Nobody is left to tell.
	}
}

func (p *page) ago(t time.Time) string { return duration.HumanDuration(p.now.Sub(t)) }

// explained writes an explanation.
func (p *page) explained(e *explanation) error {
	state := p.Paint(terminal.Wary, "waits", 0)
	if e.Bound {
		state = p.Paint(terminal.Good, "is bound", 0)
	}
	reason := ""
	if e.Reason != "" {
		reason = " (" + e.Reason + ")"
	}
	p.line("Claim %s/%s %s since %s%s", e.Namespace, e.Name, state, p.ago(e.Since), terminal.Plain(reason))
	p.line("")
	p.field("It says", e.Message)
	p.said("Ready", e.Ready)
	p.said("Stalled", e.Stalled)
	if e.DeletedAt != nil {
		p.field("Deleted", "its deletion was asked for "+p.ago(*e.DeletedAt)+" ago")
	}
	p.field("Waits for", e.WaitsFor)
	if e.Order != nil {
		p.field("Order", e.Order.words())
	}
	if b := e.Binding; b != nil {
		p.field("Server", b.Server)
		switch {
		case b.Recorded == nil:
			p.field("Chosen by", "not known, because the server, which keeps the record, cannot be read")
		case *b.Recorded:
			p.field("Chosen by", fmt.Sprintf("%s, with score %s; %s", b.Revision, number(b.Score), runnersUp(b.RunnersUp)))
		case b.Lost:
			p.field("Chosen by", "not known any more, because the server does not name this claim")
		default:
			p.field("Chosen by", "nobody recorded it; so it is after an adoption")
		}
		if b.At != nil {
			p.field("Chosen", p.ago(*b.At)+" ago")
		}
	}
	p.assessed(e.assessment, false)
	p.notes(e.Notes)
	return p.err
}

// said is what a condition says, in a line.
func (p *page) said(name string, s *said) {
	if s == nil {
		return
	}
	status := map[string]string{"True": "yes", "False": "no"}[s.Status]
	p.field(name, strings.TrimSuffix(fmt.Sprintf("%s, since %s (%s): %s", cmp.Or(status, "unknown"), p.ago(s.Since), s.Reason, s.Message), ": "))
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
	switch n {
	case 0:
		return "no other server would have done"
	case 1:
		return "1 other server would have done"
	default:
		return fmt.Sprintf("%d other servers would have done", n)
	}
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
	p.field("Policy", a.Revision)
	fits := "could be had now"
	if a.barred && a.Fits > 0 {
		fits = "would do but for what it waits for"
	}
	p.field("Servers", fmt.Sprintf("%d of %d match, %d %s", a.Matching, a.Total, a.Fits, fits))
	p.field("Failure", a.PolicyError)
	if len(a.Servers) > 0 {
		p.line("")
		p.servers(a)
	}
	if len(a.Codes) == 0 {
		return
	}
	p.line("")
	p.line("Why not the others:")
	for _, c := range a.Codes {
		p.line("  %-16s %5d  %s", terminal.Plain(c.Code), c.Servers, terminal.Plain(c.Meaning))
		if c.Passes != solve.PassingOf(c.Code).Words() { // else that is what the code always means
			p.line("  %-16s %5s  Passes: %s", "", "", terminal.Plain(c.Passes))
		}
		if c.Remedy != "" {
			p.line("  %-16s %5s  Do: %s", "", "", terminal.Plain(c.Remedy))
		}
	}
}

// servers is the table of servers, with what fits in green.
func (p *page) servers(a *assessment) {
	name, code := len("SERVER"), len("FITS")
	for i := range a.Servers {
		name, code = max(name, len(a.Servers[i].Name)), max(code, len(word(&a.Servers[i])))
	}
	p.line("%-*s  %-*s  %s", name, "SERVER", code, "FITS", "WHY")
	for i := 0; i < len(a.Servers); i++ {
		v := &a.Servers[i]
		if n := alike(a.Servers, i); n > 0 && !p.all {
			p.line("%-*s  %s", name, fmt.Sprintf("and %d more", n), "for which the same is to be said; --all shows them")
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
		p.line("%s", strings.TrimRight(fmt.Sprintf("%-*s  %s  %s", name, v.Name, p.Paint(colour, word(v), code), terminal.Plain(words(v))), " "))
	}
	if a.Left > 0 {
		p.line("and %d more; --all shows them", a.Left)
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

// words are what there is to say of a server.
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
