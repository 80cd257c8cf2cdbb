// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
)

// asked counts how many bundles were compiled.
type asked struct {
	times int
	// takes is how long a bundle takes, unless it is given less.
	takes time.Duration
}

// accept plays the acceptance of bundles: those whose lifecycle says "broken" have an error in it, those that say "doubtful" a
// warning, and those that say "endless" take too long. What is left out is filled in.
func (a *asked) accept(ctx context.Context, files bundle.Files) (*bundle.Bundle, diag.List, error) {
	a.times++
	if a.takes > 0 {
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(a.takes):
		}
	}
	var found diag.List
	text := string(files["lifecycle.yaml"])
	for n := range strings.Count(text, "broken") {
		found = append(found, diag.Diagnostic{Severity: diag.Error, Code: "lifecycle-state", File: "lifecycle.yaml", Line: 3 + n, Column: 7,
			Rule: "Claimed", Message: `there is no state "Nowhere"`, Hint: "write the name of a state"})
	}
	switch {
	case strings.Contains(text, "endless"):
		return nil, nil, context.DeadlineExceeded
	case strings.Contains(text, "doubtful"):
		found = append(found, diag.Diagnostic{Severity: diag.Warning, Code: "w", File: "lifecycle.yaml", Line: 1, Column: 1, Message: "it never\nfires"})
	}
	if found.HasErrors() {
		return nil, found, nil
	}
	found = append(found, diag.Diagnostic{Severity: diag.Info, Code: "i", File: "lifecycle.yaml", Message: "the order decides"})
	b := &bundle.Bundle{Manifest: bundle.Manifest{Name: "fleet", Version: "1.0.0"}}
	if strings.Contains(string(files["bundle.yaml"]), "1.1.0") {
		b.Version = "1.1.0"
	}
	whole := filled(files)
	b.Revision = engine.Revision{Version: b.Version, Digest: whole.Digest(), Name: bundle.RevisionName(b.Name, b.Version, whole.Digest())}
	return b, found, nil
}

func filesOf(cm *corev1.ConfigMap) bundle.Files {
	files := bundle.Files{}
	for name, text := range cm.Data {
		files[name] = []byte(text)
	}
	return files
}

func filled(files bundle.Files) bundle.Files {
	whole := bundle.Files{"macprefixes.yaml": []byte("shipped")}
	for name, data := range files {
		whole[name] = data
	}
	return whole
}

// bundleHead is the head of bundle fleet 1.0.0, a draft.
func bundleHead(change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "metalaw-system", Name: "fleet-1",
		Labels: map[string]string{policyv1alpha1.BundleLabel: "fleet"}}, Data: map[string]string{"bundle.yaml": fleetHead}}
	for _, c := range change {
		c(cm)
	}
	return cm
}

func staged(stage string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { cm.Labels[policyv1alpha1.StageLabel] = stage }
}

func withLabel(key, value string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { cm.Labels[key] = value }
}

func withoutLabel(key string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { delete(cm.Labels, key) }
}

func noted(key, value string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { metav1.SetMetaDataAnnotation(&cm.ObjectMeta, key, value) }
}

func holds(key, text string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { cm.Data[key] = text }
}

func binary(key string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { cm.BinaryData = map[string][]byte{key: {0xff}} }
}

func inNamespace(name string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { cm.Namespace = name }
}

// activated is what admission writes on a head that jane puts where it governs.
func activated(cm *corev1.ConfigMap) {
	digest := filled(filesOf(cm)).Digest()
	metav1.SetMetaDataAnnotation(&cm.ObjectMeta, policyv1alpha1.ActivatedByAnnotation, "jane "+digest+" 2027-01-15T08:00:00Z")
}

// rackCanary lets a canary govern a rack.
var rackCanary = noted(policyv1alpha1.CanaryServersAnnotation, "rack in (r1, r2)")

func part(name, file, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "metalaw-system", Name: name,
		Labels: map[string]string{policyv1alpha1.BundlePartLabel: "fleet"}}, Data: map[string]string{file: text}}
}

// lists makes a head list a file in another ConfigMap.
func lists(file, in, text string) func(*corev1.ConfigMap) {
	return holds(policyv1alpha1.ManifestKey, fmt.Sprintf("apiVersion: policy.metalaw.dev/v1alpha1\nkind: Manifest\nfiles:\n"+
		"- {name: %s, configMap: %s, digest: sha256:%x}\n", file, in, sha256.Sum256([]byte(text))))
}

