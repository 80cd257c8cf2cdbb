// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/metalaw/metalaw/internal/rights"
)

// may asks the API server whether a user holds a right, as whom the request was made. A repeated call asks again.
func (l *lookup) may(ctx context.Context, user authenticationv1.UserInfo, right authorizationv1.ResourceAttributes) (bool, error) {
	return rights.AskFor(ctx, l.rights, rights.MakerOf(user), right)
}
