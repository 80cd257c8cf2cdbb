// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func unmade(m *v1alpha1.ServerMaintenance) { delete(m.Annotations, v1alpha1.MakerAnnotation) }

func bare(m *v1alpha1.ServerMaintenance) { m.Annotations = nil }

func held(finalizers ...string) func(*v1alpha1.ServerMaintenance) {
	return func(m *v1alpha1.ServerMaintenance) { m.Finalizers = finalizers }
}

func TestWhoMakesAMaintenanceIsRecorded(t *testing.T) {
	const path = `"path":"/metadata/annotations/policy.metalaw.dev~1maker"`
	jane := `[{"op":"add",` + path + `,"value":"{\"username\":\"jane\"}"}]`
	back := `[{"op":"add",` + path + `,"value":"{\"username\":\"root\"}"}]`
	finalizers := func(list string) string {
		return `[{"op":"add","path":"/metadata/finalizers","value":` + list + `}]`
	}
	root := madeBy("root")
	for name, c := range map[string]struct {
		before, after *v1alpha1.ServerMaintenance
		who           string
		groups        []string
		holds         bool
		want          string
	}{
		"when it is made":                             {after: maintenance(unmade, noting("a", "b")), want: jane},
		"where it has no annotation yet":              {after: maintenance(bare), want: `[{"op":"add","path":"/metadata/annotations","value":{"policy.metalaw.dev/maker":"{\"username\":\"jane\"}"}}]`},
		"whatever the client writes":                  {after: maintenance(root), want: jane},
		"once":                                        {after: maintenance()},
		"with groups":                                 {after: maintenance(), groups: []string{"ops"}, want: `[{"op":"add",` + path + `,"value":"{\"username\":\"jane\",\"groups\":[\"ops\"]}"}]`},
		"when it is changed":                          {before: maintenance(root), after: maintenance(root, powered("Off")), want: jane},
		"when it is adopted":                          {before: maintenance(root), after: maintenance(root, noting(v1alpha1.AdoptAnnotation, "true")), want: jane},
		"not when it is not adopted after all":        {before: maintenance(root), after: maintenance(root, noting(v1alpha1.AdoptAnnotation, "false"))},
		"not when it is stopped":                      {before: maintenance(root), after: maintenance(root, noting(v1alpha1.AbortAnnotation, "r"))},
		"and cannot be changed otherwise":             {before: maintenance(root), after: maintenance(madeBy("jane")), want: back},
		"nor be taken away":                           {before: maintenance(root), after: maintenance(unmade, noting("a", "b")), want: back},
		"nor be made up of an old one":                {before: maintenance(unmade), after: maintenance(root), want: `[{"op":"remove",` + path + `}]`},
		"not when the manager writes it":              {before: maintenance(root), after: maintenance(root, powered("Off")), who: manager},
		"nor where it is too large":                   {after: maintenance(unmade), groups: slices.Repeat([]string{"g"}, 65)},
		"with the finalizer of a manager that grants": {after: maintenance(), holds: true, want: finalizers(`["metal.ironcore.dev/servermaintenance"]`)},
		"beside those of others":                      {after: maintenance(held("a")), holds: true, want: finalizers(`["a","metal.ironcore.dev/servermaintenance"]`)},
		"which it may have":                           {after: maintenance(held("metal.ironcore.dev/servermaintenance")), holds: true},
		"and which is not written to what is there":   {before: maintenance(), after: maintenance(noting("a", "b")), holds: true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.who == "" {
				c.who = user
			}
			req := admissionv1.AdmissionRequest{Operation: admissionv1.Create, UserInfo: authenticationv1.UserInfo{Username: c.who, Groups: c.groups},
				Object: runtime.RawExtension{Raw: raw(t, c.after)}}
			if c.before != nil {
				req.Operation, req.OldObject.Raw = admissionv1.Update, raw(t, c.before)
			}
			hooks, err := handlers(Options{ManagerUser: manager, Registry: prometheus.NewRegistry(), HoldsMaintenances: c.holds}, nil)
			if err != nil {
				t.Fatal(err)
			}
			r := hooks[PathMutateMaintenance].Handle(t.Context(), admission.Request{AdmissionRequest: req})
			if !r.Allowed || string(r.Patch) != c.want {
				t.Errorf("got %t %s, want %s", r.Allowed, r.Patch, c.want)
			}
		})
	}
}