// revisionOf is the revision that was made from a head.
func revisionOf(t testing.TB, cm *corev1.ConfigMap, change ...func(*policyv1alpha1.PolicyRevision)) *policyv1alpha1.PolicyRevision {
	t.Helper()
	whole := filled(filesOf(cm))
	content, err := whole.Pack()
	if err != nil {
		t.Fatal(err)
	}
	r := &policyv1alpha1.PolicyRevision{ObjectMeta: metav1.ObjectMeta{Name: bundle.RevisionName("fleet", "1.0.0", whole.Digest())},
		Spec: policyv1alpha1.PolicyRevisionSpec{Bundle: "fleet", Version: "1.0.0", Digest: whole.Digest(), Content: content,
			EngineVersion: bundle.EngineVersion, Source: &policyv1alpha1.PolicySource{Namespace: cm.Namespace, Name: cm.Name, Digest: filesOf(cm).Digest()}},
		Status: policyv1alpha1.PolicyRevisionStatus{Conditions: []metav1.Condition{
			{Type: policyv1alpha1.ConditionCompiled, Status: metav1.ConditionTrue},
			{Type: policyv1alpha1.ConditionVerified, Status: metav1.ConditionTrue}}}}
	for _, c := range change {
		c(r)
	}
	return r
}

func atStage(stage policyv1alpha1.PolicyStage) func(*policyv1alpha1.PolicyRevision) {
	return func(r *policyv1alpha1.PolicyRevision) { r.Status.Stage = stage }
}

func promotion(n string) func(*policyv1alpha1.PolicyRevision) {
	return func(r *policyv1alpha1.PolicyRevision) {
		r.Annotations = map[string]string{policyv1alpha1.PromotionAnnotation: n}
	}
}

// promoted is a promotion that was given to this object here.
func promoted(n string) func(*policyv1alpha1.PolicyRevision) {
	return func(r *policyv1alpha1.PolicyRevision) {
		promotion(n)(r)
		r.UID = "6f1d"
		r.SetPromotion(r.Promotion())
	}
}

func byEngine(version string) func(*policyv1alpha1.PolicyRevision) {
	return func(r *policyv1alpha1.PolicyRevision) { r.Spec.EngineVersion = version }
}

func loadedHere(r *policyv1alpha1.PolicyRevision) {
	r.Status.Loaded = []policyv1alpha1.LoadedRevision{{Replica: "m", EngineVersion: bundle.EngineVersion, Compiled: true}}
}

func heldIn(configMap string) func(*policyv1alpha1.PolicyRevision) {
	return func(r *policyv1alpha1.PolicyRevision) { r.Status.Head = configMap }
}

// deleted says that the ConfigMap fleet-1 that the revision was made from, of UID 1, is gone.
func deleted(r *policyv1alpha1.PolicyRevision) {
	r.Spec.Source.UID, r.Status.Head, r.Status.LabelledStage = "1", "fleet-1", policyv1alpha1.LabelledNone
}

func withUID(uid types.UID) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { cm.UID = uid }
}

func called(name string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { cm.Name = name }
}

// filledOtherwise is the revision that was made from a head when the shipped default was another.
func filledOtherwise(t testing.TB, cm *corev1.ConfigMap, change ...func(*policyv1alpha1.PolicyRevision)) *policyv1alpha1.PolicyRevision {
	t.Helper()
	whole := filled(filesOf(cm))
	whole["macprefixes.yaml"] = []byte("shipped with an earlier version")
	content, err := whole.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return revisionOf(t, cm, append(change, func(r *policyv1alpha1.PolicyRevision) {
		r.Spec.Content, r.Spec.Digest, r.Name = content, whole.Digest(), bundle.RevisionName("fleet", "1.0.0", whole.Digest())
	})...)
}

func unproven(r *policyv1alpha1.PolicyRevision) { r.Status = policyv1alpha1.PolicyRevisionStatus{} }

// activates gives who asks the right to activate bundle fleet, by what the authentication says besides name and groups.
func activates(req *admissionv1.AdmissionRequest) { mayActivate("fleet")(req) }

// mayActivate gives who asks the right to activate bundles.
func mayActivate(bundles ...string) func(*admissionv1.AdmissionRequest) {
	return func(req *admissionv1.AdmissionRequest) {
		req.UserInfo.Extra = map[string]authenticationv1.ExtraValue{"example.com/activates": bundles}
	}
}

// bundleWorld is a world in which bundles are accepted as asked plays it.
func bundleWorld(t testing.TB, objects ...client.Object) (*world, *asked) {
	t.Helper()
	a := &asked{}
	w := newWorld(t, defaults(t), objects...)
	hooks, err := handlers(Options{Bundles: revisions{active: defaults(t)}, Client: w.cached, Reader: w.stored, ManagerUser: manager,
		Namespace: "metalaw-system", Registry: prometheus.NewRegistry(), Rights: reviewer{}, Accept: a.accept}, w.clock)
	if err != nil {
		t.Fatal(err)
	}
	w.hooks = hooks
	return w, a
}
