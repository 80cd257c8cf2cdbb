// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// inForce is the default bundle, with settings of its own, as the revision in force.
func inForce(t *testing.T, settings ...string) *policyv1alpha1.PolicyRevision {
	t.Helper()
	files, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range settings {
		files["bundle.yaml"] = append(files["bundle.yaml"], "  "+one+"\n"...) // which ends with the settings
	}
	b, found, err := bundle.Compile(files, policies.Vocabulary())
	if b == nil {
		t.Fatal(found, err)
	}
	content, err := files.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return &policyv1alpha1.PolicyRevision{ObjectMeta: metav1.ObjectMeta{Name: b.Revision.Name},
		Spec: policyv1alpha1.PolicyRevisionSpec{Bundle: b.Name, Version: b.Version, Digest: b.Revision.Digest, Content: content},
		Status: policyv1alpha1.PolicyRevisionStatus{Conditions: []metav1.Condition{
			condition(policyv1alpha1.ConditionActive, "True", policyv1alpha1.ReasonInForce)}}}
}

func TestAClaimIsBoundWaitsOrNobodyCanTell(t *testing.T) {
	const spec = "spec: {power: \"On\", image: os}\n"
	list := func(ctx context.Context, c client.WithWatch, into client.ObjectList, given ...client.ListOption) error {
		if _, isServers := into.(*v1alpha1.ServerList); isServers {
			return apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "servers"}, "", errors.New(
				`User "tina" cannot list resource "servers" in API group "metal.ironcore.dev" at the cluster scope`))
		}
		return c.List(ctx, into, given...)
	}
	for name, c := range map[string]struct {
		text     string
		noPolicy bool
		noRights bool
		verdict  string
		waitsFor string
		binds    string
	}{
		"one that fits":                  {text: "metadata: {name: a}\n" + spec, verdict: "would be bound to a", binds: "true"},
		"one that is to be left alone":   {text: "metadata: {name: a, annotations: {metal.ironcore.dev/operation: ignore}}\n" + spec, verdict: "would wait", waitsFor: leftAlone, binds: "false"},
		"one that asks for other labels": {text: "metadata: {name: a}\nspec: {power: \"On\", image: os, serverSelector: {matchLabels: {a: b}}}\n", verdict: "would wait", waitsFor: "a server that it asks for: none matches its serverRef and serverSelector", binds: "false"},
		"one that asks for what may come": {text: "metadata: {name: a, annotations: {policy.metalaw.dev/placement: 'where: server.timesClaimed > 5'}}\n" + spec, verdict: "would wait",
			waitsFor: "a: the claim's placement asks where server.timesClaimed > 5 (placement); that passes perhaps by itself, else not, as the claim is", binds: "false"},
		"where the policy cannot be seen":     {text: "metadata: {name: a}\n" + spec, noPolicy: true, verdict: "unknown", waitsFor: policyUnknown, binds: "null"},
		"where servers cannot be seen":        {text: "metadata: {name: a}\n" + spec, noRights: true, verdict: "unknown", binds: "null"},
		"one that is wrong, whatever is seen": {text: "metadata: {name: a}\nspec: {imgae: os}\n", noRights: true, verdict: "would not be stored", waitsFor: "a claim that can be read", binds: "false"},
	} {
		t.Run(name, func(t *testing.T) {
			server := aServer("a", "")
			objects := []client.Object{&server}
			if !c.noPolicy {
				objects = append(objects, inForce(t))
			}
			reader := aCluster(t, objects...)
			if c.noRights {
				reader = interceptor.NewClient(reader, interceptor.Funcs{List: list})
			}
			r, err := (&attempt{}).try(t.Context(), reader, &warnings{}, "team", decoded(t, head+c.text))
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			term := &terminal.Terminal{Out: &out, Err: &bytes.Buffer{}}
			(&page{Terminal: term}).tried(r)
			said := regexp.MustCompile(`(?m)^Claim team/a \(line 1\): (.*)$`).FindStringSubmatch(out.String())
			if diff := cmp.Diff([]string{c.verdict, c.waitsFor}, []string{said[1], r.Claims[0].WaitsFor}); diff != "" {
				t.Error(diff)
			}
			for _, binds := range []*bool{r.Binds, r.Claims[0].Binds} {
				if text, err := json.Marshal(binds); err != nil || string(text) != c.binds {
					t.Errorf("binds %s, want %s", text, c.binds)
				}
			}
		})
	}
}

func TestADocumentIsCalledByTheNameThatItHas(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a claim":                              {head + "metadata: {name: a}\nspec: {imgae: os}\n", "Claim team/a (line 1): would not be stored"},
		"a claim of another namespace":         {head + "metadata: {name: a, namespace: other}\nspec: {imgae: os}\n", "Claim other/a (line 1): would not be stored"},
		"one whose name the API server makes":  {head + "metadata: {generateName: a-}\nspec: {imgae: os}\n", "Claim team/a- (line 1): would not be stored"},
		"one that has a key twice":             {head + "metadata: {name: a, labels: {b: c}, labels: {b: d}}\n", "Claim team/a (line 1): would not be stored"},
		"one without a name":                   {head + "spec: {imgae: os}\n", "A document without a name (line 1): would not be stored"},
		"one that is something else, a list":   {"- a\n- b\n", "A document without a name (line 1): would not be stored"},
		"one whose metadata is something else": {head + "metadata: [a]\n", "A document without a name (line 1): would not be stored"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := (&attempt{}).try(t.Context(), aCluster(t), &warnings{}, "team", decoded(t, c.text))
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			term := &terminal.Terminal{Out: &out, Err: &bytes.Buffer{}}
			(&page{Terminal: term}).tried(r)
			title, _, _ := strings.Cut(out.String(), "\n")
			if diff := cmp.Diff(c.want, title); diff != "" {
				t.Error(diff)
			}
		})
	}
}
