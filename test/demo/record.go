// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The recording is a terminal that scrolls: one group of lines, moved up by one animation.
const (
	recordLines      = 30
	recordColumns    = 118
	recordLineHeight = 17
	recordCharWidth  = 8
	recordPadding    = 14
	// How it plays, in seconds: faster than life, but no line so fast that nobody sees it and no wait so long that
	// somebody leaves; the end stands for recordPause.
	recordSpeed  = 2.0
	quickestLine = 0.15
	longestWait  = 1.5
	recordPause  = 6.0
)

var stamp = regexp.MustCompile(`^ *(\d+\.\d)s {2}`)

// animate makes an animated SVG of the plain output of a run.
func animate(output string) []byte {
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	times := lineTimes(lines)
	length := times[len(times)-1] + recordPause
	width, height := recordColumns*recordCharWidth+2*recordPadding, recordLines*recordLineHeight+2*recordPadding
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d"`+
		` role="img" aria-label="a run of make demo">`+"\n", width, height, width, height)
	final := float64(recordLineHeight * (recordLines - len(lines)))
	fmt.Fprintf(&b, "<style>\ntext{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre;fill:#c9d1d9}\n"+
		".d{fill:#8b949e}.h{fill:#fff;font-weight:bold}.g{fill:#7ee787}.q{fill:#e3b341}.m{fill:#79c0ff}\n"+
		"#s{transform:translateY(%gpx);animation:s %.1fs step-end infinite}\n"+
		"@media(prefers-reduced-motion:reduce){#s{animation:none}}\n@keyframes s{\n", final, length)
	for i, at := range times {
		if i+1 < len(times) && times[i+1] == at {
			continue // shown together with the next line
		}
		fmt.Fprintf(&b, "%s%%{transform:translateY(%dpx)}\n", strconv.FormatFloat(100*at/length, 'f', 2, 64), recordLineHeight*(recordLines-1-i))
	}
	fmt.Fprintf(&b, "}\n</style>\n<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#0d1117\"/>\n"+
		"<svg x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"><g id=\"s\" xml:space=\"preserve\">\n",
		recordPadding, recordPadding, width-2*recordPadding, recordLines*recordLineHeight)
	for i, line := range lines {
		if line != "" {
			fmt.Fprintf(&b, "<text y=\"%d\" class=\"%s\">%s</text>\n", i*recordLineHeight+13, class(line), escape(shorten(line)))
		}
	}
	b.WriteString("</g></svg>\n</svg>\n")
	return b.Bytes()
}

// lineTimes is when each line appears, in seconds of the player; an empty line comes with the one before.
func lineTimes(lines []string) []float64 {
	times := make([]float64, len(lines))
	now, before := 0.0, 0.0
	for i, line := range lines {
		wait := 0.0
		if m := stamp.FindStringSubmatch(line); m != nil {
			if at, err := strconv.ParseFloat(m[1], 64); err == nil {
				wait, before = (at-before)/recordSpeed, at
			}
		}
		if line != "" && i > 0 {
			now += min(max(wait, quickestLine), longestWait)
		}
		times[i] = now
	}
	return times
}

// class is the colour of a line.
func class(line string) string {
	rest := stamp.ReplaceAllString(line, "")
	switch {
	case rest == line && line != "" && line[0] != ' ':
		return "h"
	case strings.HasPrefix(rest, "ok "):
		return "g"
	case strings.HasPrefix(rest, "    | "):
		return "q"
	case strings.Contains(rest, " -> "):
		return "m"
	}
	return "d"
}

func shorten(line string) string {
	if runes := []rune(line); len(runes) > recordColumns {
		return string(runes[:recordColumns-1]) + "…"
	}
	return line
}

func escape(text string) string {
	var b strings.Builder
	// A strings.Builder takes everything.
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}
