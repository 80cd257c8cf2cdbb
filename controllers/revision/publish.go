// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

// countInterval is how often the number of servers pinned to each revision is counted.
const countInterval = 30 * time.Second

// Publisher stores the embedded bundle as a PolicyRevision like any other, and keeps the counts of servers. It runs on
// the leader.
type Publisher struct {
	Client client.Client
	// Reader reads past the cache.
	Reader client.Reader
	Store  *Store
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (p *Publisher) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (p *Publisher) Start(ctx context.Context) error {
	log := logf.FromContext(ctx).WithName("revision")
	tick := time.NewTicker(countInterval)
	defer tick.Stop()
	for {
		if err := p.publish(ctx); err != nil && ctx.Err() == nil {
			log.Error(err, "the policy revisions could not be brought up to date")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (p *Publisher) publish(ctx context.Context) error {
	active := p.Store.Active()
	if err := p.ensure(ctx, active); err != nil {
		return err
	}
	var servers v1alpha1.ServerList
	if err := p.Client.List(ctx, &servers, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	counts := map[string]int32{}
	for i := range servers.Items {
		if l := servers.Items[i].Status.Lifecycle; l != nil {
			counts[l.Revision]++
		}
	}
	var revisions policyv1alpha1.PolicyRevisionList
	if err := p.Client.List(ctx, &revisions); err != nil {
		return err
	}
	for i := range revisions.Items {
		r := &revisions.Items[i]
		if err := p.recordStatus(ctx, r, active, counts[r.Name]); err != nil {
			return err
		}
	}
	return nil
}

// ensure creates the revision of a bundle once; its content never changes.
func (p *Publisher) ensure(ctx context.Context, b *bundle.Bundle) error {
	err := p.Reader.Get(ctx, types.NamespacedName{Name: b.Revision.Name}, &policyv1alpha1.PolicyRevision{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	content, err := b.Files.Pack()
	if err != nil {
		return err
	}
	revision := &policyv1alpha1.PolicyRevision{
		ObjectMeta: metav1.ObjectMeta{Name: b.Revision.Name},
		Spec: policyv1alpha1.PolicyRevisionSpec{Bundle: b.Name, Version: b.Version, Digest: b.Revision.Digest,
			EngineVersion: bundle.EngineVersion, Content: content},
	}
	if err := p.Client.Create(ctx, revision); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return p.recordStatus(ctx, revision, b, 0)
}

func (p *Publisher) recordStatus(ctx context.Context, r *policyv1alpha1.PolicyRevision, active *bundle.Bundle, servers int32) error {
	before := r.DeepCopy()
	st := &r.Status
	st.Servers, st.ObservedGeneration = servers, r.Generation
	inForce := r.Name == active.Revision.Name
	st.Stage = policyv1alpha1.StageSuperseded
	condition := metav1.Condition{Type: policyv1alpha1.ConditionActive, Status: metav1.ConditionFalse, Reason: policyv1alpha1.ReasonSuperseded,
		Message: "another revision is in force", ObservedGeneration: r.Generation}
	if inForce {
		st.Stage = policyv1alpha1.StageEmbedded
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, policyv1alpha1.ReasonInForce, "servers adopt this revision"
		st.Findings = nil
		for _, d := range active.Findings {
			st.Findings = append(st.Findings, d.String())
		}
	}
	meta.SetStatusCondition(&st.Conditions, condition)
	compiled := metav1.Condition{Type: policyv1alpha1.ConditionCompiled, Status: metav1.ConditionTrue, Reason: policyv1alpha1.ReasonCompiled,
		Message: "the content compiles", ObservedGeneration: r.Generation}
	if _, ok := p.Store.Revision(r.Name); !ok {
		compiled.Status, compiled.Reason = metav1.ConditionFalse, policyv1alpha1.ReasonCompileFailed
		compiled.Message = "the content does not compile in this engine; the log says why"
	}
	meta.SetStatusCondition(&st.Conditions, compiled)
	if equality.Semantic.DeepEqual(before.Status, r.Status) {
		return nil
	}
	return p.Client.Status().Patch(ctx, r, client.MergeFrom(before))
}
