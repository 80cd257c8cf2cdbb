// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// phase is what one server led to in one phase.
type phase struct {
	name  string
	calls []call
}

// kind is what requests are counted by: what stays the same where functions are moved and renamed.
type kind struct {
	Phase  string `json:"phase"`
	Class  class  `json:"class"`
	Verb   string `json:"verb"`
	Object string `json:"object"`
}

// row is how often each server led to a request of a kind.
type row struct {
	kind
	Counts []int `json:"counts"`
}

// median is that of the counts; of an even number of them the lower one.
func (r row) median() int {
	sorted := slices.Sorted(slices.Values(r.Counts))
	return sorted[(len(sorted)-1)/2]
}

// text is the median, with the range where the servers differ.
func (r row) text() string {
	lowest, highest := slices.Min(r.Counts), slices.Max(r.Counts)
	if lowest == highest {
		return strconv.Itoa(lowest)
	}
	return fmt.Sprintf("%d (%d to %d)", r.median(), lowest, highest)
}

// count counts the requests of all servers by kind: in the order of the phases, then of the classes, the most frequent first.
func count(servers [][]phase) []row {
	order := map[string]int{}
	counts := map[kind][]int{}
	for i, phases := range servers {
		for n, p := range phases {
			order[p.name] = n
			for _, c := range p.calls {
				k := kind{p.name, c.Class, c.Verb, c.Object}
				if counts[k] == nil {
					counts[k] = make([]int, len(servers))
				}
				counts[k][i]++
			}
		}
	}
	var rows []row
	for k, n := range counts {
		rows = append(rows, row{k, n})
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(order[a.Phase], order[b.Phase]),
			cmp.Compare(slices.Index(classes, a.Class), slices.Index(classes, b.Class)),
			cmp.Compare(b.median(), a.median()), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Verb, b.Verb))
	})
	return rows
}

// total is what all rows of a phase and class add up to, for each server.
func total(rows []row, phase string, of class) row {
	sum := row{kind: kind{Phase: phase, Class: of}}
	for _, r := range rows {
		if sum.Counts == nil {
			sum.Counts = make([]int, len(r.Counts))
		}
		if r.Phase != phase || r.Class != of {
			continue
		}
		for i, n := range r.Counts {
			sum.Counts[i] += n
		}
	}
	return sum
}

// difference is a kind whose median is another one than before.
type difference struct {
	kind
	before, after int
}

// compare tells which kinds have another median.
func compare(before, after []row) []difference {
	was := map[kind]int{}
	for _, r := range before {
		was[r.kind] = r.median()
	}
	var all []difference
	for _, r := range after {
		if n := was[r.kind]; n != r.median() {
			all = append(all, difference{r.kind, n, r.median()})
		}
		delete(was, r.kind)
	}
	for _, r := range before {
		if n := was[r.kind]; n != 0 {
			all = append(all, difference{r.kind, n, 0})
		}
	}
	return all
}

// parse reads the counts of another build.
func parse(text []byte) ([]row, error) {
	var rows []row
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, err
	}
	for _, r := range rows {
		if len(r.Counts) == 0 {
			return nil, fmt.Errorf("%s %s %s has no counts", r.Phase, r.Verb, r.Object)
		}
	}
	return rows, nil
}

// render writes everything in Markdown: the totals, the kinds, and each request of the last server.
func render(servers [][]phase) string {
	rows := count(servers)
	last := servers[len(servers)-1]
	var b strings.Builder
	fmt.Fprintf(&b, "# What the manager asks for one server\n\nMedians of %d servers, one after the other.\n\n", len(servers))
	head := []string{"phase"}
	for _, c := range classes {
		head = append(head, string(c)+"s")
	}
	table(&b, head)
	for _, p := range last {
		cells := []string{p.name}
		for _, c := range classes {
			cells = append(cells, total(rows, p.name, c).text())
		}
		line(&b, cells)
	}
	for _, p := range last {
		fmt.Fprintf(&b, "\n## %s\n\n", p.name)
		table(&b, []string{"class", "verb", "object", "count"})
		for _, r := range rows {
			if r.Phase == p.name {
				line(&b, []string{string(r.Class), r.Verb, r.Object, r.text()})
			}
		}
		fmt.Fprintf(&b, "\n### Each request of the last server\n\n")
		table(&b, []string{"ms", "class", "verb", "object", "name", "what", "answer", "controller", "by"})
		for _, c := range p.calls {
			line(&b, []string{strconv.FormatInt(c.at.Sub(p.calls[0].at).Milliseconds(), 10), string(c.Class), c.Verb, c.Object, c.Name,
				strings.Join(c.Fields, ", "), strconv.Itoa(c.Answer), c.Controller, strings.Join(c.By, " > ")})
		}
	}
	return b.String()
}

// renderDifferences writes which counts are others than those of another build.
func renderDifferences(differences []difference) string {
	var b strings.Builder
	b.WriteString("\n## Other than before\n\n")
	if len(differences) == 0 {
		b.WriteString("Nothing.\n")
		return b.String()
	}
	table(&b, []string{"phase", "class", "verb", "object", "before", "after"})
	for _, d := range differences {
		line(&b, []string{d.Phase, string(d.Class), d.Verb, d.Object, strconv.Itoa(d.before), strconv.Itoa(d.after)})
	}
	return b.String()
}

func table(b *strings.Builder, head []string) {
	line(b, head)
	line(b, slices.Repeat([]string{"---"}, len(head)))
}

func line(b *strings.Builder, cells []string) {
	fmt.Fprintf(b, "| %s |\n", strings.ReplaceAll(strings.Join(cells, " | "), "\n", " "))
}
