// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
)

const (
	leasePrefix = "metalaw-replica-"
	// leaseRenewal is how often a lease is renewed, leaseLasts how long it says that its manager runs.
	leaseRenewal = 30 * time.Second
	leaseLasts   = 90 * time.Second
	maxRefusal   = 300
)

// replica follows the stored revisions on every manager, leader or not, and says in a lease of its own what this manager
// has compiled.
type replica struct {
	client    client.Client
	live      client.Reader
	cache     cache.Cache
	store     *Store
	namespace string
	identity  string
	flags     string
	now       func() time.Time

	recorded string
}

// report is LoadedAnnotation.
type report struct {
	Engine   string            `json:"engine"`
	Compiled []string          `json:"compiled,omitempty"`
	Refused  map[string]string `json:"refused,omitempty"`
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (r *replica) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (r *replica) Start(ctx context.Context) error {
	log := logf.FromContext(ctx).WithName("revision")
	seen := make(chan struct{}, 1)
	informer, err := r.cache.GetInformer(ctx, &policyv1alpha1.PolicyRevision{})
	if err != nil {
		return err
	}
	poke := func() {
		select {
		case seen <- struct{}{}:
		default:
		}
	}
	registered, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { poke() }, UpdateFunc: func(_, _ any) { poke() }, DeleteFunc: func(any) { poke() }})
	if err != nil {
		return err
	}
	defer func() { _ = informer.RemoveEventHandler(registered) }()
	tick := time.NewTicker(leaseRenewal)
	defer tick.Stop()
	poke()
	for {
		renew := false
		select {
		case <-ctx.Done():
			r.leave(context.WithoutCancel(ctx))
			return nil
		case <-tick.C:
			renew = true
		case <-seen:
		}
		if err := r.follow(ctx, renew); err != nil && ctx.Err() == nil {
			log.Error(err, "what governs could not be brought up to date; it is tried again")
			time.AfterFunc(startPause, poke)
		}
	}
}

// follow brings the store up to date, and the lease where it would say something new or is due.
func (r *replica) follow(ctx context.Context, renew bool) error {
	var list policyv1alpha1.PolicyRevisionList
	if err := r.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	// A manager that cannot bring itself up to date runs all the same: it is heard of, and promotions wait for it.
	err := r.store.follow(ctx, list.Items)
	if renew {
		err = errors.Join(err, r.store.forget(ctx, list.Items))
	}
	if text := r.report(list.Items); renew || text != r.recorded {
		if err := r.renew(ctx, text); err != nil {
			return err
		}
		r.recorded = text
	}
	return err
}

// report tells of the revisions that are stored; those that went say nothing to anybody.
func (r *replica) report(revisions []policyv1alpha1.PolicyRevision) string {
	compiled, refused := r.store.loaded()
	gone := func(digest string) bool {
		return !slices.ContainsFunc(revisions, func(r policyv1alpha1.PolicyRevision) bool { return r.Spec.Digest == digest })
	}
	maps.DeleteFunc(compiled, func(digest string, _ bool) bool { return gone(digest) })
	maps.DeleteFunc(refused, func(digest, _ string) bool { return gone(digest) })
	for digest, why := range refused {
		line, _, _ := strings.Cut(why, "\n")
		refused[digest] = diag.Shortened(line, maxRefusal)
	}
	text, err := json.Marshal(report{Engine: bundle.EngineVersion, Compiled: slices.Sorted(maps.Keys(compiled)), Refused: refused})
	if err != nil {
		return "" // strings alone can always be written
	}
	return string(text)
}

func (r *replica) renew(ctx context.Context, text string) error {
	lease := &coordinationv1.Lease{}
	key := types.NamespacedName{Namespace: r.namespace, Name: leasePrefix + r.identity}
	err := r.live.Get(ctx, key, lease)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	metav1.SetMetaDataLabel(&lease.ObjectMeta, policyv1alpha1.ReplicaLabel, "true")
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, policyv1alpha1.LoadedAnnotation, text)
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, policyv1alpha1.FlagsAnnotation, r.flags)
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &r.identity, ptr.To(int32(leaseLasts.Seconds()))
	lease.Spec.RenewTime = &metav1.MicroTime{Time: r.now()}
	if apierrors.IsNotFound(err) {
		lease.Namespace, lease.Name = key.Namespace, key.Name
		return r.client.Create(ctx, lease)
	}
	return r.client.Update(ctx, lease)
}

// leave takes the lease away when the manager ends in order, so that nobody waits for it.
func (r *replica) leave(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: leasePrefix + r.identity}}
	if err := client.IgnoreNotFound(r.client.Delete(limited, lease)); err != nil {
		logf.FromContext(ctx).WithName("revision").Info("this manager's lease could not be taken away; a promotion may wait until it expires",
			"cause", err.Error())
	}
}

// replicaOf reads what a manager says in its lease. What cannot be read has compiled nothing.
func replicaOf(lease *coordinationv1.Lease) rollout.Replica {
	out := rollout.Replica{Name: ptr.Deref(lease.Spec.HolderIdentity, lease.Name), Compiled: map[string]bool{},
		Lasts: time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second}
	if lease.Spec.RenewTime != nil {
		out.RenewedAt = lease.Spec.RenewTime.Time
	}
	var said report
	if err := json.Unmarshal([]byte(lease.Annotations[policyv1alpha1.LoadedAnnotation]), &said); err != nil {
		return out
	}
	out.EngineVersion, out.Refused = said.Engine, said.Refused
	for _, digest := range said.Compiled {
		out.Compiled[digest] = true
	}
	return out
}
