// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"io"
	"os"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// examplesFile is where `policy verify` writes the facts by which findings show; empty for nowhere. It is a new file, or a stream: the
// file of an author is never overwritten.
type examplesFile string

// check refuses a file that is there already, before a bundle is judged for it.
func (f examplesFile) check(t *terminal.Terminal) error {
	if f == "" || f.standard(t) != nil {
		return nil
	}
	_, err := os.Lstat(string(f))
	if there := err == nil; !there || f.leadsToStream() {
		return nil
	}
	return usage.Errorf("--examples %s: it is there already and is not overwritten; nothing was judged or written. "+
		"Name a file that is not there yet", string(f))
}

// write writes examples, and says where there are none that nothing is written.
func (f examplesFile) write(t *terminal.Terminal, examples string) error {
	if f == "" {
		return nil
	}
	if examples == "" {
		t.Notef("%s is not written: no finding that is told has an example", string(f))
		return nil
	}
	if w := f.standard(t); w != nil {
		_, err := io.WriteString(w, examples)
		return err
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL // not over what somebody has written meanwhile
	if f.leadsToStream() {
		flags = os.O_WRONLY
	}
	file, err := os.OpenFile(string(f), flags, 0o644) //nolint:gosec // For a repository.
	if err != nil {
		return err
	}
	if _, err = file.WriteString(examples); err != nil {
		file.Close() //nolint:errcheck,gosec // That it could not be written is told already.
		return err
	}
	return file.Close()
}

// standard is the stream of this program that a path names; nil for another. By its path it would be opened anew, and written over from the
// beginning where it leads to a file.
func (f examplesFile) standard(t *terminal.Terminal) io.Writer {
	return map[examplesFile]io.Writer{"/dev/stdout": t.Out, "/dev/stderr": t.Err}[f]
}

// leadsToStream says that what is written there replaces nothing: to a device or a pipe.
func (f examplesFile) leadsToStream() bool {
	info, err := os.Stat(string(f))
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}
