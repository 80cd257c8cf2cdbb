// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// view is what somebody who looks on sees. Its methods may be called from any goroutine.
type view interface {
	// open shows what will come.
	open(chapters []string, servers int, logs string)
	// chapter begins the chapter with that index.
	chapter(index int)
	// step begins step n of several; done ends it.
	step(name string, n, of int)
	done(name string, took time.Duration)
	// progress tells how far the step is.
	progress(now sight)
	// say tells what somebody said, verbatim.
	say(text string)
	// moved tells of one move of one server; row is how the server stands.
	moved(m move)
	row(r row)
	// close ends the view, with the failure that ended the story, if any; what comes later is not shown.
	close(failure error)
}

// move is a server's way from one state to another.
type move struct{ server, from, to, rule string }

// row is a line of the table of servers.
type row struct {
	name, rack, state, power, claim, rule string
	// at is when the row last changed.
	at time.Time
}

// serverChanged tells the view of a server's change.
func (w *world) serverChanged(old, now *v1alpha1.Server) {
	r := rowOf(now)
	if old == nil || rowOf(old) != r {
		w.view.row(r)
	}
	if now.Status.State == "" || old != nil && old.Status.State == now.Status.State {
		return
	}
	from := ""
	if old != nil {
		from = string(old.Status.State)
	}
	w.view.moved(move{server: now.Name, from: from, to: string(now.Status.State), rule: r.rule})
}

func rowOf(s *v1alpha1.Server) row {
	r := row{name: s.Name, rack: s.Labels[rackLabel], state: string(s.Status.State), power: string(s.Status.PowerState)}
	if ref := s.Spec.ServerClaimRef; ref != nil {
		r.claim = ref.Name
	}
	if l := s.Status.Lifecycle; l != nil {
		r.rule = l.Rule
	}
	return r
}

// isTerminal says whether somebody looks at the file, rather than a program reading it.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil && os.Getenv("TERM") != "dumb"
}

// terminalSize is in columns and lines; a guess where it cannot be had.
func terminalSize(f *os.File) (columns, lines int) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 || size.Row == 0 {
		return 100, 40
	}
	return int(size.Col), int(size.Row)
}

// every calls f until ctx ends, and once more then.
func every(ctx context.Context, pause time.Duration, f func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			f()
			return
		case <-tick.C:
			f()
		}
	}
}

// wrap breaks a text into lines of at most width columns, at spaces where there are any.
func wrap(text string, width int) []string {
	var lines []string
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		line := ""
		for _, word := range strings.Fields(paragraph) {
			switch {
			case line == "":
				line = word
			case len(line)+1+len(word) <= width:
				line += " " + word
			default:
				lines = append(lines, line)
				line = word
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// sortedRows are rows in the order of their names.
func sortedRows(rows map[string]row) []row {
	sorted := make([]row, 0, len(rows))
	for _, r := range rows {
		sorted = append(sorted, r)
	}
	slices.SortFunc(sorted, func(a, b row) int { return cmp.Compare(a.name, b.name) })
	return sorted
}
