// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
)

// show tells the whole story in a world of its own, and leaves nothing behind.
func show(ctx context.Context, o options) (err error) {
	w, err := newWorld(o)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer func() { err = w.close(err) }()

	var recorded bytes.Buffer
	var out io.Writer = os.Stdout
	var seen view
	switch {
	case o.record != "":
		out = io.MultiWriter(os.Stdout, &recorded)
		seen = newPlainView(out)
	case isTerminal(os.Stdout):
		seen = newTerminalView(os.Stdout)
	default:
		seen = newPlainView(out)
	}
	teller := &teller{world: w, view: seen, chapters: story(w)}
	w.view = seen
	w.announcer.through(seen.say)
	seen.open(teller.titles(), o.servers, w.logDir())
	err = teller.tell(ctx)
	w.announcer.through(func(text string) { tell(out, text+"\n") })
	seen.close(err)
	if err != nil {
		if o.keep && ctx.Err() == nil {
			tell(os.Stderr, err.Error()+"\n\nstays up to be looked at; Ctrl-C ends it\n")
			<-ctx.Done()
		}
		return err
	}
	tell(out, teller.summary())
	if o.record != "" {
		if err := os.WriteFile(o.record, animate(recorded.String()), 0o644); err != nil {
			return fmt.Errorf("demo: --record: %w", err)
		}
	}
	if !o.once {
		tell(out, "\nstays up; Ctrl-C ends it\n")
		return w.stayUp(ctx)
	}
	return nil
}

// tell prints. Nobody is left to be told where that fails.
func tell(out io.Writer, text string) { _, _ = io.WriteString(out, text) }
