// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"context"
	"errors"
	"io"
	"os"
)

// errInterrupted says that somebody has interrupted a command that waited for its input.
var errInterrupted = errors.New("interrupted before the input had ended")

// Read reads a file, or in where path is -, and of either no more than most bytes and one. Somebody who types nothing and a pipe
// that nobody writes to keep a read, or the opening, waiting for ever: it ends with the context, and the program does not wait for it.
func Read(ctx context.Context, path string, in io.Reader, most int64) ([]byte, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := read(path, in, most)
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return nil, errInterrupted
	}
}

func read(path string, in io.Reader, most int64) ([]byte, error) {
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // It was only read.
		in = f
	}
	return io.ReadAll(io.LimitReader(in, most+1))
}
