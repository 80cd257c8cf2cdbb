// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

// The drawing needs no program that lays it out: the states stand below each other in the order in which the author wrote
// them; ways down leave and arrive on their right, ways back up on their left. Each arrow has a port of its own at both
// ends, where its rules are written, and a lane of its own beside the labels. All lengths are pixels.
const (
	boxWidth   = 180
	boxLeast   = 34
	lineHeight = 16
	gap        = 26
	labelWidth = 150
	laneWidth  = 12
	margin     = 20
)

// box is a state with its place.
type box struct {
	node
	row, y, height int
}

// line is an arrow with its places.
type line struct {
	arrow
	from, to   *box
	down       bool
	start, end int // y of its ports
	lane       int
}

// drawing is a lifecycle laid out.
type drawing struct {
	boxes       []*box
	lines       []*line
	left, right int // number of lanes
	height      int
}

// SVG is a drawing of the states' own exits, with the interrupts as words below. It carries its own colours for light and
// dark.
func SVG(l *lifecycle.Lifecycle, counts Counts) string {
	g := newGraph(l, counts)
	d := layOut(g)
	x := margin + d.left*laneWidth + labelWidth
	width := x + boxWidth + labelWidth + d.right*laneWidth + margin
	height := d.height + margin + lineHeight*len(g.interrupts)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="lifecycle">`+"\n%s",
		width, height, width, height, style)
	initial := d.find(g.initial)
	fmt.Fprintf(&b, `<path d="M%d %d v%d" marker-end="url(#tip)"/>`+"\n", x+boxWidth/2, initial.y-gap+4, gap-4)
	for _, n := range d.lines {
		n.draw(&b, x)
	}
	for _, n := range d.boxes {
		n.draw(&b, counts, x)
	}
	for i, n := range g.interrupts {
		fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", margin, d.height+lineHeight*(i+1),
			escaped(fmt.Sprintf("%s: to %s from %s", n.rule, n.to, strings.Join(n.from, ", "))))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

const style = `<style>
  svg { background: #fff; font: 12px sans-serif }
  text { fill: #24292f } .name { font-weight: bold; text-anchor: middle } .back { text-anchor: end }
  rect { fill: #f6f8fa; stroke: #6e7781 } .rest { fill: #ddf4ff }
  path { fill: none; stroke: #6e7781 } #tip path { fill: #6e7781 }
  @media (prefers-color-scheme: dark) {
    svg { background: #0d1117 } text { fill: #e6edf3 }
    rect { fill: #21262d; stroke: #8b949e } .rest { fill: #0c2d6b }
    path { stroke: #8b949e } #tip path { fill: #8b949e } }
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>
`

func layOut(g graph) *drawing {
	d := &drawing{}
	for i, n := range g.states {
		d.boxes = append(d.boxes, &box{node: n, row: i})
	}
	for _, a := range g.arrows {
		n := &line{arrow: a, from: d.find(a.from), to: d.find(a.to)}
		n.down = n.from.row <= n.to.row
		d.lines = append(d.lines, n)
	}
	y := gap + margin
	for _, b := range d.boxes {
		b.y = y
		b.height = max(boxLeast, d.ports(b, true), d.ports(b, false))
		y += b.height + gap
	}
	d.height = y
	d.left, d.right = d.lanes(false), d.lanes(true)
	return d
}

// ports gives every line that meets a side of a box its place there, what arrives before what leaves, and returns the
// height that they take.
func (d *drawing) ports(b *box, down bool) int {
	y := b.y + lineHeight/2
	for _, n := range d.lines {
		if n.down == down && n.to == b {
			n.end = y + lineHeight/2
			y += lineHeight
		}
	}
	for _, n := range d.lines {
		if n.down == down && n.from == b {
			n.start = y + lineHeight/2
			y += lineHeight * len(n.rules)
		}
	}
	return y - b.y + lineHeight/2
}

// lanes gives each line of a side the innermost lane that is free over its whole length, the shortest first, and returns
// the number of lanes.
func (d *drawing) lanes(down bool) int {
	var side []*line
	for _, n := range d.lines {
		if n.down == down {
			side = append(side, n)
		}
	}
	slices.SortStableFunc(side, func(a, b *line) int { return a.length() - b.length() })
	count := 0
	for i, n := range side {
		for slices.ContainsFunc(side[:i], n.meets) {
			n.lane++
		}
		count = max(count, n.lane+1)
	}
	return count
}

func (n *line) length() int { return max(n.start, n.end) - min(n.start, n.end) }

// meets says that two lines take the same place beside the boxes.
func (n *line) meets(o *line) bool {
	return n.lane == o.lane && min(n.start, n.end) <= max(o.start, o.end) && min(o.start, o.end) <= max(n.start, n.end)
}

func (d *drawing) find(s engine.State) *box {
	return d.boxes[slices.IndexFunc(d.boxes, func(b *box) bool { return b.name == s })]
}

func (n *line) draw(b *strings.Builder, x int) {
	edge, side, class := x+boxWidth, 1, ""
	if !n.down {
		edge, side, class = x, -1, ` class="back"`
	}
	out := edge + side*(labelWidth+laneWidth*(n.lane+1)-laneWidth/2)
	fmt.Fprintf(b, `<path d="M%d %d H%d V%d H%d" marker-end="url(#tip)"><title>%s</title></path>`+"\n",
		edge, n.start, out, n.end, edge, escaped(fmt.Sprintf("%s to %s: %s", n.arrow.from, n.arrow.to, n.label())))
	for i, rule := range n.rules {
		fmt.Fprintf(b, `<text x="%d" y="%d"%s>%s</text>`+"\n", edge+side*5, n.start-4+lineHeight*i, class, escaped(rule))
	}
}

func (n *box) draw(b *strings.Builder, counts Counts, x int) {
	class := ""
	if n.stable {
		class = ` class="rest"`
	}
	fmt.Fprintf(b, `<g><title>%s</title><rect x="%d" y="%d" width="%d" height="%d" rx="8"%s/>`+
		`<text class="name" x="%d" y="%d">%s</text></g>`+"\n",
		escaped(n.means), x, n.y, boxWidth, n.height, class, x+boxWidth/2, n.y+n.height/2+4, escaped(n.words(counts)))
}

func escaped(text string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(text)); err != nil {
		return "" // a strings.Builder takes everything
	}
	return b.String()
}
