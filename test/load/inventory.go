// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// writerManager is what the measured manager is called in counts.
const writerManager = "manager"

// sheet is every request of one phase.
type sheet struct {
	phase phase
	// Redfish is what the BMCs received, Writes what could change an object, Calls everything that the API server answered.
	Redfish requests
	Writes  map[write]int
	Calls   apiRequests
}

// inventory joins what the BMCs, the audit log and the API server's metrics say of each phase.
func (w *world) inventory(f figures) ([]sheet, error) {
	var intervals []interval
	for _, p := range f.phases {
		intervals = append(intervals, interval{p.before.at, p.after.at})
	}
	writers := map[string]string{
		w.managerUser().Name: writerManager, bootProviderUser.Name: "boot provider", "admin": "driver",
		"system:kube-controller-manager": "cluster's controllers", "system:apiserver": "API server",
	}
	counts, err := readAudit(w.auditLog(), intervals, writers)
	if err != nil {
		return nil, err
	}
	var sheets []sheet
	for i, p := range f.phases {
		sheets = append(sheets, sheet{
			phase: p, Writes: counts[i],
			Redfish: p.after.redfish.minus(p.before.redfish), Calls: p.after.api.Requests.minus(p.before.api.Requests),
		})
	}
	return sheets, nil
}

// count adds up the manager's writes that want selects.
func (s *sheet) count(want func(write) bool) int {
	n := 0
	for w, count := range s.Writes {
		if w.Writer == writerManager && want(w) {
			n += count
		}
	}
	return n
}

func (s *sheet) writes() int {
	return s.count(func(w write) bool { return w.class() == classWrite })
}

func (s *sheet) events() int {
	return s.count(func(w write) bool { return w.class() == classEvent })
}

func (s *sheet) conflicts() int { return s.count(write.conflict) }

// render writes the sheets in Markdown.
func render(sheets []sheet) string {
	var b strings.Builder
	b.WriteString("# Every request, by phase\n")
	for _, s := range sheets {
		per := s.phase.per
		fmt.Fprintf(&b, "\n## %s: %.1f s, %d %ss\n", s.phase.name, s.phase.seconds(), per.count, per.of)
		b.WriteString("\n### Redfish requests, as the BMCs received them\n\n")
		table(&b, []string{"method", "path", "count", "per " + per.of}, per.count, s.redfishRows())
		b.WriteString("\n### API writes, from the audit log\n\n")
		table(&b, []string{"writer", "verb", "resource", "subresource", "answer", "count", "per " + per.of}, per.count, s.writeRows())
		b.WriteString("\n### All API requests of all users, from the API server's metrics\n\n")
		table(&b, []string{"verb", "resource", "subresource", "code", "count", "per " + per.of}, per.count, s.callRows())
	}
	return b.String()
}

// row is one line of a table: its words and its count.
type row struct {
	words []string
	count int
}

func (s *sheet) redfishRows() []row {
	var rows []row
	for r, n := range s.Redfish {
		rows = append(rows, row{[]string{r.Method, r.Path}, n})
	}
	return rows
}

func (s *sheet) writeRows() []row {
	var rows []row
	for w, n := range s.Writes {
		answer := strings.TrimSpace(strconv.Itoa(w.Code) + " " + w.Reason)
		rows = append(rows, row{[]string{w.Writer, w.Verb, w.Resource, w.Subresource, answer}, n})
	}
	return rows
}

func (s *sheet) callRows() []row {
	var rows []row
	for c, n := range s.Calls {
		rows = append(rows, row{[]string{c.Verb, c.Resource, c.Subresource, c.Code}, n})
	}
	return rows
}

// table writes the rows, the most frequent first, and rows of one count by their words.
func table(b *strings.Builder, head []string, per int, rows []row) {
	if len(rows) == 0 {
		b.WriteString("None.\n")
		return
	}
	slices.SortFunc(rows, func(x, y row) int {
		return cmp.Or(cmp.Compare(y.count, x.count), slices.Compare(x.words, y.words))
	})
	line := func(cells []string) { fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	line(slices.Repeat([]string{"---"}, len(head)))
	total := 0
	for _, r := range rows {
		total += r.count
		line(append(slices.Clone(r.words), strconv.Itoa(r.count), ratio(r.count, per)))
	}
	sum := slices.Repeat([]string{""}, len(head))
	sum[0], sum[len(sum)-2], sum[len(sum)-1] = "all", strconv.Itoa(total), ratio(total, per)
	line(sum)
}

func ratio(count, per int) string {
	if per == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(count)/float64(per), 'f', 2, 64)
}
