// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// userManager is what the measured manager is called in counts.
const userManager = "manager"

// sheet is every request of one phase.
type sheet struct {
	phase phase
	// Redfish is what the BMCs received, Audited what the audit log holds, Calls everything that the API server answered.
	Redfish requests
	Audited map[audited]int
	Calls   apiRequests
}

// inventory joins what the BMCs, the audit log and the API server's metrics say of each phase.
func (w *world) inventory(f figures) ([]sheet, error) {
	var intervals []interval
	for _, p := range f.phases {
		intervals = append(intervals, interval{p.before.at, p.after.at})
	}
	users := map[string]string{
		w.managerUser().Name: userManager, bootProviderUser.Name: "boot provider", "admin": "driver",
		"system:kube-controller-manager": "cluster's controllers", "system:apiserver": "API server",
	}
	counts, err := readAudit(w.auditLog(), intervals, users)
	if err != nil {
		return nil, err
	}
	var sheets []sheet
	for i, p := range f.phases {
		sheets = append(sheets, sheet{
			phase: p, Audited: counts[i],
			Redfish: p.after.redfish.minus(p.before.redfish), Calls: p.after.api.Requests.minus(p.before.api.Requests),
		})
	}
	return sheets, nil
}

// count adds up the manager's requests that want selects.
func (s *sheet) count(want func(audited) bool) int {
	n := 0
	for a, count := range s.Audited {
		if a.User == userManager && want(a) {
			n += count
		}
	}
	return n
}

func (s *sheet) of(c class) int { return s.count(func(a audited) bool { return a.class() == c }) }

func (s *sheet) absent() int { return s.count(audited.absent) }

func (s *sheet) conflicts() int { return s.count(audited.conflict) }

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
		head := []string{"user", "verb", "resource", "subresource", "answer", "count", "per " + per.of}
		table(&b, head, per.count, s.auditRows(func(a audited) bool { return !a.read() }))
		b.WriteString("\n### API reads of the manager, from the audit log\n\n")
		table(&b, head, per.count, s.auditRows(audited.read))
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

func (s *sheet) auditRows(want func(audited) bool) []row {
	var rows []row
	for a, n := range s.Audited {
		if want(a) {
			answer := strings.TrimSpace(strconv.Itoa(a.Code) + " " + a.Reason)
			rows = append(rows, row{[]string{a.User, a.Verb, a.Resource, a.Subresource, answer}, n})
		}
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
