// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// usageError is a command line that makes no sense; nothing was started.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exitCode is 2 for a command line that makes no sense, and 1 for any other error.
func exitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.As(err, new(usageError)):
		return 2
	default:
		return 1
	}
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no arguments, and %q was given; see --help", cmd.CommandPath(), args[0])
	}
	return nil
}

// problems are the flags that cannot be used, one line each.
type problems []string

// add says of a flag what cannot be used, why, and what to write instead.
func (p *problems) add(flag string, value any, cause, remedy string) {
	if text, is := value.(string); is {
		value = strconv.Quote(text)
	}
	*p = append(*p, fmt.Sprintf("--%s=%v: %s; %s", flag, value, cause, remedy))
}

func (p *problems) addIf(wrong bool, flag string, value any, cause, remedy string) {
	if wrong {
		p.add(flag, value, cause, remedy)
	}
}

func (p *problems) err() error {
	if len(*p) == 0 {
		return nil
	}
	return usagef("these flags cannot be used, and nothing was started:\n  %s", strings.Join(*p, "\n  "))
}

// reading says on one line why a file could not be read, without its name, which the flag tells.
func reading(err error) string {
	if path := new(fs.PathError); errors.As(err, &path) {
		err = path.Err
	}
	return strings.ReplaceAll(err.Error(), "\n", ", ")
}
