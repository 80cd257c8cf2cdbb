// SPDX-License-Identifier: Apache-2.0

// Package terminal is what the commands share towards the person in front of them: streams, colour, questions, tables, JSON
// and exit codes.
package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/metalaw/metalaw/cmd/internal/usage"
)

// ErrIncomplete says that something was not done which the output has told of already.
var ErrIncomplete = errors.New("not everything was done")

// ErrUnknown says that the answer is not known, of which the output has told already.
var ErrUnknown = usage.Unknown(errors.New("the answer is not known"))

// Terminal is where a command reads and writes. It keeps the first error in writing Out, with which the command ends.
type Terminal struct {
	In       io.Reader
	Out, Err io.Writer
	// Asks says that somebody is there to answer a question.
	Asks bool
	// Coloured says that Out shows colours.
	Coloured bool
	// Now is when the command began.
	Now time.Time

	wrong error
}

// Of is the terminal of a command.
func Of(cmd *cobra.Command) *Terminal {
	t := &Terminal{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr(), Now: time.Now()}
	t.Asks = isTerminal(t.In) && isTerminal(t.Err)
	t.Coloured = isTerminal(t.Out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return t
}

// Run is the RunE of a command that reads and writes at a terminal.
func Run(do func(ctx context.Context, t *Terminal, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		t := Of(cmd)
		return t.Ended(do(cmd.Context(), t, args))
	}
}

// Ended is the error with which a command ends: its own, unless Out could not be written.
func (t *Terminal) Ended(err error) error {
	if t.wrong != nil {
		return t.wrong
	}
	return err
}

func (t *Terminal) wrote(err error) {
	if t.wrong == nil {
		t.wrong = err
	}
}

// Printf writes to Out.
func (t *Terminal) Printf(format string, args ...any) {
	if t.wrong == nil {
		_, t.wrong = fmt.Fprintf(t.Out, format, args...)
	}
}

// Notef writes a line for people to Err. What the command does, does not depend on it.
func (t *Terminal) Notef(format string, args ...any) {
	fmt.Fprintf(t.Err, format+"\n", args...) //nolint:errcheck // It is for people.
}

// Notes writes a line for each note to Err.
func (t *Terminal) Notes(notes []string) {
	for _, note := range notes {
		t.Notef("note: %s", Plain(note))
	}
}

// Field writes a line with a name before the text; none where there is no text.
func (t *Terminal) Field(name, text string) {
	if text != "" {
		t.Printf("%-12s %s\n", name+":", Plain(text))
	}
}

// Table writes rows under a head to Out, as Table does.
func (t *Terminal) Table(head []string, rows [][]string) { t.wrote(Table(t.Out, head, rows)) }

// Ago is the time from a moment to the beginning of the command.
func (t *Terminal) Ago(at time.Time) string { return duration.HumanDuration(t.Now.Sub(at)) }

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Confirm asks a question, and is true when the answer begins with y.
func (t *Terminal) Confirm(ctx context.Context, question string) bool {
	fmt.Fprintf(t.Err, "%s [y/N] ", question) //nolint:errcheck // Whoever cannot read the question does not say yes.
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(t.In).ReadString('\n')
		answer <- line
	}()
	select {
	case line := <-answer:
		return strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "y")
	case <-ctx.Done():
		return false
	}
}

// Consent shows rows of what is about to be done, and wants a yes.
func (t *Terminal) Consent(ctx context.Context, question string, head []string, rows [][]string) error {
	if err := Table(t.Err, head, rows); err != nil {
		return err
	}
	if !t.Confirm(ctx, question) {
		return errors.New("nothing was changed")
	}
	return nil
}

// Colour is the colour of a word.
type Colour string

// Colours by what they say.
const (
	Good Colour = "32"
	Wary Colour = "33"
	Bad  Colour = "31"
)

// Paint colours a word where colours are shown, and pads it to a width, which does not count the colour.
func (t *Terminal) Paint(c Colour, word string, width int) string {
	padding := strings.Repeat(" ", max(0, width-len(word)))
	if !t.Coloured || c == "" {
		return word + padding
	}
	return "\x1b[" + string(c) + "m" + word + "\x1b[0m" + padding
}

// Plain is text that others wrote, made fit for one line of a terminal: what would steer the terminal is shown in words, as
// in a Go string.
func Plain(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsControl(r) || r == utf8.RuneError {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Table writes rows under a head, in columns, each cell as Plain shows it.
func Table(w io.Writer, head []string, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, row := range append([][]string{head}, rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = Plain(cell)
		}
		if _, err := fmt.Fprintln(t, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return t.Flush()
}

// Count is a number of things in words: "1 error", "2 errors".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

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
