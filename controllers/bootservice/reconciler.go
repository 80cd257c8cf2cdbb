// SPDX-License-Identifier: Apache-2.0

package bootservice

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/bootserver"
	"github.com/metalaw/metalaw/internal/bootserver/images"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/internal/mergepatch"
)

// The indexes of this service alone.
const (
	byMedia = "media-name"
	byImage = "boot-image"
)

// retry is how long a boot that cannot be served waits for what is missing. Nothing tells of a Secret or an image that comes:
// the service lists no Secrets.
const retry = 15 * time.Second

// Reconciler prepares boot configurations.
type Reconciler struct {
	*Source
	// BootURL and MediaURL are where machines and BMCs reach the service; empty serves them nothing.
	BootURL, MediaURL string
}

// Setup adds indexes and, on the leader, the controller.
func (r *Reconciler) Setup(ctx context.Context, mgr ctrl.Manager, workers int) error {
	if err := Index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	anyName := true // several may run in one process, in tests
	return ctrl.NewControllerManagedBy(mgr).
		Named("bootservice").
		For(&v1alpha1.ServerBootConfiguration{}).
		Watches(&v1alpha1.Server{}, handler.EnqueueRequestsFromMapFunc(r.ofServer), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, SkipNameValidation: &anyName}).
		Complete(r)
}

// Index declares the indexes that a Source asks by.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	for _, i := range indexes() {
		if err := indexer.IndexField(ctx, i.object, i.field, i.values); err != nil {
			return fmt.Errorf("index %s: %w", i.field, err)
		}
	}
	return nil
}

type index struct {
	object client.Object
	field  string
	values client.IndexerFunc
}

func indexes() []index {
	boot := &v1alpha1.ServerBootConfiguration{}
	annotated := func(name string, read func(string) string) client.IndexerFunc {
		return func(o client.Object) []string { return value(read(o.GetAnnotations()[name])) }
	}
	return []index{
		{&v1alpha1.Server{}, fieldindex.ServerBySystemUUID, func(o client.Object) []string {
			return value(strings.ToLower(o.(*v1alpha1.Server).Spec.SystemUUID)) //nolint:forcetypeassert // the index is of servers
		}},
		{boot, fieldindex.BootConfigurationByServer, func(o client.Object) []string {
			return value(o.(*v1alpha1.ServerBootConfiguration).Spec.ServerRef.Name) //nolint:forcetypeassert // as above
		}},
		{boot, byMedia, annotated(v1alpha1.MediaURLAnnotation, mediaNameOf)},
		{boot, byImage, annotated(v1alpha1.BootImageAnnotation, func(image string) string { return image })},
	}
}

func value(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// mediaNameOf is the name of an ISO in its URL; empty where there is none.
func mediaNameOf(url string) string {
	_, name, found := strings.Cut(url, bootserver.MediaPath)
	name, is := strings.CutSuffix(name, ".iso")
	if !found || !is || strings.Contains(name, "/") {
		return ""
	}
	return name
}

func (r *Reconciler) ofServer(ctx context.Context, server client.Object) []reconcile.Request {
	var list v1alpha1.ServerBootConfigurationList
	if err := r.Client.List(ctx, &list, client.MatchingFields{fieldindex.BootConfigurationByServer: server.GetName()}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "boot configurations cannot be listed", "server", server.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// Reconcile prepares one boot configuration that its server names. One that is not in force is left as it is.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	boot := &v1alpha1.ServerBootConfiguration{}
	if err := r.Client.Get(ctx, request.NamespacedName, boot); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !boot.DeletionTimestamp.IsZero() || v1alpha1.Ignored(boot) {
		return ctrl.Result{}, nil
	}
	server := &v1alpha1.Server{}
	err := r.Client.Get(ctx, types.NamespacedName{Name: boot.Spec.ServerRef.Name}, server)
	if apierrors.IsNotFound(err) || err == nil && !named(server, boot) {
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	in, err := r.gather(ctx, server, boot)
	if err != nil {
		return ctrl.Result{}, err
	}
	out := Decide(in)
	if err := r.write(ctx, boot, out.Boot); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if out.Retry {
		return ctrl.Result{RequeueAfter: retry}, nil
	}
	return ctrl.Result{}, nil
}

// gather resolves the image, brings its layers here, and reads the ignition.
func (r *Reconciler) gather(ctx context.Context, server *v1alpha1.Server, boot *v1alpha1.ServerBootConfiguration) (Input, error) {
	in := Input{Boot: boot, UUID: server.Spec.SystemUUID, PXE: r.BootURL != "", Media: r.MediaURL != "", MediaURL: r.MediaURL}
	raw := make([]byte, 32)
	rand.Read(raw) // it never fails
	in.Name = base64.RawURLEncoding.EncodeToString(raw)

	reference := boot.Spec.Image
	if ready(boot) && boot.Status.ObservedGeneration == boot.Generation { // a tag may have moved; what is Ready stays what it is
		reference = boot.Annotations[v1alpha1.BootImageAnnotation]
	}
	if reference == "" {
		in.ImageErr = fmt.Errorf("spec.image of %s/%s is empty; name a boot image", boot.Namespace, boot.Name)
		return in, nil
	}
	if in.Image, in.ImageErr = r.Images.Resolve(ctx, reference); in.ImageErr == nil {
		in.ImageErr = r.Images.Fetch(ctx, in.Image)
	}
	if in.ImageErr != nil {
		return in, ctx.Err()
	}
	in.IgnitionErr = r.judgeIgnition(ctx, server, boot, in.Image)
	return in, ctx.Err()
}

func (r *Reconciler) judgeIgnition(ctx context.Context, server *v1alpha1.Server, boot *v1alpha1.ServerBootConfiguration, image images.Image) error {
	text, err := r.ignition(ctx, boot)
	if err != nil {
		return err
	}
	if r.MediaURL == "" || !image.Has(images.UKI) {
		return nil
	}
	_, err = content(text, bootserver.Boot{UUID: server.Spec.SystemUUID})
	return err
}

// write stores the annotations before the state, so that what is Ready says where it is.
func (r *Reconciler) write(ctx context.Context, before, after *v1alpha1.ServerBootConfiguration) error {
	if !equality.Semantic.DeepEqual(before.Annotations, after.Annotations) {
		wanted := before.DeepCopy()
		wanted.Annotations = after.Annotations
		patch := mergepatch.Locked(before)
		if err := r.Client.Patch(ctx, wanted, patch); err != nil {
			return err
		}
		before = wanted.DeepCopy()
	}
	wanted := before.DeepCopy()
	wanted.Status = after.Status
	if equality.Semantic.DeepEqual(before.Status, wanted.Status) {
		return nil
	}
	return r.Client.Status().Patch(ctx, wanted, mergepatch.Locked(before))
}
