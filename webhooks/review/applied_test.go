// SPDX-License-Identifier: Apache-2.0

package review

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestAnOperationThatComesWithAnApplyIsWarnedOf(t *testing.T) {
	const asks = `{"f:metadata":{"f:annotations":{"f:metal.ironcore.dev/operation":{}}}}`
	managed := func(operation metav1.ManagedFieldsOperationType, fields string) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) {
			s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "flux", Operation: operation, FieldsV1: metav1.NewFieldsV1(fields)}}
		}
	}
	lastApplied := func(manifest string) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) { s.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = manifest }
	}
	server := func(operation string, changes ...func(*v1alpha1.Server)) *v1alpha1.Server {
		s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
		if operation != "" {
			s.Annotations[v1alpha1.OperationAnnotation] = operation
		}
		for _, change := range changes {
			change(s)
		}
		return s
	}
	for name, c := range map[string]struct {
		before, after *v1alpha1.Server
		warns         bool
	}{
		"one of a server-side apply":    {server(""), server("hard-restart-server", managed(metav1.ManagedFieldsOperationApply, asks)), true},
		"one of an object that is made": {nil, server("park", managed(metav1.ManagedFieldsOperationApply, asks)), true},
		"one of a client-side apply": {server(""), server("power-cycle-server",
			lastApplied(`{"metadata":{"annotations":{"metal.ironcore.dev/operation":"power-cycle-server"}}}`)), true},
		"not one that a user annotates": {server(""), server("hard-restart-server", managed(metav1.ManagedFieldsOperationUpdate, asks)), false},
		"not beside an apply of something else": {server(""), server("hard-restart-server",
			managed(metav1.ManagedFieldsOperationApply, `{"f:metadata":{"f:labels":{"f:rack":{}}}}`), lastApplied(`{"metadata":{}}`)), false},
		"not one that stands already":          {server("park"), server("park", managed(metav1.ManagedFieldsOperationApply, asks)), false},
		"not one that leaves the object alone": {server(""), server("ignore", managed(metav1.ManagedFieldsOperationApply, asks)), false},
		"not an empty one":                     {server(""), server("", managed(metav1.ManagedFieldsOperationApply, asks)), false},
		"not where nothing is known":           {server(""), server("park", managed(metav1.ManagedFieldsOperationApply, "no JSON"), lastApplied("no JSON")), false},
	} {
		found := &Findings{}
		WarnApplied(c.before, c.after, found)
		if got := strings.Join(found.Warnings, "\n"); (got != "") != c.warns {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func FuzzWhatAManifestNames(f *testing.F) {
	f.Add(`{"metadata":{"annotations":{"a":"b"}}}`)
	f.Add(`{"f:metadata":{"f:annotations":{"f:a":{}}}}`)
	f.Add(`[`)
	f.Fuzz(func(t *testing.T, text string) {
		if named, owned := namesAnnotation([]byte(text), "a"), ownsAnnotation([]byte(text), "a"); (named || owned) && !strings.Contains(strings.ToLower(text), "annotations") && !strings.Contains(text, `\`) {
			t.Errorf("%q: %t, %t", text, named, owned)
		}
	})
}
