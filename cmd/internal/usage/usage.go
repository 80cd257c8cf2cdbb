// SPDX-License-Identifier: Apache-2.0

// Package usage is what the programs share about command lines that make no sense: what is wrong with flags, collected and
// told at once, and the exit codes.
package usage

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes of every command.
const (
	// ExitDone: everything that was asked for was done.
	ExitDone = 0
	// ExitIncomplete: something was refused, failed, or did not end in time; the output says what.
	ExitIncomplete = 1
	// ExitUsage: the command line makes no sense; nothing was done.
	ExitUsage = 2
	// ExitUnknown: the command cannot tell what it was asked, because the cluster does not answer or rights are
	// missing.
	ExitUnknown = 2
)

// unknownError is an error for which a command cannot tell what it was asked.
type unknownError struct{ error }

// Unwrap is the cause.
func (u unknownError) Unwrap() error { return u.error }

// Unknown makes of an error one for which the command cannot tell what it was asked.
func Unknown(err error) error { return unknownError{err} }

// usageError is a command line that makes no sense.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

// Errorf is an error about the command line itself.
func Errorf(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// Is says that an error is about the command line itself.
func Is(err error) bool { return errors.As(err, new(usageError)) }

// ExitCode is the exit code that an error stands for.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return ExitDone
	case Is(err):
		return ExitUsage
	case errors.As(err, new(unknownError)):
		return ExitUnknown
	default:
		return ExitIncomplete
	}
}

// FlagError is the error of a command for flags that it does not know or that hold what is no value.
func FlagError(_ *cobra.Command, err error) error { return Errorf("%v; see --help", err) }

// NoArgs takes no arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Errorf("%s takes no arguments, and %q was given; see --help", cmd.CommandPath(), args[0])
	}
	return nil
}

// OneArg takes one argument; text says which.
func OneArg(text string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return Errorf("%s; see --help", text)
		}
		return nil
	}
}

// Problems are the flags that cannot be used, one line each.
type Problems []string

// Add says of a flag what cannot be used, why, and what to write instead.
func (p *Problems) Add(flag string, value any, cause, remedy string) {
	if text, is := value.(string); is {
		value = strconv.Quote(text)
	}
	*p = append(*p, fmt.Sprintf("--%s=%v: %s; %s", flag, value, cause, remedy))
}

// AddIf adds a flag that cannot be used where something is wrong with it.
func (p *Problems) AddIf(wrong bool, flag string, value any, cause, remedy string) {
	if wrong {
		p.Add(flag, value, cause, remedy)
	}
}

// Err is all of them as one error about the command line; nil where there is none.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return Errorf("these flags cannot be used, and nothing was started:\n  %s", strings.Join(p, "\n  "))
}

// Reading says on one line why a file could not be read, without its name, which the flag tells.
func Reading(err error) string {
	if path := new(fs.PathError); errors.As(err, &path) {
		err = path.Err
	}
	return strings.ReplaceAll(err.Error(), "\n", ", ")
}
