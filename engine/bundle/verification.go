// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/lifecycle/verify"
)

// verify proves what can be proven of the lifecycle without running it, under the bundle's own settings. It returns what it
// found, and the rules that can never fire, of which no scenario is asked for.
func (b *Bundle) verify(in Options, report *Report) (found diag.List, never map[string]bool) {
	if in.Assume != nil {
		report.Verification = verify.Check(b.Lifecycle, in.Assume(b.Settings)...)
	} else {
		report.Verification = verify.Check(b.Lifecycle)
	}
	never = map[string]bool{}
	for _, f := range report.Verification.Findings {
		if f.Code == verify.CodeNeverFires {
			never[f.Rule] = true
		}
		found = append(found, f.Diagnostic)
	}
	for _, words := range report.Verification.Undecided {
		found = append(found, diag.Diagnostic{Severity: diag.Info, Code: verify.CodeNotProven, File: LifecycleFile,
			Message: "not proven: " + words, Hint: "compare facts with literals, and fewer of them with each other, to have it proven"})
	}
	return found, never
}
