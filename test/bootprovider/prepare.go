// SPDX-License-Identifier: Apache-2.0

package bootprovider

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

// Conditions that boot-operator sets, and ours of the same kind.
const (
	// conditionIgnition says whether the ignition was found.
	conditionIgnition = "IgnitionDataFetched"
	// conditionImage says whether the image can be booted.
	conditionImage = "ImageValidation"
)

// ignitionKey is where a Secret holds the ignition.
const ignitionKey = "ignition"

// preparer sets boot configurations Ready, or Error.
type preparer struct {
	client client.Client
	delay  time.Duration
}

func (p *preparer) setup(m ctrl.Manager) error {
	anyName := true // several providers may run in one process, in tests
	return ctrl.NewControllerManagedBy(m).
		Named("bootprovider").
		For(&metalv1alpha1.ServerBootConfiguration{}).
		Watches(&metalv1alpha1.Server{}, handler.EnqueueRequestsFromMapFunc(p.byServer), builder.WithPredicates(becameKnown())).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(p.bySecret)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 8, SkipNameValidation: &anyName}).
		Complete(p)
}

// becameKnown leaves out the changes of a server from which nothing follows. Each would have its boot configuration judged anew, and
// refused where the cache does not show yet what was written a moment ago.
func becameKnown() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return isKnown(e.ObjectOld) != isKnown(e.ObjectNew) }}
}

// isKnown says whether the network interfaces of a server are known: without them no machine could be told from another on the network.
func isKnown(o client.Object) bool {
	server, ok := o.(*metalv1alpha1.Server)
	return ok && len(server.Status.NetworkInterfaces) > 0
}

func (p *preparer) byServer(ctx context.Context, server client.Object) []reconcile.Request {
	return p.configs(ctx, client.MatchingFields{indexConfigServer: server.GetName()})
}

func (p *preparer) bySecret(ctx context.Context, secret client.Object) []reconcile.Request {
	return p.configs(ctx, client.InNamespace(secret.GetNamespace()), client.MatchingFields{indexConfigSecret: secret.GetName()})
}

func (p *preparer) configs(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	var list metalv1alpha1.ServerBootConfigurationList
	if err := p.client.List(ctx, &list, options...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "boot configurations cannot be listed")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// Reconcile prepares one boot. What is Ready stays so until the manager sets it Pending. Error is not the end: a Secret
// may be seen later than the configuration that names it, and is looked for again when it appears.
func (p *preparer) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var config metalv1alpha1.ServerBootConfiguration
	if err := p.client.Get(ctx, request.NamespacedName, &config); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !config.DeletionTimestamp.IsZero() || !waiting(config.Status.State) {
		return ctrl.Result{}, nil
	}
	known, err := p.serverKnown(ctx, &config)
	if err != nil || !known {
		return ctrl.Result{}, err // the watch of Servers wakes it
	}
	if left := p.delay - time.Since(config.CreationTimestamp.Time); p.delay > 0 && left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	before := config.DeepCopy()
	if err := p.judge(ctx, &config); err != nil {
		return ctrl.Result{}, err
	}
	if equality.Semantic.DeepEqual(before.Status, config.Status) {
		return ctrl.Result{}, nil
	}
	// The lock makes sure that what is judged is what waits.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := p.client.Status().Patch(ctx, &config, patch); err != nil {
		if apierrors.IsConflict(err) {
			return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{}, nil
}

func waiting(state metalv1alpha1.ServerBootConfigurationState) bool {
	return state != metalv1alpha1.ServerBootConfigurationStateReady
}

// serverKnown says whether the server exists and is known.
func (p *preparer) serverKnown(ctx context.Context, config *metalv1alpha1.ServerBootConfiguration) (bool, error) {
	var server metalv1alpha1.Server
	err := p.client.Get(ctx, client.ObjectKey{Name: config.Spec.ServerRef.Name}, &server)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading server %s: %w", config.Spec.ServerRef.Name, err)
	}
	return isKnown(&server), nil
}

// judge sets state and conditions in memory.
func (p *preparer) judge(ctx context.Context, config *metalv1alpha1.ServerBootConfiguration) error {
	image := metav1.Condition{Type: conditionImage, Status: metav1.ConditionTrue, Reason: "ImageGiven", Message: "An image is named."}
	if config.Spec.Image == "" {
		image.Status, image.Reason = metav1.ConditionFalse, "ImageMissing"
		image.Message = "No image is named; set spec.image."
	}
	ignition, err := p.ignitionCondition(ctx, config)
	if err != nil {
		return err
	}
	config.Status.State = metalv1alpha1.ServerBootConfigurationStateReady
	for _, condition := range []metav1.Condition{image, ignition} {
		condition.ObservedGeneration = config.Generation
		meta.SetStatusCondition(&config.Status.Conditions, condition)
		if condition.Status != metav1.ConditionTrue {
			config.Status.State = metalv1alpha1.ServerBootConfigurationStateError
		}
	}
	return nil
}

func (p *preparer) ignitionCondition(ctx context.Context, config *metalv1alpha1.ServerBootConfiguration) (metav1.Condition, error) {
	condition := metav1.Condition{Type: conditionIgnition, Status: metav1.ConditionTrue, Reason: "NotAsked", Message: "No ignition is asked for."}
	if config.Spec.IgnitionSecretRef == nil {
		return condition, nil
	}
	_, err := ignitionOf(ctx, p.client, config)
	if err == nil {
		condition.Reason, condition.Message = "Fetched", "The ignition was found."
		return condition, nil
	}
	if !apierrors.IsNotFound(err) {
		return condition, err
	}
	condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "IgnitionMissing", err.Error()
	return condition, nil
}

// ignitionOf reads the ignition of a boot configuration; nil where none is asked for. A Secret that is not there, or
// has no ignition, is a NotFound error.
func ignitionOf(ctx context.Context, reader client.Reader, config *metalv1alpha1.ServerBootConfiguration) (*string, error) {
	ref := config.Spec.IgnitionSecretRef
	if ref == nil {
		return nil, nil
	}
	var secret corev1.Secret
	if err := reader.Get(ctx, client.ObjectKey{Namespace: config.Namespace, Name: ref.Name}, &secret); err != nil {
		return nil, err
	}
	content, has := secret.Data[ignitionKey]
	if !has {
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), config.Namespace+"/"+ref.Name+", key "+ignitionKey)
	}
	text := string(content)
	return &text, nil
}
