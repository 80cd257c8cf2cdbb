// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// loadPanel is one small diagram: the size of the fleet from left to right, and a cost upwards.
type loadPanel struct {
	title string
	lines []loadFigure
}

// loadWork is what the lines of a panel stand for, in the order of the colours.
var loadWork = []string{"a server onboarded", "a claim until its machine is on", "a release with a wipe"}

func loadPanels() []loadPanel {
	each := func(title, key string, times float64) loadPanel {
		return loadPanel{title, []loadFigure{
			{key: "onboard." + key, per: "servers", times: times},
			{key: "claim." + key, per: "claims", times: times},
			{key: "release." + key, per: "claims", times: times},
		}}
	}
	return []loadPanel{
		each("API writes, without Events", "api_writes", 1),
		each("uncached API reads", "api_reads", 1),
		each("Redfish requests", "redfish_requests", 1),
		each("CPU of the manager, ms", "manager_cpu_seconds", 1000),
		each("CPU of the API server, ms", "apiserver_cpu_seconds", 1000),
		{"peak memory of the manager, MiB", []loadFigure{{key: "manager_peak_rss_mib"}}},
	}
}

// The frame of the picture in pixels.
const (
	panelWidth, panelHeight = 170.0, 120.0
	panelStepX, panelStepY  = 260.0, 186.0
	panelLeft, panelTop     = 44.0, 76.0
	panelsInRow             = 3
	labelHeight             = 12.0
)

// loadStyle has the colours of both modes; c0 to c2 are those of loadWork, c3 is for a panel of one line.
const loadStyle = `<style>
.ground { fill: #fcfcfb } .ink { fill: #1f1f1d; stroke: #fcfcfb } .soft { fill: #5f5e5a } .grid { stroke: #e1e0d9 }
.c0 { color: #2a78d6 } .c1 { color: #c2541f } .c2 { color: #16895f } .c3 { color: #5f5e5a }
@media (prefers-color-scheme: dark) {
.ground { fill: #1a1a19 } .ink { fill: #f2f1ec; stroke: #1a1a19 } .soft { fill: #b3b2ab } .grid { stroke: #3a3a37 }
.c0 { color: #5b9ff0 } .c1 { color: #e8804f } .c2 { color: #3dbb8c } .c3 { color: #b3b2ab }
}
polyline { fill: none; stroke: currentColor; stroke-width: 2 } circle { fill: currentColor }
.ink { stroke-width: 3; stroke-linejoin: round; paint-order: stroke }
</style>
`

// loadPicture draws what each piece of work costs against the size of the fleet.
func loadPicture(root string) (string, error) {
	results, err := loadResults(root)
	if err != nil {
		return "", err
	}
	return drawLoad(results), nil
}

func drawLoad(results []loadResult) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" font-family=\"sans-serif\" font-size=\"11\">\n",
		panelsInRow*panelStepX, panelTop+2*panelStepY-20)
	b.WriteString("<!-- Generated from load/*.json by go generate ./docs. Do not edit. -->\n" + loadStyle)
	b.WriteString("<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n")
	x := 16.0
	for i, work := range loadWork {
		fmt.Fprintf(&b, "<circle class=\"c%d\" cx=\"%g\" cy=\"20\" r=\"4\"/><text class=\"ink\" x=\"%g\" y=\"24\">%s</text>\n", i, x, x+10, work)
		x += 40 + 5.6*float64(len(work))
	}
	fmt.Fprintf(&b, "<text class=\"soft\" text-anchor=\"end\" x=\"%g\" y=\"24\">across: servers, logarithmic</text>\n", panelsInRow*panelStepX-16)
	for i, panel := range loadPanels() {
		column, row := float64(i%panelsInRow), float64(i/panelsInRow)
		fmt.Fprintf(&b, "<g transform=\"translate(%g %g)\">\n", panelLeft+column*panelStepX, panelTop+row*panelStepY)
		panel.draw(&b, results)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (p loadPanel) draw(b *strings.Builder, results []loadResult) {
	text := func(class, anchor string, x, y float64, words string) {
		fmt.Fprintf(b, "<text class=%q text-anchor=%q x=\"%.1f\" y=\"%.1f\">%s</text>\n", class, anchor, x, y, words)
	}
	text("ink", "start", 4-panelLeft, -16, p.title)
	top := p.top(results)
	for _, share := range []float64{0, 0.5, 1} {
		y := panelHeight * (1 - share)
		fmt.Fprintf(b, "<line class=\"grid\" x1=\"0\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\"/>\n", panelWidth, y, y)
		text("soft", "end", -6, y+4, strconv.FormatFloat(top*share, 'f', -1, 64))
	}
	for _, r := range results {
		text("soft", "middle", across(r, results), panelHeight+16, grouped(r.servers))
	}
	var ends []mark
	for i, line := range p.lines {
		if len(p.lines) == 1 {
			i = len(loadWork)
		}
		var points []string
		var last mark
		flush := func() {
			if len(points) > 1 {
				fmt.Fprintf(b, "<polyline class=\"c%d\" points=\"%s\"/>\n", i, strings.Join(points, " "))
			}
			points = nil
		}
		for _, r := range results {
			value, found := line.of(r)
			if !found {
				flush()
				continue
			}
			last = mark{across(r, results), panelHeight * (1 - value/top), shortly(value)}
			points = append(points, fmt.Sprintf("%.1f,%.1f", last.x, last.y))
			fmt.Fprintf(b, "<circle class=\"c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", i, last.x, last.y)
		}
		flush()
		if last.words != "" {
			ends = append(ends, last)
		}
	}
	for _, m := range spread(ends) {
		text("ink", "start", m.x+7, m.y+4, m.words)
	}
}

// mark is the figure at the end of a line.
type mark struct {
	x, y  float64
	words string
}

// spread moves marks up until none lies upon another.
func spread(marks []mark) []mark {
	slices.SortStableFunc(marks, func(a, b mark) int { return cmp.Or(cmp.Compare(a.x, b.x), cmp.Compare(b.y, a.y)) })
	for i := 1; i < len(marks); i++ {
		if marks[i].x == marks[i-1].x {
			marks[i].y = min(marks[i].y, marks[i-1].y-labelHeight)
		}
	}
	return marks
}

// top is the end of the axis: the least of 1, 2, 3, 4, 5, 6 and 8 times a power of ten that all values fit under.
func (p loadPanel) top(results []loadResult) float64 {
	most := 1.0
	for _, line := range p.lines {
		for _, r := range results {
			if value, found := line.of(r); found {
				most = max(most, value)
			}
		}
	}
	unit := math.Pow10(int(math.Floor(math.Log10(most))))
	for _, step := range []float64{1, 2, 3, 4, 5, 6, 8} {
		if most <= step*unit {
			return step * unit
		}
	}
	return 10 * unit
}

// across is where a fleet lies on the logarithmic axis; a single one lies in the middle.
func across(r loadResult, all []loadResult) float64 {
	least, most := float64(all[0].servers), float64(all[len(all)-1].servers)
	if least == most {
		return panelWidth / 2
	}
	return math.Log(float64(r.servers)/least) / math.Log(most/least) * panelWidth
}

// shortly is a value with as many digits as a reader needs.
func shortly(value float64) string {
	if value < 100 {
		return strconv.FormatFloat(value, 'f', 1, 64)
	}
	return strconv.FormatFloat(value, 'f', 0, 64)
}
