// SPDX-License-Identifier: Apache-2.0

package bootprovider

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

// preparer sets boot configurations Ready or Error, as boot-operator's controllers do. It watches them and Secrets; a
// change of a Server wakes nobody.
type preparer struct {
	client client.Client
	boots  *boots
	delay  time.Duration
}

func (p *preparer) setup(m ctrl.Manager) error {
	anyName := true // several providers may run in one process, in tests
	return ctrl.NewControllerManagedBy(m).
		Named("bootprovider").
		For(&metalv1alpha1.ServerBootConfiguration{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(p.bySecret)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 8, SkipNameValidation: &anyName}).
		Complete(p)
}

func (p *preparer) bySecret(ctx context.Context, secret client.Object) []reconcile.Request {
	var list metalv1alpha1.ServerBootConfigurationList
	err := p.client.List(ctx, &list, client.InNamespace(secret.GetNamespace()), client.MatchingFields{indexConfigSecret: secret.GetName()})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "boot configurations cannot be listed")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// Reconcile prepares one boot and writes what came of it, without a lock and with the whole list of conditions, as
// boot-operator does. Neither Ready nor Error is the end: each change of the configuration or its Secret is judged anew.
func (p *preparer) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var config metalv1alpha1.ServerBootConfiguration
	err := p.client.Get(ctx, request.NamespacedName, &config)
	if apierrors.IsNotFound(err) || (err == nil && !config.DeletionTimestamp.IsZero()) {
		p.boots.drop(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	var server metalv1alpha1.Server
	if err := p.client.Get(ctx, client.ObjectKey{Name: config.Spec.ServerRef.Name}, &server); err != nil {
		return ctrl.Result{}, fmt.Errorf("reading server %s: %w", config.Spec.ServerRef.Name, err)
	}
	if left := p.delay - time.Since(config.CreationTimestamp.Time); p.delay > 0 && left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	before := config.DeepCopy()
	imageErr := resolves(config.Spec.Image)
	if imageErr == nil {
		p.boots.put(prepare(&config, &server))
	}
	secretErr := p.secretStands(ctx, &config)
	if secretErr != nil && !errors.Is(secretErr, errIgnitionMissing) {
		return ctrl.Result{}, secretErr
	}
	judge(&config, imageErr, secretErr)
	if equality.Semantic.DeepEqual(before.Status, config.Status) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(p.client.Status().Patch(ctx, &config, client.MergeFrom(before)))
}

// judge sets state and conditions in memory: a failed image has a condition, a missing Secret has none.
func judge(config *metalv1alpha1.ServerBootConfiguration, imageErr, secretErr error) {
	switch {
	case imageErr != nil:
		config.Status.State = metalv1alpha1.ServerBootConfigurationStateError
		meta.SetStatusCondition(&config.Status.Conditions, metav1.Condition{Type: metalv1alpha1.ConditionImageValidation,
			Status: metav1.ConditionFalse, Reason: "ValidationFailed", Message: imageErr.Error(), ObservedGeneration: config.Generation})
	case secretErr != nil:
		config.Status.State = metalv1alpha1.ServerBootConfigurationStateError
	default:
		config.Status.State = metalv1alpha1.ServerBootConfigurationStateReady
		meta.RemoveStatusCondition(&config.Status.Conditions, metalv1alpha1.ConditionImageValidation)
	}
}

// resolves says what is wrong with an image. There is no registry here: every image that is named resolves.
func resolves(image string) error {
	if image == "" {
		return errors.New("invalid image reference: spec.image is empty")
	}
	return nil
}

// errIgnitionMissing says that a Secret is not there, or has no ignition.
var errIgnitionMissing = errors.New("no ignition")

// secretStands sees whether the Secret that a boot configuration names is there and has an ignition; what that text is
// worth shows only when a machine asks for it.
func (p *preparer) secretStands(ctx context.Context, config *metalv1alpha1.ServerBootConfiguration) error {
	if config.Spec.IgnitionSecretRef == nil {
		return nil
	}
	_, _, err := ignitionOf(ctx, p.client, client.ObjectKey{Namespace: config.Namespace, Name: config.Spec.IgnitionSecretRef.Name})
	return err
}

// ignitionOf reads text and format out of a Secret.
func ignitionOf(ctx context.Context, reader client.Reader, key client.ObjectKey) (text []byte, format string, err error) {
	var secret corev1.Secret
	err = reader.Get(ctx, key, &secret)
	if apierrors.IsNotFound(err) {
		return nil, "", fmt.Errorf("secret %s: %w", key, errIgnitionMissing)
	}
	if err != nil {
		return nil, "", err
	}
	text, has := secret.Data["ignition"]
	if !has {
		return nil, "", fmt.Errorf("secret %s has no key ignition: %w", key, errIgnitionMissing)
	}
	return text, string(secret.Data["format"]), nil
}
