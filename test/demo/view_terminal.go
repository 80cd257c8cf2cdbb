// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/jedib0t/go-pretty/v6/text"
)

// refresh is how often the screen is drawn.
const refresh = 150 * time.Millisecond

// terminalView shows a bar for each chapter and a table of servers at the bottom of the screen; what has happened
// scrolls up above them.
type terminalView struct {
	out     *os.File
	writer  progress.Writer
	end     context.CancelFunc
	ended   chan struct{}
	drawing sync.WaitGroup

	mu       sync.Mutex
	trackers []*progress.Tracker
	titles   []string
	index    int
	// begun and share are where the step's part of the bar begins, and how wide it is, in thousandths.
	begun, share int
	rows         map[string]row
	current      string
	last         sight
}

func newTerminalView(out *os.File) *terminalView {
	if os.Getenv("NO_COLOR") != "" {
		text.DisableColors()
	}
	ctx, cancel := context.WithCancel(context.Background())
	v := &terminalView{out: out, writer: progress.NewWriter(), end: cancel, ended: make(chan struct{}), rows: map[string]row{}, index: -1}
	style := progress.StyleBlocks
	style.Colors = progress.StyleColors{
		Message: text.Colors{text.FgWhite}, Percent: text.Colors{text.FgHiBlack}, Time: text.Colors{text.FgHiBlack},
		Tracker: text.Colors{text.FgCyan}, Value: text.Colors{text.FgHiBlack}, Error: text.Colors{text.FgRed},
	}
	style.Visibility.ETA, style.Visibility.Value, style.Visibility.Speed, style.Visibility.TrackerOverall = false, false, false, false
	style.Options.KeepTrackersTogether = true
	style.Options.TimeInProgressPrecision, style.Options.TimeDonePrecision = time.Second, 100*time.Millisecond
	style.Options.DoneString, style.Options.ErrorString, style.Options.PercentFormat = "done", "failed", "%3.0f%%"
	style.Options.Separator = " "
	v.writer.SetStyle(style)
	v.writer.SetOutputWriter(out)
	v.writer.SetUpdateFrequency(refresh)
	v.writer.SetTrackerPosition(progress.PositionRight)
	v.writer.SetMessageLength(14)
	v.writer.SetSortBy(progress.SortByIndex)
	go func() {
		defer close(v.ended)
		every(ctx, refresh, v.draw)
	}()
	return v
}

func (v *terminalView) open(chapters []string, servers int, logs string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.titles = chapters
	for i, title := range chapters {
		tracker := &progress.Tracker{Message: fmt.Sprintf("%d %s", i+1, title), Total: 1000, DeferStart: true, Index: uint64(i + 1)}
		v.trackers = append(v.trackers, tracker)
		v.writer.AppendTracker(tracker)
	}
	v.writer.Log(text.Bold.Sprintf("metalaw demo: %d servers in two racks", servers))
	v.writer.Log(text.FgHiBlack.Sprint("logs: " + logs))
	v.drawing.Go(v.writer.Render)
}

func (v *terminalView) chapter(index int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.index >= 0 {
		v.trackers[v.index].MarkAsDone()
	}
	v.index = index
	v.trackers[index].SetValue(1)
	v.writer.Log("")
	v.writer.Log(text.Bold.Sprintf("%d/%d %s", index+1, len(v.titles), v.titles[index]))
}

func (v *terminalView) step(name string, n, of int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.current, v.last, v.begun, v.share = name, sight{}, n*1000/of, 1000/of
	v.trackers[v.index].SetValue(int64(max(1, v.begun)))
}

func (v *terminalView) done(name string, took time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.current = ""
	columns, _ := terminalSize(v.out)
	lines := wrap(name, columns-12)
	for _, line := range lines[:len(lines)-1] {
		v.writer.Log("    " + line)
	}
	v.writer.Log(text.FgGreen.Sprint("  ✓ ") + lines[len(lines)-1] + text.FgHiBlack.Sprint("  "+seconds(took)))
}

func (v *terminalView) progress(now sight) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = now
	if now.want > 0 {
		v.trackers[v.index].SetValue(int64(max(1, v.begun+v.share*now.have/now.want)))
	}
}

func (v *terminalView) say(said string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	columns, _ := terminalSize(v.out)
	for _, line := range wrap(said, columns-8) {
		v.writer.Log(text.FgHiBlack.Sprint("    │ ") + text.FgYellow.Sprint(line))
	}
}

func (v *terminalView) moved(move) {}

func (v *terminalView) row(r row) {
	v.mu.Lock()
	defer v.mu.Unlock()
	r.at = time.Now()
	v.rows[r.name] = r
}

// close leaves the finished bars on the screen.
func (v *terminalView) close(failure error) {
	v.end()
	<-v.ended
	v.mu.Lock()
	v.current = ""
	switch {
	case v.index < 0:
	case failure == nil:
		v.trackers[v.index].MarkAsDone()
	default:
		v.trackers[v.index].MarkAsErrored()
	}
	v.writer.SetPinnedMessages()
	v.mu.Unlock()
	// One more drawing shows what was said last.
	time.Sleep(2 * refresh)
	v.writer.Stop()
	v.drawing.Wait()
}

// draw puts what is under way, and the table, below the bars.
func (v *terminalView) draw() {
	v.mu.Lock()
	defer v.mu.Unlock()
	columns, lines := terminalSize(v.out)
	var pinned []string
	if v.current != "" {
		now := v.current
		if v.last.want > 0 {
			now += fmt.Sprintf(" (%d/%d)", v.last.have, v.last.want)
		}
		pinned = append(pinned, text.FgCyan.Sprint("▸ ")+text.Trim(now, columns-3))
	}
	// The bars, the line above and the frame of the table need room, and the last line of the screen stays free.
	room := lines - len(v.trackers) - len(pinned) - 6
	if table := tableOf(sortedRows(v.rows), room, columns); table != "" {
		pinned = append(pinned, strings.Split(table, "\n")...)
	}
	v.writer.SetPinnedMessages(pinned...)
}
