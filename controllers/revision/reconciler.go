// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/mergepatch"
	"github.com/metalaw/metalaw/internal/stored"
)

const (
	// countInterval is the default of Options.Interval.
	countInterval = 30 * time.Second
	// canaryInterval is how often the servers under a canary are counted that is not paused.
	canaryInterval = 5 * time.Second
	// conflictPause is how long the cache is given to show what somebody else wrote.
	conflictPause = 200 * time.Millisecond
	// leaseForgotten is how long after its end the lease of a manager that was killed is taken away.
	leaseForgotten = 15 * time.Minute
)

// reconciler puts the bundles of ConfigMaps in force. It runs on the leader, one reconcile at a time.
type reconciler struct {
	Options
	// bundles reads the ConfigMaps of bundles and the leases of managers; parts are the ConfigMaps with parts.
	bundles, parts client.Reader
	recorder       events.EventRecorder
	refused        atomic.Pointer[map[string]int]

	// What follows belongs to one look after the other.

	// written are revisions that the cache may not show yet.
	written stored.Written[*policyv1alpha1.PolicyRevision]
	// judged is what came of accepting the content of bundles that hold no stored revision, by digest.
	judged map[string]accepted
	// recorded is what the last event on each bundle said.
	recorded map[string]string
	troubled map[string]*troubled
	flushed  time.Time
	// leases are the leases of other managers as they were seen, by name.
	leases map[string]sighting
}

// sighting is when a lease was seen to have been renewed, by the clock of this machine: those of others may go wrong.
type sighting struct {
	renewed metav1.MicroTime
	at      time.Time
}

func (c *reconciler) log(ctx context.Context) logr.Logger {
	return logf.FromContext(ctx).WithName("revision")
}

// Reconcile implements reconcile.Reconciler.
func (c *reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	again, err := c.rollOut(ctx)
	return reconcile.Result{RequeueAfter: again}, err
}

// raced makes a lost race a prompt second look.
func raced(err error) (again time.Duration, _ error) {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return conflictPause, nil
	}
	return 0, err
}

// rollOut is one look at everything; again is when to look again.
func (c *reconciler) rollOut(ctx context.Context) (again time.Duration, err error) {
	revisions, err := c.revisions(ctx)
	if err != nil {
		return raced(err)
	}
	bundles, revisions, err := c.readBundles(ctx, revisions)
	if err != nil {
		return raced(err)
	}
	c.recordBundles(bundles)
	look, err := c.look(ctx, bundles, revisions)
	if err != nil {
		c.giveBack(look, nil)
		return 0, err
	}
	o := rollout.Decide(look)
	if c.takeLast(look, o) {
		o = rollout.Decide(look)
	}
	if written, err := c.write(ctx, o, bundles, revisions); err != nil {
		c.giveBack(look, written)
		return raced(err)
	}
	return c.nextLook(o, revisions), nil
}

// nextLook is when to look again though nothing has changed.
func (c *reconciler) nextLook(o rollout.Outcome, revisions []policyv1alpha1.PolicyRevision) time.Duration {
	again := c.Interval
	counts := func(canary *policyv1alpha1.CanaryStatus) bool { return canary != nil && !canary.Paused }
	if slices.ContainsFunc(revisions, func(r policyv1alpha1.PolicyRevision) bool { return counts(r.Status.Canary) }) ||
		slices.ContainsFunc(o.Writes, func(w rollout.Write) bool { return counts(w.Status.Canary) }) {
		again = min(again, canaryInterval)
	}
	if o.Again > 0 {
		again = min(again, o.Again)
	}
	return again
}

// revisions lists what is stored, our own last writes included, and stores what must be there: the built-in revision, and
// the one in force should somebody have deleted it.
func (c *reconciler) revisions(ctx context.Context) ([]policyv1alpha1.PolicyRevision, error) {
	var list policyv1alpha1.PolicyRevisionList
	if err := c.Client.List(ctx, &list); err != nil {
		return nil, err
	}
	for i, r := range stored.Over(&c.written, list.Items) {
		if r != &list.Items[i] {
			list.Items[i] = *r.DeepCopy()
		}
	}
	for _, b := range []*bundle.Bundle{c.Store.embedded, c.Store.Active()} {
		if b.StandsIn {
			continue // its content is not that of the revision
		}
		if slices.ContainsFunc(list.Items, func(r policyv1alpha1.PolicyRevision) bool { return r.Name == b.Revision.Name }) {
			continue
		}
		switch r, err := c.ensure(ctx, b); {
		case err == nil:
			list.Items = append(list.Items, *r)
		case transient(err) || b == c.Store.Active():
			return nil, err
		default: // another one governs, and goes on being rolled out
			c.log(ctx).Error(err, "the built-in revision cannot be stored; it is tried again", "revision", b.Revision.Name)
		}
	}
	return list.Items, c.settleNumbers(ctx, list.Items)
}

