// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"time"
)

// progress tells whoever waits how far things are.
type progress struct {
	out   io.Writer
	began time.Time
}

func newProgress(out io.Writer) *progress { return &progress{out: out, began: time.Now()} }

func (p *progress) say(format string, args ...any) {
	// Nobody is told where this fails.
	_, _ = fmt.Fprintf(p.out, "%7.1fs  %s\n", time.Since(p.began).Seconds(), fmt.Sprintf(format, args...))
}
