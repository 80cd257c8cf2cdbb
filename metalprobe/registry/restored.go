// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/internal/restored"
	"github.com/metalaw/metalaw/metalprobe/registry/record"
	"github.com/metalaw/metalaw/metalprobe/registry/sink"
)

// redone holds back a wipe that an older state of the cluster's store would have done again: of a server in doubt, and one whose
// record the sink has already. The sink is asked once for each entry, before the first disk.
func redone(ctx context.Context, r *Registry, g grant, stored *policyv1alpha1.ServerInventory) *refusal {
	if restored.Of(g.server, stored) == restored.Stands {
		return r.heldBack(restored.Words(g.server.Name)).about(g.server)
	}
	entry := string(g.server.UID) + "/" + strconv.FormatInt(g.entry, 10)
	if _, asked := r.unrecorded.Get(entry); asked || r.options.Sink == nil {
		return nil
	}
	uuid, next, err := archive{r.options}.next(ctx, g, stored)
	if err != nil {
		return failed(err)
	}
	switch has, err := r.options.Sink.Has(ctx, uuid, next); {
	case errors.Is(err, sink.ErrNotAllowed): // such a sink served before it was asked anything
		r.options.Log.Warn("whether the sink has the record of a wipe already cannot be told", "server", g.server.Name, "err", err)
	case err != nil:
		return &refusal{
			status: http.StatusServiceUnavailable, outcome: OutcomeFailed, retryAfter: recordRetry, err: err,
			message: "the registry could not ask the sink whether it has the record of this wipe already",
			remedy:  "begin no disk, and ask again; the manager's log has the cause",
		}
	case has:
		return r.heldBack(fmt.Sprintf("the sink has record %s already, which the cluster does not know: the cluster's store was restored. "+
			"Run metalaw restored, compare, and bring the machine's records back from the sink. If they are of another cluster, "+
			"move them out of the sink", record.Name(uuid, next))).about(g.server)
	}
	r.unrecorded.Add(entry, true)
	return nil
}

// next is the number that the record of a wipe gets if it ends now.
func (a archive) next(ctx context.Context, g grant, stored *policyv1alpha1.ServerInventory) (uuid string, next int64, _ error) {
	uuid = g.server.Spec.SystemUUID
	if stored != nil {
		uuid = stored.Spec.SystemUUID
		if stored.LastRecord != nil {
			next = stored.LastRecord.Sequence
		}
	}
	last, err := a.last(ctx, uuid)
	if err != nil {
		return "", 0, err
	}
	if last != nil {
		next = max(next, last.Spec.Sequence)
	}
	return uuid, next + 1, nil
}
