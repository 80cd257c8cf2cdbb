// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

const (
	// fewestRows is the smallest table worth its frame.
	fewestRows = 3
	// wholeWidth is what the table needs to show everything.
	wholeWidth = 92
)

// stateColors tell the states apart at a glance.
var stateColors = map[string]text.Color{
	"Initial": text.FgHiBlack, "Discovery": text.FgBlue, "Available": text.FgGreen, "Reserved": text.FgCyan,
	"Released": text.FgYellow, "Cleanup": text.FgMagenta, "Parked": text.FgYellow, "Error": text.FgRed,
}

// tableOf shows servers in at most room lines; where they are more, those that changed last, and how many others are
// in which state. It is empty where there is nothing to show, or no room.
func tableOf(rows []row, room, columns int) string {
	if len(rows) == 0 || room < fewestRows {
		return ""
	}
	shown, rest := mostRecent(rows, room)
	t := table.NewWriter()
	t.SetStyle(table.StyleRounded)
	t.Style().Format.Header = text.FormatDefault
	t.Style().Color.Header = text.Colors{text.FgHiBlack}
	t.Style().Color.Border = text.Colors{text.FgHiBlack}
	t.Style().Color.Separator = text.Colors{text.FgHiBlack}
	t.Style().Size.WidthMax = columns - 1
	t.AppendHeader(table.Row{"server", "rack", "state", "power", "claim", "rule"})
	narrow := columns < wholeWidth
	t.SetColumnConfigs([]table.ColumnConfig{
		{Name: "rack", Hidden: narrow}, {Name: "state", WidthMin: 9}, {Name: "power", WidthMin: 11}, {Name: "claim", WidthMin: 8},
		{Name: "rule", WidthMin: 18},
	})
	for _, r := range shown {
		if narrow {
			r.name = strings.TrimSuffix(r.name, "-system-0")
		}
		power := r.power
		if power == "On" {
			power = text.FgHiYellow.Sprint(power)
		}
		t.AppendRow(table.Row{r.name, r.rack, stateColors[r.state].Sprint(r.state), power, r.claim, r.rule})
	}
	if rest != "" {
		t.SetCaption(text.FgHiBlack.Sprint(rest))
	}
	return t.Render()
}

// mostRecent keeps the rows that changed last, in their order, and counts the others by state.
func mostRecent(rows []row, room int) (shown []row, rest string) {
	if len(rows) <= room {
		return rows, ""
	}
	recent := slices.Clone(rows)
	slices.SortStableFunc(recent, func(a, b row) int { return b.at.Compare(a.at) })
	recent, others := recent[:room-1], recent[room-1:]
	slices.SortFunc(recent, func(a, b row) int { return cmp.Compare(a.name, b.name) })
	counts := map[string]int{}
	for _, r := range others {
		counts[r.state]++
	}
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[state], cmp.Or(state, "new")))
	}
	return recent, fmt.Sprintf(" and %d more: %s", len(others), strings.Join(parts, ", "))
}
