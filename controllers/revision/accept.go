// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/policies"
)

// AcceptFunc is all that a bundle must pass before it may govern. Files that the bundle leaves out are taken from fill,
// which may be nil. What does not pass has an Error among the findings; the bundle is nil where it does not even compile.
// The error is for what no author can mend, and says nothing of the bundle.
type AcceptFunc func(ctx context.Context, files, fill bundle.Files) (*bundle.Bundle, diag.List, error)

// accept is the AcceptFunc of stores that are given no other.
func accept(ctx context.Context, files, fill bundle.Files) (*bundle.Bundle, diag.List, error) {
	b, report, err := bundle.Accept(ctx, files, policies.Acceptance(fill))
	return b, report.Found, err
}

// testOf says in the words of a status what came of a test.
func testOf(b *bundle.Bundle, found diag.List) *rollout.Test {
	t := &rollout.Test{Compiled: b != nil}
	if err := found.Err(); err != nil {
		t.Refused = err.Error()
	}
	for _, d := range found {
		if d.Severity != diag.Info { // that is for the author alone
			t.Findings = append(t.Findings, d.String())
		}
	}
	t.Total = len(t.Findings)
	if b != nil {
		t.MaxHalts, t.MaxErrors = int32(b.Settings.Canary.MaxHalts), int32(b.Settings.Canary.MaxErrors)
		t.NoError = !b.Lifecycle.Defines(engine.State(v1alpha1.StateError))
	}
	return t
}
