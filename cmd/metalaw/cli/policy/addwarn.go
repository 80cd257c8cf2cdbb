// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies/library"
)

// warnOf tells of policies that do not do in the bundle what they say, because of its settings. These are those of the bundle as it was
// accepted, with what its own files leave out.
func warnOf(t *terminal.Terminal, files bundle.Files, settings bundle.Settings, names []string) error {
	for _, name := range names {
		p, err := library.Find(name)
		if err != nil {
			return err
		}
		warnings, err := p.Warnings(files, settings.Claims)
		if err != nil {
			return err
		}
		for _, w := range warnings {
			if _, err := fmt.Fprintf(t.Err, "warning: %s\n", w); err != nil {
				return err
			}
		}
	}
	return nil
}
