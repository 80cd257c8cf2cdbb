// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/internal/uuids"
	"github.com/metalaw/metalaw/metalprobe/registry/record"
)

// recordRetry is when an agent reports the end of a wipe again whose record could not be kept.
const recordRetry = 10 * time.Second

// settle stores the end of a wipe. Its record is created first, and kept outside the cluster where a sink is given: a server is
// offered on the word of the stored wipe, so no server is offered whose wipe has no record. The beginning of the wipe is stored before
// both, so that a repeated report is of the same beginning, and finds the record that it made.
func (r *Registry) settle(
	ctx context.Context, g grant, end func(*policyv1alpha1.ServerInventory) *refusal, from basis,
) (changed bool, _ *refusal) {
	for {
		begins := false
		changed, refused := r.store(ctx, g, func(stored *policyv1alpha1.ServerInventory) *refusal {
			former := stored.Wipe.DeepCopy()
			if refused := end(stored); refused != nil {
				return refused
			}
			begins = former == nil || former.Entry != g.entry
			switch {
			case begins:
				stored.Wipe.State = policyv1alpha1.WipeRunning
				stored.Wipe.FailedForHidden, stored.Wipe.ExcusedOnly = false, false // they are of an end
				return nil
			case equality.Semantic.DeepEqual(former, stored.Wipe):
				return nil
			}
			kept, refused := archive{r.options}.keep(ctx, g, stored, nil)
			stored.LastRecord = kept
			return refused
		}, from)
		if refused != nil && refused.outcome == OutcomeAwaitsBMC {
			_, _ = r.store(ctx, g, want(g, r.options.Now()), from) // a failure changes nothing: the agent comes again
		}
		if refused != nil && refused.outcome == OutcomeNotRecorded {
			// A failure changes nothing: the agent comes again, and may be heard then.
			_, _ = r.store(ctx, g, stillHeard(g, r.options.Now()), basis{})
		}
		if refused != nil || !begins {
			return changed, refused
		}
		from = basis{}
	}
}

// stillHeard notes that the agent of a wipe that cannot end for now is alive: a silent one loses its power, and its work with it.
func stillHeard(g grant, now time.Time) func(*policyv1alpha1.ServerInventory) *refusal {
	return func(stored *policyv1alpha1.ServerInventory) *refusal {
		if w := stored.Wipe; w != nil && w.Entry == g.entry && w.State == policyv1alpha1.WipeRunning {
			w.UpdatedAt = metav1.NewMicroTime(now)
		}
		return nil
	}
}

// archive makes records and keeps them.
type archive struct{ Options }

// keep makes the record of a wipe that ended, or finds the one that was made of it. Records are numbered, and the API server takes
// one of each number: whoever comes second goes on behind it. A record that the inventory does not remember may not have reached the
// sink, so it is kept there before the chain goes on.
func (a archive) keep(
	ctx context.Context, g grant, stored *policyv1alpha1.ServerInventory, voids *policyv1alpha1.RecordReference,
) (*policyv1alpha1.RecordReference, *refusal) {
	in := record.Input{Server: g.server, Inventory: stored, Wipe: stored.Wipe, Previous: stored.LastRecord, Voids: voids, Now: a.Now()}
	var err error
	if in.PolicyDigest, in.AgentImage, err = a.origin(ctx, g); err != nil {
		return nil, notRecorded(err)
	}
	made, err := record.Of(in)
	if err != nil {
		return nil, notRecorded(err)
	}
	if in.Previous == nil {
		last, err := a.last(ctx, stored.Spec.SystemUUID)
		if err != nil {
			return nil, notRecorded(err)
		}
		if last != nil {
			kept, over, refused := a.behind(ctx, last, made)
			if over {
				return kept, refused
			}
			in.Previous = kept
		}
	}
	for {
		if made, err = record.Of(in); err != nil {
			return nil, notRecorded(err)
		}
		err = a.Writer.Create(ctx, made.DeepCopy())
		switch {
		case err == nil:
			return a.keepOutside(ctx, made)
		case apierrors.IsInvalid(err):
			return nil, invalid(fmt.Errorf("the API refused the record of the wipe: %.512s", err.Error()))
		case !apierrors.IsAlreadyExists(err):
			return nil, notRecorded(fmt.Errorf("creating record %s: %w", made.Name, err))
		}
		var there policyv1alpha1.SanitizationRecord
		if err := a.Live.Get(ctx, client.ObjectKeyFromObject(made), &there); err != nil {
			return nil, notRecorded(fmt.Errorf("reading record %s: %w", made.Name, err))
		}
		kept, over, refused := a.behind(ctx, &there, made)
		if over {
			return kept, refused
		}
		in.Previous = kept
	}
}

// behind keeps a record that is there outside the cluster, and says whether that is all: it is of the same end, or it cannot be kept.
// Else the chain goes on behind it.
func (a archive) behind(
	ctx context.Context, there, made *policyv1alpha1.SanitizationRecord,
) (kept *policyv1alpha1.RecordReference, over bool, refused *refusal) {
	kept, refused = a.keepOutside(ctx, there)
	return kept, refused != nil || record.Tells(there, made), refused
}

func (a archive) keepOutside(ctx context.Context, made *policyv1alpha1.SanitizationRecord) (*policyv1alpha1.RecordReference, *refusal) {
	if a.Sink != nil {
		if err := a.Sink.Append(ctx, made); err != nil {
			return nil, notRecorded(err)
		}
	}
	return record.Reference(made), nil
}

// last finds a machine's last record in the API server; nil where there is none. The inventory that remembered it may be gone.
func (a archive) last(ctx context.Context, uuid string) (*policyv1alpha1.SanitizationRecord, error) {
	of, err := labels.NewRequirement(policyv1alpha1.RecordMachineLabel, selection.In, uuids.Spellings(uuid))
	if err != nil {
		return nil, err
	}
	var list policyv1alpha1.SanitizationRecordList
	if err := a.Live.List(ctx, &list, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*of)}); err != nil {
		return nil, fmt.Errorf("listing the records of machine %s: %w", uuid, err)
	}
	var last *policyv1alpha1.SanitizationRecord
	for i := range list.Items {
		if one := &list.Items[i]; last == nil || one.Spec.Sequence > last.Spec.Sequence {
			last = one
		}
	}
	return last, nil
}

// origin says under which policy, and from which image, the agent was booted. What is gone by now is empty.
func (a archive) origin(ctx context.Context, g grant) (digest, image string, _ error) {
	if l := g.server.Status.Lifecycle; l != nil && l.Revision != "" {
		var revision policyv1alpha1.PolicyRevision
		err := client.IgnoreNotFound(a.Reader.Get(ctx, client.ObjectKey{Name: l.Revision}, &revision))
		if err != nil {
			return "", "", fmt.Errorf("reading PolicyRevision %s: %w", l.Revision, err)
		}
		digest = revision.Spec.Digest
	}
	ref := g.server.Spec.BootConfigurationRef
	if ref == nil {
		return digest, "", nil
	}
	config, refused := bootConfigurationOf(ctx, a.Live, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, g.server.Name)
	switch {
	case refused == nil:
		return digest, config.Spec.Image, nil
	case refused.err != nil:
		return "", "", refused.err
	}
	return digest, "", nil
}

func notRecorded(err error) *refusal {
	return &refusal{
		status: http.StatusServiceUnavailable, outcome: OutcomeNotRecorded, retryAfter: recordRetry, err: err,
		message: "the registry could not keep the record of this wipe, and a wipe without a record does not count",
		remedy:  "report the end of the wipe again; the manager's log has the cause",
	}
}
