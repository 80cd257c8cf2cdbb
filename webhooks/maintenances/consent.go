// SPDX-License-Identifier: Apache-2.0

package maintenances

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

// ConsentRecord is the ConfigMap in which the manager keeps since when it grants maintenances. controllers/maintenance
// writes it.
const ConsentRecord = "metalaw-consent"

// JudgeConsent keeps that record from users who may write ConfigMaps for bundles: an earlier time would have old
// maintenances granted. A user who may restore the fleet may bring it back from a backup.
func (l *Rules) JudgeConsent(
	ctx context.Context, c review.Change[corev1.ConfigMap], found *review.Findings, _ map[string]any,
) error {
	stored := c.New
	if c.Deleted() {
		stored = c.Old
	}
	if c.ByManager || stored.Name != ConsentRecord {
		return nil
	}
	const verb = "restore"
	may, err := l.May(ctx, c.User, authorizationv1.ResourceAttributes{
		Verb: verb, Group: policyv1alpha1.GroupVersion.Group, Resource: "fleetcontrols",
		Name: policyv1alpha1.FleetControlName})
	if err != nil || may {
		return err
	}
	found.Deny(field.Forbidden(field.NewPath("metadata", "name"), fmt.Sprintf(
		"the manager records here since when it grants maintenances, and user %q lacks the verb %s on fleetcontrols.%s; "+
			"to have an older maintenance granted, annotate that with policy.metalaw.dev/adopt=true",
		c.User.Username, verb, policyv1alpha1.GroupVersion.Group)))
	return nil
}
