// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// plainFlush gathers moves of the same kind, so that a fleet on its way is a few lines.
	plainFlush = 2 * time.Second
	// plainPatience is how long a step may be silent.
	plainPatience = 15 * time.Second
	// plainWidth is where what was said verbatim is broken.
	plainWidth = 108
)

// plainView prints one line for each event: no colours, nothing that moves.
type plainView struct {
	began  time.Time
	end    context.CancelFunc
	ended  chan struct{}
	titles []string

	mu      sync.Mutex
	out     io.Writer
	moves   []move
	current string
	last    sight
	spoke   time.Time
}

func newPlainView(out io.Writer) *plainView {
	ctx, cancel := context.WithCancel(context.Background())
	v := &plainView{began: time.Now(), end: cancel, ended: make(chan struct{}), out: out, spoke: time.Now()}
	go func() {
		defer close(v.ended)
		every(ctx, plainFlush, v.tick)
	}()
	return v
}

// line prints one line; the caller holds the lock.
func (v *plainView) line(format string, args ...any) {
	v.spoke = time.Now()
	// Nobody is left to be told when the output is closed.
	_, _ = fmt.Fprintf(v.out, "%6.1fs  %s\n", time.Since(v.began).Seconds(), fmt.Sprintf(format, args...))
}

func (v *plainView) open(chapters []string, servers int, logs string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.titles = chapters
	_, _ = fmt.Fprintf(v.out, "metalaw demo: %d servers in two racks\nlogs: %s\n", servers, logs)
}

func (v *plainView) chapter(index int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, _ = fmt.Fprintf(v.out, "\n%d/%d %s\n", index+1, len(v.titles), v.titles[index])
}

func (v *plainView) step(name string, _, _ int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.current, v.last, v.spoke = name, sight{}, time.Now()
}

func (v *plainView) done(name string, took time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.flush()
	v.current = ""
	v.line("ok  %s (%s)", name, seconds(took))
}

func (v *plainView) progress(now sight) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = now
}

func (v *plainView) say(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, line := range wrap(text, plainWidth) {
		v.line("    | %s", line)
	}
}

func (v *plainView) moved(m move) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.moves = append(v.moves, m)
}

func (v *plainView) row(row) {}

func (v *plainView) close(error) {
	v.end()
	<-v.ended
}

func (v *plainView) tick() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.flush()
	if v.current != "" && time.Since(v.spoke) > plainPatience {
		v.line("..  %s: %s", v.current, v.last.seen)
	}
}

// flush prints the moves that came in since, those of one kind together; the caller holds the lock.
func (v *plainView) flush() {
	type kind struct{ from, to, rule string }
	var order []kind
	servers := map[kind][]string{}
	for _, m := range v.moves {
		k := kind{m.from, m.to, m.rule}
		if !slices.Contains(order, k) {
			order = append(order, k)
		}
		servers[k] = append(servers[k], m.server)
	}
	v.moves = nil
	for _, k := range order {
		who := servers[k][0]
		if n := len(servers[k]); n > 1 {
			who = fmt.Sprintf("%d servers", n)
		}
		way := strings.TrimSpace(k.from + " -> " + k.to)
		v.line("    %-24s %-26s %s", who, way, k.rule)
	}
}
