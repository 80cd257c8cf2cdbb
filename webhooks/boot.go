// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

// judgeBoot has nothing of metalaw itself to hold against a ServerBootConfiguration: which server it names, and that it names
// one, the CRD says. The bundle's rules are asked.
func judgeBoot(context.Context, review.Change[v1alpha1.ServerBootConfiguration]) (review.Findings, map[string]any, error) {
	return review.Findings{}, nil, nil
}
