// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"errors"
	"fmt"
)

// Exit codes of every command.
const (
	// ExitDone: everything that was asked for was done.
	ExitDone = 0
	// ExitIncomplete: something was refused, failed, or did not end in time; the output says what.
	ExitIncomplete = 1
	// ExitUsage: the command line makes no sense; nothing was done.
	ExitUsage = 2
)

// ErrIncomplete says that something was not done which the output has told of already.
var ErrIncomplete = errors.New("not everything was done")

// usageError is a command line that makes no sense.
type usageError struct{ text string }

// Error implements error.
func (e usageError) Error() string { return e.text }

// Usagef is an error about the command line itself.
func Usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// IsUsage says that an error is about the command line itself.
func IsUsage(err error) bool { return errors.As(err, new(usageError)) }

// ExitCode is the exit code that an error stands for.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return ExitDone
	case IsUsage(err):
		return ExitUsage
	default:
		return ExitIncomplete
	}
}
