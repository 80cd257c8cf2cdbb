// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
)

const codeAbsent = "bundle-absent"

// unfit is what nothing can be compiled of: a bundle that is not whole, or what is none. Its findings are told in the form that was
// asked for, as those of any bundle are.
type unfit struct {
	*manuscript
	found diag.List
}

func (u *unfit) Error() string {
	placed := make(diag.List, len(u.found))
	for i, d := range u.found {
		placed[i] = u.placed(d)
	}
	return fmt.Sprintf("%s: there is no whole bundle:\n%v", u.name, placed.Err())
}

// absent says of what was read as a whole that it is no bundle.
func absent(name, message, hint string) *unfit {
	return &unfit{&manuscript{name: name}, diag.List{{Severity: diag.Error, Code: codeAbsent, File: name, Message: message, Hint: hint}}}
}

// absent says that it is none at all.
func (u *unfit) absent() bool { return len(u.found) == 1 && u.found[0].Code == codeAbsent }

// verdict is what is to be said of it: its findings alone.
func (u *unfit) verdict() verdict {
	return verdict{manuscript: u.manuscript, report: bundle.Report{Found: u.found}}
}
