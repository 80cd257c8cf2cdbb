// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// costData is the output of the benchmarks that cost.svg shows; `make figures` writes it.
const costData = "cost.txt"

// chart is one diagram with logarithmic axes: the number of servers from left to right, and what it costs upwards.
type chart struct {
	title string
	// low and high are the powers of ten at the ends of the axis.
	low, high int
	lines     []line
}

// line is a figure of a benchmark, in a unit of the chart.
type line struct {
	label, colour   string
	benchmark, unit string
	// per is how many of the benchmark's units are one of the chart's.
	per float64
	// goal is what it is to be at 10,000 servers; 0 for none.
	goal float64
}

func costCharts() []chart {
	return []chart{
		{title: "processor time of a claim, in ms", low: -2, high: 1, lines: []line{
			{"admission, nothing fits (p99)", "#c2410c", "Admission/servers=[0-9]+/claim=placement", "p99-cpu-ms", 1, 10},
			{"choosing among free servers", "#1d4ed8", "Select/servers=[0-9]+", "cpu-ns/op", 1e6, 1},
			{"binding, one of many at once", "#15803d", "Pass/claims=[0-9]+/servers=[0-9]+/policy=default/kinds=20", "cpu-µs/claim", 1e3, 0},
		}},
		{title: "memory of caches and index, in MiB", low: 0, high: 3, lines: []line{
			{"servers, inventories, index", "#7c3aed", "Memory/servers=[0-9]+", "MiB", 1, 400},
		}},
	}
}

// The frame of a diagram in pixels.
const (
	chartWidth, chartHeight     = 300.0, 220.0
	marginLeft, marginTop       = 50.0, 34.0
	legendLine, chartStep       = 18.0, 390.0
	leastServers, mostServers   = 2, 4 // powers of ten
	pictureWidth, pictureHeight = 840.0, 350.0
)

// costPicture draws how cost grows with the fleet.
func costPicture(root string) (string, error) {
	output, err := os.ReadFile(filepath.Join(root, "docs", costData))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" font-family=\"sans-serif\" font-size=\"12\">\n",
		pictureWidth, pictureHeight)
	b.WriteString("<!-- Generated from " + costData + " by go generate ./docs. Do not edit. -->\n")
	fmt.Fprintf(&b, "<rect width=\"%g\" height=\"%g\" fill=\"#ffffff\"/>\n", pictureWidth, pictureHeight)
	for i, c := range costCharts() {
		fmt.Fprintf(&b, "<g transform=\"translate(%g %g)\">\n", marginLeft+float64(i)*chartStep, marginTop)
		if err := c.draw(&b, string(output)); err != nil {
			return "", err
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String(), nil
}

// figure writes a number with two digits, or all digits before the point.
func figure(value float64) string {
	if value >= 10 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(value, 'g', 2, 64)
}

func (c chart) x(servers float64) float64 {
	return (math.Log10(servers) - leastServers) / (mostServers - leastServers) * chartWidth
}

func (c chart) y(value float64) float64 {
	return chartHeight - (math.Log10(value)-float64(c.low))/float64(c.high-c.low)*chartHeight
}

func (c chart) draw(b *strings.Builder, output string) error {
	text := func(x, y float64, more, words string) {
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\" fill=\"#374151\"%s>%s</text>\n", x, y, more, html.EscapeString(words))
	}
	stroke := func(x1, y1, x2, y2 float64, more string) {
		fmt.Fprintf(b, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"%s/>\n", x1, y1, x2, y2, more)
	}
	text(0, -14, ` font-weight="bold"`, c.title)
	for power := leastServers; power <= mostServers; power++ {
		x := c.x(math.Pow10(power))
		stroke(x, 0, x, chartHeight, ` stroke="#e5e7eb"`)
		text(x, chartHeight+16, ` text-anchor="middle"`, fmt.Sprintf("%d servers", int(math.Pow10(power))))
	}
	for power := c.low; power <= c.high; power++ {
		y := c.y(math.Pow10(power))
		stroke(0, y, chartWidth, y, ` stroke="#e5e7eb"`)
		text(-6, y+4, ` text-anchor="end"`, strconv.FormatFloat(math.Pow10(power), 'g', -1, 64))
	}
	for i, l := range c.lines {
		all, err := points(output, l.benchmark, l.unit)
		if err != nil {
			return fmt.Errorf("%s: %w", costData, err)
		}
		var path []string
		for _, p := range all {
			value := p.value / l.per
			if value < math.Pow10(c.low) || value > math.Pow10(c.high) {
				return fmt.Errorf("%s: %s at %g servers is %g, which the diagram has no room for", costData, l.label, p.servers, value)
			}
			path = append(path, fmt.Sprintf("%.1f,%.1f", c.x(p.servers), c.y(value)))
			fmt.Fprintf(b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", c.x(p.servers), c.y(value), l.colour)
		}
		fmt.Fprintf(b, "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", strings.Join(path, " "), l.colour)
		words := fmt.Sprintf("%s: %s at %d", l.label, figure(all[len(all)-1].value/l.per), int(all[len(all)-1].servers))
		if l.goal > 0 {
			stroke(0, c.y(l.goal), chartWidth, c.y(l.goal), fmt.Sprintf(" stroke=%q stroke-dasharray=\"4 4\"", l.colour))
			words += fmt.Sprintf("; goal %g", l.goal)
		}
		y := chartHeight + 42 + float64(i)*legendLine
		stroke(0, y-4, 18, y-4, fmt.Sprintf(" stroke=%q stroke-width=\"2\"", l.colour))
		text(24, y, "", words)
	}
	return nil
}