// ensure stores a bundle that has to be there. One in force keeps its promotion.
func (c *reconciler) ensure(ctx context.Context, b *bundle.Bundle) (*policyv1alpha1.PolicyRevision, error) {
	held := &policyv1alpha1.PolicyRevision{}
	err := c.Live.Get(ctx, types.NamespacedName{Name: b.Revision.Name}, held)
	if !apierrors.IsNotFound(err) {
		return held, err
	}
	r, err := revisionOf(b)
	if err != nil {
		return nil, err
	}
	rule := c.Store.rule.Load()
	governs := rule.active == b && rule.promotion > 0
	if governs {
		r.SetPromotion(rule.promotion)
	}
	if err := c.Client.Create(ctx, r); err != nil {
		return nil, err
	}
	c.written.Wrote(r)
	if governs { // it is another object, which has its UID only now
		before := r.DeepCopy()
		r = r.DeepCopy()
		r.SetPromotion(rule.promotion)
		if err := c.patch(ctx, before, r); err != nil {
			return nil, err
		}
	}
	c.log(ctx).Info("stored", "revision", r.Name)
	return r, nil
}

// look gathers what a decision is made from.
func (c *reconciler) look(ctx context.Context, bundles []bundleConfigMap, revisions []policyv1alpha1.PolicyRevision) (rollout.Look, error) {
	look := rollout.Look{Now: c.Now(), Embedded: c.Store.embedded.Revision.Name, Last: c.Store.rule.Load().promotion}
	for i := range bundles {
		look.Heads = append(look.Heads, bundles[i].Head)
		if err := c.test(ctx, &bundles[i], revisions); err != nil {
			return look, err
		}
	}
	counted, err := c.count(ctx, revisions)
	if err != nil {
		return look, err
	}
	flush := look.Now.Sub(c.flushed) >= c.Interval
	if flush {
		c.flushed = look.Now
		c.Shadows.keep(func(name string) bool {
			return slices.ContainsFunc(c.Store.Shadows(), func(b *bundle.Bundle) bool { return b.Revision.Name == name })
		})
	}
	if missing := policyv1alpha1.PromotionMissing(revisions); missing != nil {
		look.Missing = missing.Name
	}
	awaited := c.Probation.Awaited()
	for i := range revisions {
		r := &revisions[i]
		s := rollout.Revision{Name: r.Name, Bundle: r.Spec.Bundle, Version: r.Spec.Version, Digest: r.Spec.Digest, Generation: r.Generation,
			CreatedAt: r.CreationTimestamp.Time, Promotion: r.Promotion(), Status: r.Status, Test: c.Store.tested(r.Name),
			Servers: counted.servers[r.Name], Troubles: counted.troubles[r.Name], Dropped: counted.dropped[r.Name],
			Unshown: awaited[r.Name]}
		if !r.PromotedHere() {
			s.Promotion, s.Elsewhere = 0, s.Promotion
		}
		if flush {
			s.Shadow = c.Shadows.take(r.Name)
		}
		look.Revisions = append(look.Revisions, s)
	}
	look.Replicas, err = c.replicas(ctx, look.Now)
	return look, err
}

// takeLast takes what shadows have shown that are about to become something else, and says whether that is anything: after
// this look nobody asks for it any more.
func (c *reconciler) takeLast(look rollout.Look, o rollout.Outcome) bool {
	some := false
	for i := range look.Revisions {
		r := &look.Revisions[i]
		leaves := slices.ContainsFunc(o.Writes, func(w rollout.Write) bool {
			return w.Revision == r.Name && w.Status.Stage != policyv1alpha1.StageShadow
		})
		if r.Status.Stage != policyv1alpha1.StageShadow || !leaves {
			continue
		}
		c.Shadows.giveBack(r.Name, r.Shadow)
		r.Shadow = c.Shadows.take(r.Name)
		some = some || r.Shadow.Evaluated > 0 || len(r.Shadow.Differences) > 0
	}
	return some
}

// test tests the revision of a bundle that asks for more than a draft, such as one that is gone back to after a long time. One that has
// no place among the shadows waits for that as well.
func (c *reconciler) test(ctx context.Context, h *bundleConfigMap, revisions []policyv1alpha1.PolicyRevision) error {
	i := slices.IndexFunc(revisions, func(r policyv1alpha1.PolicyRevision) bool { return r.Name == h.Revision })
	if i < 0 || h.Stage == policyv1alpha1.LabelledDraft || c.Store.tested(h.Revision) != nil {
		return nil
	}
	others := slices.DeleteFunc(slices.Clone(revisions), func(r policyv1alpha1.PolicyRevision) bool {
		return r.Status.Stage != policyv1alpha1.StageShadow || r.Name == h.Revision
	})
	if h.Stage == policyv1alpha1.LabelledShadow && len(others) >= policyv1alpha1.MaxShadows {
		return nil
	}
	_, err := c.Store.try(ctx, &revisions[i])
	return err
}

