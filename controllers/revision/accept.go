// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"maps"

	"github.com/metalaw/metalaw/controllers/revision/rollout"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/policies"
)

// AcceptFunc is all that a bundle must pass before it may govern. Files that the bundle leaves out are taken from fill,
// which may be nil. What does not pass has an Error among the findings; the bundle is nil where it does not even compile.
// The error is for what no author can mend, and says nothing of the bundle.
type AcceptFunc func(ctx context.Context, files, fill bundle.Files) (*bundle.Bundle, diag.List, error)

// accept is the AcceptFunc of stores that are given no other.
func accept(_ context.Context, files, fill bundle.Files) (*bundle.Bundle, diag.List, error) {
	resolved := maps.Clone(files)
	for _, name := range []string{bundle.LifecycleFile, bundle.SelectionFile, bundle.AdmissionFile, bundle.MACPrefixesFile} {
		if _, ok := resolved[name]; !ok && fill[name] != nil {
			resolved[name] = fill[name]
		}
	}
	return bundle.Compile(resolved, policies.Vocabulary())
}

// budgetOf is what a canary of a bundle may cost.
func budgetOf(*bundle.Bundle) (maxHalts, maxErrors int32) { return 0, 0 }

// testOf says in the words of a status what came of a test.
func testOf(b *bundle.Bundle, found diag.List) *rollout.Test {
	t := &rollout.Test{Compiled: b != nil, Total: len(found)}
	if err := found.Err(); err != nil {
		t.Refused = err.Error()
	}
	for _, d := range found {
		t.Findings = append(t.Findings, d.String())
	}
	if b != nil {
		t.MaxHalts, t.MaxErrors = budgetOf(b)
	}
	return t
}
