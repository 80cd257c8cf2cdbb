// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// conditionsOf compiles the match conditions of every hook, as the API server does.
func conditionsOf(t *testing.T) map[string][]cel.Program {
	t.Helper()
	env, err := cel.NewEnv(cel.OptionalTypes(), cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType), cel.Variable("request", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]cel.Program{}
	for _, h := range shippedHooks(t) {
		for _, c := range h.Conditions {
			ast, issues := env.Compile(c.Expression)
			if issues.Err() != nil {
				t.Fatal(h.Name, c.Name, issues.Err())
			}
			program, err := env.Program(ast)
			if err != nil {
				t.Fatal(h.Name, c.Name, err)
			}
			all[h.Name] = append(all[h.Name], program)
		}
	}
	return all
}

// hooksAsked says which of some hooks are asked about a write by a user.
func hooksAsked(t *testing.T, conditions map[string][]cel.Program, hooks []string, who, operation string, before, after client.Object) []string {
	t.Helper()
	var all []string
	for _, name := range hooks {
		matches := true
		for _, c := range conditions[name] {
			out, _, err := c.Eval(map[string]any{"object": plain(t, after), "oldObject": plain(t, before),
				"request": map[string]any{"operation": operation, "userInfo": map[string]any{"username": who}}})
			if err != nil {
				t.Fatal(name, err)
			}
			met, isBool := out.Value().(bool)
			matches = matches && isBool && met
		}
		if matches {
			all = append(all, name)
		}
	}
	return all
}

// plain is an object as the API server shows it to a condition.
func plain(t *testing.T, o client.Object) any {
	t.Helper()
	var m any
	if err := json.Unmarshal(raw(t, o), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestWhichHookIsAskedAboutAMaintenance(t *testing.T) {
	const mutate, validate, words = "servermaintenance.mutate.metalaw.dev", "servermaintenance.validate.metalaw.dev", "servermaintenance-words.validate.metalaw.dev"
	hooks := []string{mutate, validate, words}
	both := []string{mutate, validate}
	conditions := conditionsOf(t)
	say := func(name string) *v1alpha1.ServerMaintenance {
		return maintenance(noting("policy.metalaw.dev/"+name, "x"))
	}
	for name, c := range map[string]struct {
		before, after *v1alpha1.ServerMaintenance
		who           string
		want          []string
	}{
		"one that is made":                         {nil, maintenance(), user, both},
		"one that is made with nothing noted":      {nil, maintenance(bare), user, both},
		"one whose spec changes":                   {maintenance(), maintenance(powered("Off")), user, both},
		"one whose maker changes":                  {maintenance(), maintenance(madeBy("root")), user, both},
		"one whose maker is taken away":            {maintenance(), maintenance(bare), user, both},
		"one that is adopted":                      {maintenance(), say("adopt"), user, both},
		"one whose power may be cut":               {maintenance(), say("force-off-reason"), user, []string{validate}},
		"one that is stopped":                      {maintenance(), say("abort"), user, []string{words}},
		"one that is stopped without a maker":      {maintenance(bare), maintenance(bare, noting(v1alpha1.AbortAnnotation, "x")), user, []string{words}},
		"one that takes longer":                    {maintenance(), say("expected-duration"), user, []string{words}},
		"one that is stopped and changed":          {maintenance(), maintenance(powered("Off"), noting(v1alpha1.AbortAnnotation, "x")), user, both},
		"one that is no longer stopped":            {say("abort"), maintenance(), user, nil},
		"one that others annotate":                 {maintenance(), maintenance(noting("example.com/a", "b")), user, nil},
		"one that loses a finalizer":               {maintenance(held("a")), maintenance(), user, nil},
		"one that the manager changes":             {maintenance(), maintenance(powered("Off")), manager, nil},
		"one that is operated, which we leave out": {maintenance(), maintenance(noting(v1alpha1.OperationAnnotation, "ignore")), user, nil},
	} {
		t.Run(name, func(t *testing.T) {
			operation := "UPDATE"
			var before client.Object = c.before
			if c.before == nil {
				operation, before = "CREATE", &v1alpha1.ServerMaintenance{}
			}
			if diff := cmp.Diff(c.want, hooksAsked(t, conditions, hooks, c.who, operation, before, c.after)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheHooksAreAskedAboutAReferenceToAMaintenance(t *testing.T) {
	conditions := conditionsOf(t)
	hooks := []string{"server.mutate.metalaw.dev", "server.validate.metalaw.dev"}
	for name, c := range map[string]struct{ before, after *v1alpha1.Server }{
		"that is set":     {server(), server(handedTo("m"))},
		"that is cleared": {server(handedTo("m")), server()},
		"that changes":    {server(handedTo("m")), server(handedTo("other"))},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hooksAsked(t, conditions, hooks, user, "UPDATE", c.before, c.after); !slices.Equal(got, hooks) {
				t.Error(got)
			}
			if got := hooksAsked(t, conditions, hooks, manager, "UPDATE", c.before, c.after); got != nil {
				t.Error(got)
			}
		})
	}
	if got := hooksAsked(t, conditions, hooks[1:], user, "UPDATE", server(handedTo("m"), byUs), server(handedTo("m"))); got == nil {
		t.Error("nobody is asked about the record of a grant")
	}
}

// An annotation that the hook is not asked about is guarded in vain.
func TestTheHookIsAskedAboutEachGuardedAnnotation(t *testing.T) {
	conditions, hooks := conditionsOf(t), []string{"server.validate.metalaw.dev"}
	for _, name := range guarded {
		for what, c := range map[string]struct{ before, after *v1alpha1.Server }{
			"that is set":        {server(), server(annotated(name, "a"))},
			"that changes":       {server(annotated(name, "a")), server(annotated(name, "b"))},
			"that is taken away": {server(annotated(name, "a")), server()},
		} {
			if got := hooksAsked(t, conditions, hooks, user, "UPDATE", c.before, c.after); !slices.Equal(got, hooks) {
				t.Errorf("it is not asked about %s %s", name, what)
			}
		}
	}
}

// Whoever changes a word of a request is who asks, and only the first hook writes that.
func TestTheHookIsAskedAboutEachWordOfARequest(t *testing.T) {
	conditions := conditionsOf(t)
	for _, name := range append([]string{v1alpha1.OperationByAnnotation}, wording...) {
		hooks := []string{"server.mutate.metalaw.dev"}
		if got := hooksAsked(t, conditions, hooks, user, "UPDATE", server(asking("park")), server(asking("park"), annotated(name, "retry"))); !slices.Equal(got, hooks) {
			t.Errorf("nobody is asked about %s", name)
		}
	}
}
