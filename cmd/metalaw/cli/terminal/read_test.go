// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestOneInterruptEndsAReadWithoutInput(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // whoever opens it to write lets the reader go
		if f, err := os.OpenFile(fifo, os.O_RDWR, 0); err == nil {
			f.Close() //nolint:errcheck // Nothing was written.
		}
	})
	silent, typist := io.Pipe()
	t.Cleanup(func() { typist.Close() }) //nolint:errcheck // It has no error.
	for name, path := range map[string]string{"of standard input": "-", "of a pipe that nobody writes to": fifo} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			interrupt()
			if text, err := Read(ctx, path, silent, 10); err == nil || err.Error() != "interrupted before the input had ended" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

func TestReadReadsAFileOrStandardInputAndOneByteTooMany(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("of a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		most int64
		want string
	}{{file, 9, "of a file"}, {file, 3, "of a"}, {"-", 9, "typed"}, {"-", 2, "typ"}} {
		if text, err := Read(t.Context(), c.path, strings.NewReader("typed"), c.most); err != nil || string(text) != c.want {
			t.Errorf("%s, %d: %q, %v", c.path, c.most, text, err)
		}
	}
	if _, err := Read(t.Context(), file+".not", nil, 1); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}
