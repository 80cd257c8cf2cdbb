// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// may asks the API server whether a user holds a right, as whom the request was made: with groups and all that the user's
// authentication says besides. A repeated call asks again.
func (l *lookup) may(ctx context.Context, user authenticationv1.UserInfo, right authorizationv1.ResourceAttributes) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra, ResourceAttributes: &right,
	}}
	if err := l.rights.Create(ctx, review); err != nil {
		return false, fmt.Errorf("whether user %q may %s %s cannot be told: %w", user.Username, right.Verb, right.Resource, err)
	}
	return review.Status.Allowed, nil
}
