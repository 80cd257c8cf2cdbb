// SPDX-License-Identifier: Apache-2.0

package server

import (
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
	message := o.Message
	if r.dryRun && o.complete() {
		message = strings.TrimSpace(message + " (dry run: nothing was stored)")
	}
	r.terminal.Printf("%-*s  %s  %s\n", r.width, o.Name, r.terminal.Paint(colours[o.Outcome], o.Outcome, outcomeWidth), terminal.Plain(message))
}

// nothing is the report for other programs where no server was chosen: whoever reads it gets a document all the same.
func (r *report) nothing() { r.write(document{Verb: r.verb, DryRun: r.dryRun, Servers: []result{}}) }

func (r *report) write(d document) { r.output.Show(r.terminal, d, func() {}) }

// end closes the report; the error says that not everything was done.
func (r *report) end() error {
	d := document{Verb: r.verb, DryRun: r.dryRun, Complete: true, Servers: r.results}
	for i := range r.results {
		d.Complete = d.Complete && r.results[i].complete()
	}
	slices.SortFunc(d.Servers, func(a, b result) int { return strings.Compare(a.Name, b.Name) })
	r.write(d)
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
