// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// report tells the outcomes: in text as they come, one line each; as JSON or YAML all at the end, by name.
type report struct {
	terminal *terminal.Terminal
	output   terminal.Output
	dryRun   bool
	verb     string

	width   int
	results []result
	wrong   error
}

// document is the report for other programs.
type document struct {
	Verb   string `json:"verb"`
	DryRun bool   `json:"dryRun,omitempty"`
	// Complete is the exit code in a word: nothing was refused, failed or timed out.
	Complete bool     `json:"complete"`
	Servers  []result `json:"servers"`
}

// begin learns how wide the names are.
func (r *report) begin(lists ...[]result) {
	for _, list := range lists {
		for i := range list {
			r.width = max(r.width, len(list[i].Name))
		}
	}
}

// add tells one outcome.
func (r *report) add(o result) {
	r.results = append(r.results, o)
	if r.output.Structured() {
		return
	}
	word, colour := o.Outcome, colours[o.Outcome]
	message := o.Message
	if r.dryRun && o.complete() {
		message = strings.TrimSpace(message + " (dry run: nothing was stored)")
	}
	_, err := fmt.Fprintf(r.terminal.Out, "%-*s  %s  %s\n", r.width, o.Name, r.terminal.Paint(colour, word, outcomeWidth), terminal.Plain(message))
	r.wrong = errors.Join(r.wrong, err)
}

// note tells something on the way.
func (r *report) note(format string, args ...any) {
	_, err := fmt.Fprintf(r.terminal.Err, format+"\n", args...)
	r.wrong = errors.Join(r.wrong, err)
}

// nothing is the report for other programs where no server was chosen: whoever reads it gets a document all the same.
func (r *report) nothing() error {
	if !r.output.Structured() {
		return nil
	}
	return r.output.Write(r.terminal.Out, document{Verb: r.verb, DryRun: r.dryRun, Servers: []result{}})
}

// end closes the report; the error says that not everything was done, or that it could not be told.
func (r *report) end() error {
	d := document{Verb: r.verb, DryRun: r.dryRun, Complete: true, Servers: r.results}
	for i := range r.results {
		d.Complete = d.Complete && r.results[i].complete()
	}
	if r.output.Structured() {
		slices.SortFunc(d.Servers, func(a, b result) int { return strings.Compare(a.Name, b.Name) })
		r.wrong = errors.Join(r.wrong, r.output.Write(r.terminal.Out, d))
	}
	if r.wrong != nil {
		return r.wrong
	}
	if !d.Complete {
		return terminal.ErrIncomplete
	}
	return nil
}

// outcomeWidth is that of the longest outcome.
const outcomeWidth = len(outcomeUnchanged)

var colours = map[string]terminal.Colour{
	outcomeAsked: terminal.Good, outcomeDone: terminal.Good, outcomeUnchanged: terminal.Good,
	outcomeRefused: terminal.Wary, outcomeTimedOut: terminal.Wary, outcomeFailed: terminal.Bad,
}
