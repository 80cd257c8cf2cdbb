// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Problems are the flags that cannot be used, one line each.
type Problems []string

// Add says of a flag what cannot be used, why, and what to write instead.
func (p *Problems) Add(flag string, value any, cause, remedy string) {
	if text, is := value.(string); is {
		value = strconv.Quote(text)
	}
	*p = append(*p, fmt.Sprintf("--%s=%v: %s; %s", flag, value, cause, remedy))
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
