// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

// longestNote bounds the write of who ends a claim: the API server waits for it, and lets the deletion pass without.
const longestNote = time.Second

// noteEnd writes onto the Server who ends the claim that holds it, for the record of the wipe to come. Only admission knows the user of
// a deletion. Where the write fails the record names nobody.
func (l *claimRules) noteEnd(ctx context.Context, c review.Change[v1alpha1.ServerClaim]) {
	name := refOf(c.Old)
	if l.writer == nil || c.DryRun || name == "" || !c.Old.DeletionTimestamp.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, longestNote)
	defer cancel()
	log := logf.FromContext(ctx).WithValues("server", name)
	server, err := get[v1alpha1.Server](ctx, l.lookup, name)
	if err != nil {
		log.Error(err, "who ends a claim could not be noted")
		return
	}
	if server == nil || server.Annotations[v1alpha1.ClaimUIDAnnotation] != string(c.Old.UID) {
		return
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		v1alpha1.ClaimEndedByAnnotation: string(c.Old.UID) + " " + c.User.Username,
	}}})
	if err == nil {
		target := &v1alpha1.Server{}
		target.Name = name
		err = l.writer.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch))
	}
	if err != nil {
		log.Error(err, "who ends a claim could not be noted")
	}
}
