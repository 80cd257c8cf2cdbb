// SPDX-License-Identifier: Apache-2.0

// Package readiness carries ServerReadinessRules out: it keeps the taints that follow from the conditions of servers.
package readiness

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/readiness/taints"
	"github.com/metalaw/metalaw/internal/mergepatch"
)

const (
	// conflictPause is how long the cache is given to show what somebody else wrote.
	conflictPause = 200 * time.Millisecond
	// ignoredPause is when to look again at a server that keeps a rule from going. Its own change comes first, as a rule.
	ignoredPause = time.Minute
	// pageSize is how many servers are read at a time when a rule goes.
	pageSize = 500
	// workers is how many servers are looked at side by side.
	workers = 4
)

// ReasonRuleKept is that of an event on a rule which cannot go yet.
const ReasonRuleKept = "RuleKept"

// Setup adds the controllers to the manager: one of servers, which writes taints, and one of rules, which lets a rule go.
func Setup(mgr manager.Manager) error {
	r := &reconciler{client: client.WithFieldOwner(mgr.GetClient(), loop.FieldOwner), live: mgr.GetAPIReader(),
		recorder: mgr.GetEventRecorder("metalaw-readiness")}
	if err := builder.ControllerManagedBy(mgr).Named("serverreadiness").
		For(&v1alpha1.Server{}, builder.WithPredicates(serverChanges())).
		Watches(&v1alpha1.ServerReadinessRule{}, handler.EnqueueRequestsFromMapFunc(r.ofRule), builder.WithPredicates(ruleChanges())).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(reconcile.Func(r.server)); err != nil {
		return err
	}
	return builder.ControllerManagedBy(mgr).Named("serverreadinessrule").
		For(&v1alpha1.ServerReadinessRule{}, builder.WithPredicates(ruleChanges())).
		Complete(reconcile.Func(r.rule))
}

type reconciler struct {
	client client.Client
	live   client.Reader
	// recorder may be nil.
	recorder events.EventRecorder
	// deciding is held to read rules and write what follows from them, and exclusively to look whether a rule that goes has left
	// anything: a write that was decided before the rule went is then seen.
	deciding sync.RWMutex
}

