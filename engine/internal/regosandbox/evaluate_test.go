// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
)

type plainInput struct {
	Name   string           `json:"name"`
	Size   int64            `json:"size"`
	Open   bool             `json:"open"`
	Labels map[string]int64 `json:"labels"`
	Parts  []part           `json:"parts"`
}

func evaluate(ctx context.Context, t *testing.T, body string, in plainInput) ([]ast.Value, error) {
	t.Helper()
	module, found := Compile(testSpec(), policy(body))
	if module == nil {
		t.Fatal(found.Err())
	}
	evaluation, err := module.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer evaluation.Close()
	return evaluation.Eval(Value(in))
}

func TestEvalReturnsOneValuePerEntryPoint(t *testing.T) {
	body := `ok if input.labels.a + input.parts[0].weight == input.size
why contains {"code": "x", "message": input.name} if not input.open
`
	got, err := evaluate(t.Context(), t, body, plainInput{Name: "n", Size: 5, Labels: map[string]int64{"a": 2}, Parts: []part{{3}}})
	if err != nil || len(got) != 3 || got[0].Compare(ast.Boolean(true)) != 0 || got[1].String() != `{{"code": "x", "message": "n"}}` || got[2] != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestEveryFieldOfTheInputExists(t *testing.T) {
	got, err := evaluate(t.Context(), t, `ok if {
	input.name == ""
	input.size == 0
	input.open == false
	count(input.labels) == 0
	count(input.parts) == 0
}`, plainInput{})
	if err != nil || got[0] == nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestAStoppedEvaluationIsAnErrorWithTheReason(t *testing.T) {
	// Eight nested loops over ten elements, for which no user would wait.
	var body strings.Builder
	body.WriteString("digits := {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}\nok if {\n")
	for _, v := range "abcdefgh" {
		body.WriteString("\tsome " + string(v) + " in digits\n")
	}
	body.WriteString("\t((((((a + b) + c) + d) + e) + f) + g) + h > 1000\n}\n")
	for name, c := range map[string]struct {
		stop func(context.Context) (context.Context, context.CancelFunc)
		want error
	}{
		"by a deadline": {func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, 20e6) }, context.DeadlineExceeded},
		"by its caller": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		}, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := c.stop(t.Context())
			defer cancel()
			got, err := evaluate(ctx, t, body.String(), plainInput{})
			var evalErr *EvalError
			if got != nil || !errors.Is(err, c.want) || !errors.As(err, &evalErr) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

func TestSchemaHasDescriptionsAndClosedSets(t *testing.T) {
	type small struct {
		Color string `json:"color" doc:"Its colour." enum:"red,blue"`
	}
	want := map[string]any{"type": "object", "additionalProperties": false, "required": []any{"color"}, "properties": map[string]any{
		"color": map[string]any{"type": "string", "description": "Its colour.", "enum": []any{"red", "blue"}},
	}}
	if diff := cmp.Diff(want, Schema(small{})); diff != "" {
		t.Error(diff)
	}
}
