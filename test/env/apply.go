// SPDX-License-Identifier: Apache-2.0

package env

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"
)

const (
	fieldManager = "metalaw-env"
	kindCRD      = "CustomResourceDefinition"

	kindFleetControl = "FleetControl"
	// establishLimit is the time the API server gets to serve an accepted CRD.
	establishLimit = 10 * time.Second
)

// ApplyKustomize renders a kustomization (a path relative to the repository, or absolute) and
// applies it. See Apply.
func (e *Env) ApplyKustomize(ctx context.Context, dir string) error {
	objects, err := e.Render(ctx, dir)
	if err != nil {
		return err
	}
	if !e.opts.FleetControl {
		objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kindFleetControl })
	}
	if err := e.Apply(ctx, objects); err != nil {
		return fmt.Errorf("apply %s: %w", dir, err)
	}
	return nil
}

// Render returns the objects of a kustomization in the order in which they can be applied.
func (e *Env) Render(ctx context.Context, dir string) ([]*unstructured.Unstructured, error) {
	if !filepath.IsAbs(dir) {
		root, err := RepoRoot()
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(root, dir)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, e.bins.kubectl, "kustomize", dir)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("render %s: %w: %s", dir, err, strings.TrimSpace(stderr.String()))
	}
	// kustomize reports what it deprecates there and goes on.
	if stderr.Len() > 0 {
		return nil, fmt.Errorf("render %s: kustomize warns: %s", dir, strings.TrimSpace(stderr.String()))
	}
	objects, err := parseObjects(&stdout)
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", dir, err)
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	return objects, nil
}

// Apply applies the objects server-side and in order, with strict field validation and as owner
// of every field named. It fails when the API server warns about any of them, with all that was
// wrong. Applying again changes nothing. CRDs are served when it returns.
func (e *Env) Apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	applier, err := e.newApplier()
	if err != nil {
		return err
	}
	var problems []error
	crds := false
	for _, object := range objects {
		err := applier.apply(ctx, object)
		if err == nil && object.GetKind() == kindCRD {
			crds = true
			err = applier.awaitEstablished(ctx, object.GetName())
		}
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if crds && e.controllers != nil {
		return e.restartControllers(ctx)
	}
	return nil
}

// rank puts first what other objects live in, and last what could refuse them.
func rank(object *unstructured.Unstructured) int {
	switch object.GetKind() {
	case "Namespace":
		return 0
	case kindCRD:
		return 1
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		return 3
	default:
		return 2
	}
}

func parseObjects(r io.Reader) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(r))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// applier applies objects of any kind, also of kinds that are served since a moment ago.
type applier struct {
	dynamic  dynamic.Interface
	mapper   meta.RESTMapper
	warnings *warningCollector
	// tolerates says which warnings are no errors; nil tolerates none.
	tolerates func(string) bool
}

func (e *Env) newApplier() (*applier, error) {
	warnings := &warningCollector{}
	config := rest.CopyConfig(e.Config)
	config.WarningHandlerWithContext = warnings
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, err
	}
	return &applier{dynamic: dynamicClient, mapper: mapper, warnings: warnings, tolerates: e.opts.Tolerates}, nil
}

func (a *applier) apply(ctx context.Context, object *unstructured.Unstructured) error {
	name := object.GetKind() + " " + strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
	gvk := object.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	body, err := object.MarshalJSON()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	a.warnings.take()
	_, err = a.dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace()).Patch(ctx, object.GetName(),
		types.ApplyPatchType, body, metav1.PatchOptions{
			FieldManager:    fieldManager,
			Force:           ptr.To(true),
			FieldValidation: metav1.FieldValidationStrict,
		})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	warnings := a.warnings.take()
	if a.tolerates != nil {
		warnings = slices.DeleteFunc(warnings, a.tolerates)
	}
	if len(warnings) > 0 {
		return fmt.Errorf("%s: the API server warns: %s", name, strings.Join(warnings, "; "))
	}
	return nil
}

func (a *applier) awaitEstablished(ctx context.Context, name string) error {
	crds := a.dynamic.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	err := wait.PollUntilContextTimeout(ctx, readyPoll, establishLimit, true, func(ctx context.Context) (bool, error) {
		crd, err := crds.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return established(crd)
	})
	if err != nil {
		return fmt.Errorf("%s %s is not served: %w", kindCRD, name, err)
	}
	return nil
}

// established also refuses a CRD that is served with a schema that is not structural.
func established(object *unstructured.Unstructured) (bool, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &crd); err != nil {
		return false, err
	}
	served := false
	for _, c := range crd.Status.Conditions {
		isTrue := c.Status == apiextensionsv1.ConditionTrue
		switch c.Type {
		case apiextensionsv1.NonStructuralSchema:
			if isTrue {
				return false, fmt.Errorf("its schema is not structural: %s", c.Message)
			}
		case apiextensionsv1.Established:
			served = isTrue
		}
	}
	return served, nil
}

// warningCollector keeps what the API server warns about.
type warningCollector struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warningCollector) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	if code != 299 || text == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// take returns the warnings since the last call.
func (w *warningCollector) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := w.texts
	w.texts = nil
	return texts
}