// giveBack keeps what shadows have shown for a look that can store it, but for those whose status was stored.
func (c *reconciler) giveBack(look rollout.Look, written map[string]bool) {
	for i := range look.Revisions {
		if r := &look.Revisions[i]; !written[r.Name] {
			c.Shadows.giveBack(r.Name, r.Shadow)
		}
	}
}

// replicas are the managers whose leases there are, this one included: it knows itself without a lease. A lease counts from when
// it was seen to be another than before, whatever time it bears. Those of managers that were killed long ago are taken away.
func (c *reconciler) replicas(ctx context.Context, now time.Time) ([]rollout.Replica, error) {
	self := rollout.Replica{Name: c.Identity, EngineVersion: bundle.EngineVersion, RenewedAt: now, Lasts: leaseLasts}
	self.Compiled, self.Refused = c.Store.loaded()
	all := []rollout.Replica{self}
	var leases coordinationv1.LeaseList
	if err := c.bundles.List(ctx, &leases, client.InNamespace(c.Namespace), client.HasLabels{policyv1alpha1.ReplicaLabel}); err != nil {
		return nil, err
	}
	seen := map[string]sighting{}
	defer func() { c.leases = seen }()
	for i := range leases.Items {
		r := replicaOf(&leases.Items[i])
		last, known := c.leases[leases.Items[i].Name]
		if renewed := metav1.NewMicroTime(r.RenewedAt); !known || !last.renewed.Equal(&renewed) {
			last = sighting{renewed, now}
		}
		seen[leases.Items[i].Name], r.RenewedAt = last, last.at
		switch {
		case r.Name == c.Identity:
		case r.RenewedAt.Add(r.Lasts + leaseForgotten).Before(now):
			if err := client.IgnoreNotFound(c.Client.Delete(ctx, &leases.Items[i])); err != nil {
				return nil, err
			}
		default:
			all = append(all, r)
		}
	}
	return all, nil
}

// write stores an outcome: the promotion first, because it decides; the status tells of it. It tells what has changed, and
// returns the revisions whose status was stored. One whose status is refused keeps nobody else from being written.
func (c *reconciler) write(ctx context.Context, o rollout.Outcome, bundles []bundleConfigMap, revisions []policyv1alpha1.PolicyRevision) (
	written map[string]bool, err error,
) {
	written = map[string]bool{}
	var refused []error
	for _, w := range o.Writes {
		i := slices.IndexFunc(revisions, func(r policyv1alpha1.PolicyRevision) bool { return r.Name == w.Revision })
		r := revisions[i].DeepCopy()
		if w.Promotion > 0 {
			before := r.DeepCopy()
			r.SetPromotion(w.Promotion)
			if err := c.patch(ctx, before, r); err != nil {
				return written, err
			}
			c.log(ctx).Info("promoted", "revision", r.Name, "promotion", w.Promotion, "by", w.Status.ActivatedBy)
		}
		before := r.DeepCopy()
		if r.Status = w.Status; !equality.Semantic.DeepEqual(before.Status, r.Status) {
			if err := c.Client.Status().Patch(ctx, r, mergepatch.Locked(before)); err != nil && transient(err) {
				return written, err
			} else if err != nil {
				refused = append(refused, fmt.Errorf("the status of PolicyRevision %s: %w", r.Name, err))
				continue
			}
			c.written.Wrote(r.DeepCopy())
		}
		written[r.Name] = true
		c.recordRevision(before, r, bundles)
	}
	return written, errors.Join(append(refused, c.takeAway(ctx, o.Obsolete, revisions))...)
}

// takeAway deletes revisions that nothing uses, as they were when that was decided.
func (c *reconciler) takeAway(ctx context.Context, names []string, revisions []policyv1alpha1.PolicyRevision) error {
	for i := range revisions {
		r := &revisions[i]
		if !slices.Contains(names, r.Name) {
			continue
		}
		as := client.Preconditions{UID: &r.UID, ResourceVersion: &r.ResourceVersion}
		if err := client.IgnoreNotFound(c.Client.Delete(ctx, r, as)); err != nil {
			return err
		}
		c.log(ctx).Info("deleted: nothing uses the revision, and there are enough to go back to", "revision", r.Name)
	}
	return nil
}

// patch stores metadata and spec under the optimistic lock, and notes what the cache may not show yet.
func (c *reconciler) patch(ctx context.Context, before, r *policyv1alpha1.PolicyRevision) error {
	if err := c.Client.Patch(ctx, r, mergepatch.Locked(before)); err != nil {
		return err
	}
	c.written.Wrote(r.DeepCopy())
	return nil
}
