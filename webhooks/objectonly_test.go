// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

func TestTheRulesInCELRefuseWhatTheWebhookRefuses(t *testing.T) {
	env, err := cel.NewEnv(cel.OptionalTypes(), ext.Strings(), cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	rules, programs := ObjectRules(), []cel.Program{}
	for _, rule := range rules {
		compiled, issues := env.Compile(rule.Expression)
		if issues.Err() != nil {
			t.Fatalf("%s: %v", rule.Expression, issues.Err())
		}
		program, err := env.Program(compiled)
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, program)
	}
	seen := map[string]int{}
	rapid.Check(t, func(r *rapid.T) {
		c, vars := review.Change[v1alpha1.ServerClaim]{New: drawClaim(r)}, map[string]any{"oldObject": nil}
		if rapid.Bool().Draw(r, "update") {
			c.Old = drawClaim(r)
			vars["oldObject"] = asStored(r, c.Old)
		}
		vars["object"] = asStored(r, c.New)
		var said review.Findings
		checkTolerations(c, &said)
		checkSecretNames(c, &said)
		checkProtection(c.Old, c.New, &said)
		for i, rule := range rules {
			out, _, err := programs[i].Eval(vars)
			if err != nil {
				r.Fatalf("%s: %v", rule.Expression, err)
			}
			refused := strings.Contains(said.Text(), rule.Message)
			if passes, isBool := out.Value().(bool); !isBool || refused == passes {
				r.Fatalf("%s: in CEL it passes: %v; the webhook says %q", rule.Code, out.Value(), said.Text())
			}
			if refused {
				seen[rule.Code]++
			}
		}
	})
	if len(seen) != 4 {
		t.Errorf("the claims show little: %v", seen)
	}
}

// asStored is a claim as the API server has it.
func asStored(r *rapid.T, c *v1alpha1.ServerClaim) any {
	o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
	if err != nil {
		r.Fatal(err)
	}
	return o
}

func drawClaim(r *rapid.T) *v1alpha1.ServerClaim {
	word := rapid.SampledFrom([]string{"", "a", "b"})
	c := claim()
	if protect := rapid.SampledFrom([]string{"", "true", "false", "yes", "True"}).Draw(r, "protect"); protect != "" {
		c.Annotations = map[string]string{v1alpha1.ProtectAnnotation: protect}
	}
	if rapid.Bool().Draw(r, "ignition") {
		c.Spec.IgnitionSecretRef = &corev1.LocalObjectReference{Name: word.Draw(r, "name")}
	}
	if rapid.Bool().Draw(r, "user data") {
		c.Spec.UserDataRef = &corev1.LocalObjectReference{Name: word.Draw(r, "name")}
	}
	for range rapid.IntRange(0, 2).Draw(r, "tolerations") {
		c.Spec.Tolerations = append(c.Spec.Tolerations, v1alpha1.Toleration{Key: word.Draw(r, "key"), Value: word.Draw(r, "value"),
			Operator: rapid.SampledFrom([]v1alpha1.TolerationOperator{"", v1alpha1.TolerationOpExists, "Equal"}).Draw(r, "operator"),
			Effect:   rapid.SampledFrom([]v1alpha1.TaintEffect{"", v1alpha1.TaintEffectNoBind, v1alpha1.TaintEffectEvict}).Draw(r, "effect")})
	}
	return c
}
