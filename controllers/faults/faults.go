// SPDX-License-Identifier: Apache-2.0

// Package faults proposes servers with broken parts to go out of service, and cordons a few of them. It looks at all servers at once,
// because the limit of cordons counts them.
package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/faults/propose"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/trigger"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/mergepatch"
)

const (
	// conflictPause is how long the cache is given to show what somebody else wrote.
	conflictPause = 200 * time.Millisecond
	// cacheLag is how long a cordon of this process counts that the cache does not show: it may have been refused.
	cacheLag = time.Minute
)

// Bundles is the policy in force.
type Bundles interface {
	Active() *bundle.Bundle
	Changed(call func())
}

// Options is what the controller needs from outside.
type Options struct {
	Bundles Bundles
	// ObserveOnly has the manager propose and cordon nothing.
	ObserveOnly bool
	// Now is the clock; time.Now where it is nil.
	Now func() time.Time
}

// Setup adds the controller to the manager.
func Setup(mgr manager.Manager, o Options) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	woken := &trigger.Source{}
	o.Bundles.Changed(func() { woken.Trigger(pass.Name) })
	r := &reconciler{client: client.WithFieldOwner(mgr.GetClient(), loop.FieldOwner), Options: o, settings: settingsOf,
		recorder: mgr.GetEventRecorder("metalaw-faults"), cordoned: map[string]time.Time{}}
	return builder.ControllerManagedBy(mgr).Named("faults").
		Watches(&v1alpha1.Server{}, handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: pass}}
		}), builder.WithPredicates(concerns())).
		WatchesRawSource(woken).
		Complete(r)
}

// pass is the one request: a look at all servers.
var pass = client.ObjectKey{Name: "servers"}

type reconciler struct {
	Options
	client   client.Client
	settings func(*bundle.Bundle) propose.Settings
	// recorder may be nil.
	recorder events.EventRecorder
	// cordoned is when this process cordoned servers, until the cache shows it: the limit holds although a cache lags. There is one worker.
	cordoned map[string]time.Time
}

// settingsOf is what a bundle says; where there is none nothing is proposed.
func settingsOf(b *bundle.Bundle) propose.Settings {
	if b == nil {
		return propose.Settings{}
	}
	s := propose.Settings{MostPercent: b.Settings.Decommission.CordonMostPercent}
	for _, word := range b.Settings.Decommission.Propose {
		s.Faults = append(s.Faults, v1alpha1.HardwareFault(word))
	}
	return s
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var list v1alpha1.ServerList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, err
	}
	in := propose.Input{Now: r.Now(), Settings: r.settings(r.Bundles.Active())}
	if r.ObserveOnly {
		in.Settings.MostPercent = 0
	}
	byName := map[string]*v1alpha1.Server{}
	for i := range list.Items {
		byName[list.Items[i].Name] = &list.Items[i]
		in.Servers = append(in.Servers, r.known(&list.Items[i]))
	}
	out := propose.Decide(in)
	lost, failed := false, error(nil)
	for _, v := range out.Verdicts {
		switch err := r.carryOut(ctx, byName[v.Name], v, in.Now); {
		case apierrors.IsConflict(err):
			lost = true
		case client.IgnoreNotFound(err) != nil: // the others do not wait for it
			failed = errors.Join(failed, fmt.Errorf("server %s: %w", v.Name, err))
		}
	}
	switch {
	case failed != nil:
		return ctrl.Result{}, failed
	case lost:
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	case !out.Again.IsZero():
		return ctrl.Result{RequeueAfter: max(out.Again.Sub(in.Now), time.Second)}, nil
	}
	return ctrl.Result{}, nil
}

// known is what the decision depends on of a server. What is in the cache is not changed.
func (r *reconciler) known(s *v1alpha1.Server) propose.Server {
	_, decided := s.Annotations[v1alpha1.DecommissionAnnotation]
	at := cordonedAt(s)
	if mine, ok := r.cordoned[s.Name]; ok {
		if at.Before(mine) && r.Now().Sub(mine) < cacheLag {
			at = mine
		} else {
			delete(r.cordoned, s.Name)
		}
	}
	return propose.Server{Name: s.Name, Model: modelOf(s), Parts: s.Status.FaultyParts,
		Claimed: s.Spec.ServerClaimRef != nil, Unclaimable: s.Spec.Unclaimable,
		Ours:       s.Annotations[v1alpha1.UnclaimableReasonAnnotation] == v1alpha1.UnclaimableFaulty,
		CordonedAt: at, Decided: decided || s.Status.State == v1alpha1.StateDecommissioned,
		LeftAlone: !s.DeletionTimestamp.IsZero() || v1alpha1.Ignored(s)}
}

// modelOf tells servers of one model from others. Those of which no model is known count as one.
func modelOf(s *v1alpha1.Server) string { return s.Status.Manufacturer + " " + s.Status.Model }

// cordonedAt is when the manager cordoned a server last. What cannot be read counts as never.
func cordonedAt(s *v1alpha1.Server) time.Time {
	at, err := time.Parse(time.RFC3339, s.Annotations[v1alpha1.FaultCordonedAtAnnotation])
	if err != nil {
		return time.Time{}
	}
	return at
}

// carryOut writes what is not so yet: the cordon first, and what the condition says of it afterwards.
func (r *reconciler) carryOut(ctx context.Context, cached *v1alpha1.Server, v propose.Verdict, now time.Time) error {
	if !v.Cordon && agrees(cached, v.Condition) {
		return nil
	}
	s := cached.DeepCopy()
	if v.Cordon {
		if err := r.cordon(ctx, s, now); err != nil {
			return err
		}
	}
	before := s.DeepCopy()
	if v.Condition == nil {
		meta.RemoveStatusCondition(&s.Status.Conditions, v1alpha1.ConditionFaultyHardware)
	} else {
		c := *v.Condition
		c.ObservedGeneration, c.LastTransitionTime = s.Generation, metav1.NewTime(now)
		meta.SetStatusCondition(&s.Status.Conditions, c)
	}
	if err := r.client.Status().Patch(ctx, s, mergepatch.Locked(before)); err != nil {
		return err
	}
	r.tell(s, v)
	return nil
}

// cordon keeps every new claim away. That it may have been written is remembered before it is.
func (r *reconciler) cordon(ctx context.Context, s *v1alpha1.Server, now time.Time) error {
	before := s.DeepCopy()
	s.Spec.Unclaimable = true
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.UnclaimableReasonAnnotation, v1alpha1.UnclaimableFaulty)
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.FaultCordonedAtAnnotation, now.UTC().Format(time.RFC3339))
	r.cordoned[s.Name] = now.Truncate(time.Second)
	err := r.client.Patch(ctx, s, mergepatch.Locked(before))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		delete(r.cordoned, s.Name)
	}
	return err
}

// agrees says that a server has the condition that it is to have. Its times and its generation are no reason to write.
func agrees(s *v1alpha1.Server, want *metav1.Condition) bool {
	has := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionFaultyHardware)
	if has == nil || want == nil {
		return has == nil && want == nil
	}
	return has.Status == want.Status && has.Reason == want.Reason && has.Message == want.Message
}

func (r *reconciler) tell(s *v1alpha1.Server, v propose.Verdict) {
	if r.recorder == nil || v.Condition == nil {
		return
	}
	kind := corev1.EventTypeWarning
	if v.Condition.Status == metav1.ConditionFalse {
		kind = corev1.EventTypeNormal
	}
	r.recorder.Eventf(s, nil, kind, v.Condition.Reason, "Propose", "%s", loop.Shortened(v.Condition.Message, loop.MaxNote))
}
