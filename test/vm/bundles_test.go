// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"strings"

	"github.com/metalaw/metalaw/controllers/revision"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/policies"
)

// believing accepts variants of the default bundle, which have versions 2, for what they compile to; of anything else it asks the whole.
func believing(accept revision.AcceptFunc) revision.AcceptFunc {
	return func(ctx context.Context, files, fill bundle.Files) (*bundle.Bundle, diag.List, error) {
		if strings.Contains(string(files["bundle.yaml"]), "version: 2.") {
			return bundle.Compile(files, policies.Vocabulary())
		}
		return accept(ctx, files, fill)
	}
}