// server brings the taints of one server up to date.
func (r *reconciler) server(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r.deciding.RLock()
	defer r.deciding.RUnlock()
	s := &v1alpha1.Server{}
	if err := r.client.Get(ctx, req.NamespacedName, s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !s.DeletionTimestamp.IsZero() || v1alpha1.Ignored(s) {
		return ctrl.Result{}, nil
	}
	rules, err := r.inForce(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	return settled(r.settle(ctx, s, rules))
}

// inForce are the rules that have our finalizer, without which one could go and leave its taint, and that are not to be left alone.
func (r *reconciler) inForce(ctx context.Context) ([]taints.Rule, error) {
	var list v1alpha1.ServerReadinessRuleList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var rules []taints.Rule
	for i := range list.Items {
		object := &list.Items[i]
		if !controllerutil.ContainsFinalizer(object, v1alpha1.FinalizerServerReadinessRule) || v1alpha1.Ignored(object) {
			continue
		}
		rule, err := taints.RuleOf(object)
		if err != nil {
			logf.FromContext(ctx).Error(err, "the rule selects no server, because its selector cannot be read; delete it", "rule", rule.Name)
			continue
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// settle writes the taints that follow from the rules, where the server has others. The optimistic lock keeps what somebody else
// writes meanwhile, because the list of taints is replaced as a whole.
func (r *reconciler) settle(ctx context.Context, s *v1alpha1.Server, rules []taints.Rule) error {
	out := decide(s, rules)
	if !out.Changed {
		return nil
	}
	before := s.DeepCopy()
	s.Spec.Taints = out.Taints
	for _, key := range out.Completed {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, key, "true")
	}
	return r.client.Patch(ctx, s, mergepatch.Locked(before))
}

func decide(s *v1alpha1.Server, rules []taints.Rule) taints.Output {
	return taints.Decide(taints.Input{Labels: s.Labels, Annotations: s.Annotations, Conditions: s.Status.Conditions,
		Taints: s.Spec.Taints, Rules: rules})
}

// rule sets the finalizer of a rule, and takes it away once a rule that is deleted has left no taint.
func (r *reconciler) rule(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	rule := &v1alpha1.ServerReadinessRule{}
	if err := r.client.Get(ctx, req.NamespacedName, rule); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := rule.DeepCopy()
	switch deleted := !rule.DeletionTimestamp.IsZero(); {
	case v1alpha1.Ignored(rule):
		return ctrl.Result{}, nil
	case deleted && !controllerutil.ContainsFinalizer(rule, v1alpha1.FinalizerServerReadinessRule):
		return ctrl.Result{}, nil
	case deleted:
		left, err := r.clean(ctx, rule)
		if err != nil {
			return settled(err)
		}
		if left {
			return ctrl.Result{RequeueAfter: ignoredPause}, nil
		}
		controllerutil.RemoveFinalizer(rule, v1alpha1.FinalizerServerReadinessRule)
	case !controllerutil.AddFinalizer(rule, v1alpha1.FinalizerServerReadinessRule):
		return ctrl.Result{}, nil
	}
	return settled(r.client.Patch(ctx, rule, mergepatch.Locked(before)))
}

// clean takes the taint of a rule that goes off the servers which it selects. It says whether one keeps it, because it is to be left
// alone.
func (r *reconciler) clean(ctx context.Context, rule *v1alpha1.ServerReadinessRule) (left bool, err error) {
	tainted, rules, err := r.tainted(ctx, rule)
	if err != nil {
		return false, err
	}
	for i := range tainted {
		s := &tainted[i]
		if v1alpha1.Ignored(s) {
			left = true
			r.tellKept(rule, s)
			continue
		}
		if err := client.IgnoreNotFound(r.settle(ctx, s, rules)); err != nil {
			return false, err
		}
	}
	return left, nil
}

// tainted are the servers from which a rule that goes is to take its taint, as the API server has them: a cache may not show yet what
// was written a moment ago.
func (r *reconciler) tainted(ctx context.Context, rule *v1alpha1.ServerReadinessRule) ([]v1alpha1.Server, []taints.Rule, error) {
	r.deciding.Lock()
	defer r.deciding.Unlock()
	ends, err := taints.RuleOf(rule)
	if err != nil {
		return nil, nil, nil // a selector that cannot be read selected nothing
	}
	rules, err := r.inForce(ctx)
	if err != nil {
		return nil, nil, err
	}
	var found []v1alpha1.Server
	page := client.ListOptions{LabelSelector: ends.Selects, Limit: pageSize}
	for {
		var list v1alpha1.ServerList
		if err := r.live.List(ctx, &list, &page); err != nil {
			return nil, nil, fmt.Errorf("servers that rule %s selects: %w", rule.Name, err)
		}
		for i := range list.Items {
			if s := &list.Items[i]; s.DeletionTimestamp.IsZero() && decide(s, rules).Lifts(ends.Taint) {
				found = append(found, *s)
			}
		}
		if page.Continue = list.Continue; page.Continue == "" {
			return found, rules, nil
		}
	}
}

func (r *reconciler) tellKept(rule *v1alpha1.ServerReadinessRule, s *v1alpha1.Server) {
	if r.recorder != nil {
		r.recorder.Eventf(rule, s, corev1.EventTypeWarning, ReasonRuleKept, "Delete",
			"Server %s keeps the taint, and the rule with it, for as long as annotation %s has the server left alone; remove the annotation",
			s.Name, v1alpha1.OperationAnnotation)
	}
}

// settled turns a lost race into a prompt second look.
func settled(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}
