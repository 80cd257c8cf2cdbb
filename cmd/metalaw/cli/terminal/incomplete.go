// SPDX-License-Identifier: Apache-2.0

package terminal

import "errors"

// ErrIncomplete says that something was not done which the output has told of already.
var ErrIncomplete = errors.New("not everything was done")
