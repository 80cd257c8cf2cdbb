// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// story is the whole of it, in order.
func story(w *world) []chapter {
	if w.options.vm {
		return []chapter{bringUp(w), onboarding(w), tenancy(w), cleaning(w)}
	}
	return []chapter{
		bringUp(w),
		onboarding(w),
		claims(w),
		refusals(w),
		operations(w),
		maintenance(w),
		release(w),
	}
}

// tenant is the namespace of config/samples.
const tenant = "metal-demo"

const (
	rackLabel = "rack"
	poolLabel = "pool"
)

func (w *world) claim(ctx context.Context, name string) (*v1alpha1.ServerClaim, error) {
	claim := &v1alpha1.ServerClaim{}
	return claim, w.watch.Get(ctx, client.ObjectKey{Namespace: tenant, Name: name}, claim)
}

func (w *world) server(ctx context.Context, name string) (*v1alpha1.Server, error) {
	server := &v1alpha1.Server{}
	return server, w.watch.Get(ctx, client.ObjectKey{Name: name}, server)
}

// serverOf is the server that a claim has.
func (w *world) serverOf(ctx context.Context, claim string) (*v1alpha1.Server, error) {
	c, err := w.claim(ctx, claim)
	if err != nil {
		return nil, err
	}
	if c.Spec.ServerRef == nil {
		return nil, fmt.Errorf("claim %s has no server", claim)
	}
	return w.server(ctx, c.Spec.ServerRef.Name)
}

func (w *world) servers(ctx context.Context) ([]v1alpha1.Server, error) {
	var list v1alpha1.ServerList
	if err := w.watch.List(ctx, &list); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.Server) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// free is the last server of a rack that is Available; the policy takes the first ones.
func (w *world) free(ctx context.Context, rack string) (*v1alpha1.Server, error) {
	all, err := w.servers(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range slices.Backward(all) {
		if s.Labels[rackLabel] == rack && s.Status.State == v1alpha1.StateAvailable && s.Spec.ServerClaimRef == nil {
			return &s, nil
		}
	}
	return nil, fmt.Errorf("no server in rack %s is Available", rack)
}

// patch merges fields into an object, as kubectl patch --type merge does.
func (w *world) patch(ctx context.Context, object client.Object, fields map[string]any) error {
	text, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return w.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, text))
}

func (w *world) patchServer(ctx context.Context, name string, fields map[string]any) error {
	return w.patch(ctx, &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: name}}, fields)
}

// change gives the claim web another value in its spec.
func (w *world) change(field, value string) func(context.Context) error {
	return func(ctx context.Context) error {
		claim := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: web}}
		return w.patch(ctx, claim, map[string]any{"spec": map[string]any{field: value}})
	}
}

// operate asks for an operation by annotation.
func (w *world) operate(ctx context.Context, server, operation string) error {
	return w.patchServer(ctx, server, annotated(operation))
}

func annotated(operation string) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1alpha1.OperationAnnotation: operation}}}
}

// create makes a claim in the tenant's namespace and tells what the API server warns about.
func (w *world) create(ctx context.Context, name string, spec v1alpha1.ServerClaimSpec) error {
	claim := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name}, Spec: spec}
	err := w.client.Create(ctx, claim)
	w.sayWarnings()
	return err
}

// drop deletes a claim and tells what the API server warns about.
func (w *world) drop(ctx context.Context, name string) error {
	err := w.client.Delete(ctx, &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name}})
	w.sayWarnings()
	return err
}

// gone waits for the end of a claim.
func (w *world) gone(name string) func(context.Context) (sight, error) {
	return func(ctx context.Context) (sight, error) {
		claim, err := w.claim(ctx, name)
		if apierrors.IsNotFound(err) {
			return sight{done: true}, nil
		}
		return sight{seen: fmt.Sprintf("claim %s is still there, finalizers %v", name, claim.Finalizers)}, err
	}
}

// condition is "Type=Status Reason: message", or that there is none.
func condition(conditions []metav1.Condition, kind string) string {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		return "no condition " + kind
	}
	return fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
}

// stands says whether a condition has a status and a reason.
func stands(conditions []metav1.Condition, kind string, status metav1.ConditionStatus, reason string) bool {
	c := meta.FindStatusCondition(conditions, kind)
	return c != nil && c.Status == status && c.Reason == reason
}

// describe says how a server stands, for whoever has to find out what holds it.
func describe(s *v1alpha1.Server) string {
	text := fmt.Sprintf("%s is %s, power %s", s.Name, orNone(string(s.Status.State)), orNone(string(s.Status.PowerState)))
	for _, c := range s.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady || c.Type == v1alpha1.ConditionPolicyHalted && c.Status == metav1.ConditionTrue ||
			c.Type == v1alpha1.ConditionBMCReachable && c.Status != metav1.ConditionTrue {
			text += fmt.Sprintf("; %s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	return text
}

func orNone(word string) string {
	if word == "" {
		return "unknown"
	}
	return word
}

// warnings are what the API server warns about, until somebody tells them.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := w.texts
	w.texts = nil
	return texts
}

func (w *world) sayWarnings() {
	for _, text := range w.warnings.take() {
		w.view.say("Warning: " + text)
	}
}
