// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"context"
	"slices"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/policies"
)

// Acceptor is all that a bundle must pass before it may govern. It fills in what the files leave out, and returns no bundle
// where a finding is an error. The error is for what no author can mend, and for a context that ended.
type Acceptor func(ctx context.Context, files bundle.Files) (*bundle.Bundle, diag.List, error)

// Accept is the Acceptor where Options name no other.
func Accept(ctx context.Context, files bundle.Files) (*bundle.Bundle, diag.List, error) {
	b, report, err := policies.Accept(ctx, files)
	return b, report.Found, err
}

// verdict is what became of some files.
type verdict struct {
	// digest is that of the files as they were given.
	digest string
	// bundle is what they are; nil where it is not accepted.
	bundle *bundle.Bundle
	found  diag.List
}

// maxVerdicts is how many verdicts are kept: the mutating and the validating review of one request ask for the same, and so
// does a draft that is labelled a moment later.
const maxVerdicts = 16

// Acceptances checks bundles one at a time, so that many of them cannot take the processor from the reconcilers, and
// remembers the last verdicts. It is safe for concurrent use.
type Acceptances struct {
	accept Acceptor
	// turn holds the right to check a bundle, and to touch last.
	turn chan struct{}
	last []verdict
}

// NewAcceptances remembers what accept said of a content, so that one content is judged once at a time.
func NewAcceptances(accept Acceptor) *Acceptances {
	return &Acceptances{accept: accept, turn: make(chan struct{}, 1)}
}

// of is the verdict on some files. An error is not remembered.
func (a *Acceptances) of(ctx context.Context, files bundle.Files) (verdict, error) {
	digest := files.Digest()
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return verdict{}, ctx.Err()
	}
	if i := slices.IndexFunc(a.last, func(v verdict) bool { return v.digest == digest }); i >= 0 {
		return a.last[i], nil
	}
	b, found, err := a.accept(ctx, files)
	if err != nil {
		return verdict{}, err
	}
	v := verdict{digest: digest, bundle: b, found: found}
	a.last = append(a.last, v)
	a.last = a.last[max(0, len(a.last)-maxVerdicts):]
	return v, nil
}
