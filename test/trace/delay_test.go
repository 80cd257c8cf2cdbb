// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bufio"
	"io"
	"time"
)

// watchDelay is how much later than in truth the manager's watches tell of a change. It tells a write that follows another in
// one reconcile from one of the next, which has to see the first in the cache.
const watchDelay = 30 * time.Millisecond

// delayed hands a stream of lines on later, each line after seen was told of it.
func delayed(from io.ReadCloser, seen func(line []byte)) io.ReadCloser {
	type arrival struct {
		line []byte
		at   time.Time
		err  error
	}
	arrivals := make(chan arrival, 10_000)
	go func() {
		defer close(arrivals)
		lines := bufio.NewReader(from)
		for {
			line, err := lines.ReadBytes('\n')
			arrivals <- arrival{line, time.Now(), err}
			if err != nil {
				return
			}
		}
	}()
	out, in := io.Pipe()
	go func() {
		for a := range arrivals {
			if len(a.line) > 0 {
				time.Sleep(time.Until(a.at.Add(watchDelay)))
				seen(a.line)
				_, _ = in.Write(a.line) // an error says that nobody reads any more; the rest is drained
			}
			if a.err != nil {
				_ = in.CloseWithError(a.err)
			}
		}
	}()
	return stream{out, from}
}

// stream ends both ends of a delayed stream.
type stream struct {
	*io.PipeReader
	from io.Closer
}

// Close implements io.Closer.
func (s stream) Close() error {
	_ = s.PipeReader.Close() // it never fails
	return s.from.Close()
}
