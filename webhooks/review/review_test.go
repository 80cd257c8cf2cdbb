// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	engineadmission "github.com/metalaw/metalaw/engine/admission"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
)

// noted is an object with annotations, key and value in turn.
func noted(pairs ...string) *corev1.ConfigMap {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
	for i := 0; i < len(pairs); i += 2 {
		o.Annotations[pairs[i]] = pairs[i+1]
	}
	return o
}

func TestAnAnnotationIsJudgedWhenItIsWritten(t *testing.T) {
	const name = "policy.metalaw.dev/protect"
	long := strings.Repeat("ä", maxReason)
	for title, c := range map[string]struct {
		before, after *corev1.ConfigMap
		yesNo, reason string
	}{
		"nothing":                          {nil, noted(), "", ""},
		"yes":                              {nil, noted(name, "true"), "", ""},
		"neither yes nor no":               {nil, noted(name, "yes"), `Unsupported value: "yes": supported values: "true", "false"`, ""},
		"what is stored already":           {noted(name, "yes"), noted(name, "yes"), "", ""},
		"another value":                    {noted(name, "true"), noted(name, "1"), `Unsupported value: "1": supported values: "true", "false"`, ""},
		"it goes":                          {noted(name, "yes"), noted(), "", ""},
		"a reason that says nothing":       {nil, noted(name, " "), `Unsupported value: " ": supported values: "true", "false"`, "Required value: say why"},
		"a reason of 1024 characters":      {nil, noted(name, long), fmt.Sprintf("Unsupported value: %q: supported values: \"true\", \"false\"", long), ""},
		"a reason of one character more":   {nil, noted(name, long+"x"), fmt.Sprintf("Unsupported value: %q: supported values: \"true\", \"false\"", long+"x"), "Too long: may not be longer than 1024 characters"},
		"a reason that was stored already": {noted(name, ""), noted(name, ""), "", ""},
	} {
		t.Run(title, func(t *testing.T) {
			var yesNo, reason Findings
			CheckYesNo(c.before, c.after, name, &yesNo)
			CheckReason(c.before, c.after, name, "say why", &reason)
			if got, want := yesNo.Text(), at(name, c.yesNo); got != want {
				t.Errorf("yes or no: %s, want %s", got, want)
			}
			if got, want := reason.Text(), at(name, c.reason); got != want {
				t.Errorf("reason: %s, want %s", got, want)
			}
		})
	}
}

// at is a finding about an annotation; empty where there is none.
func at(name, says string) string {
	if says == "" {
		return ""
	}
	return "metadata.annotations[" + name + "]: " + says
}

func TestAMisspeltAnnotationIsWarnedOf(t *testing.T) {
	known := []string{"policy.metalaw.dev/protect", "policy.metalaw.dev/placement"}
	for title, c := range map[string]struct {
		before, after *corev1.ConfigMap
		want          string
	}{
		"one that is known":                {nil, noted(known[0], "true"), ""},
		"one of another program":           {nil, noted("example.com/protct", "true"), ""},
		"a letter is missing":              {nil, noted("policy.metalaw.dev/protct", "true"), "did you mean policy.metalaw.dev/protect?"},
		"capitals":                         {nil, noted("policy.metalaw.dev/Protect", "true"), "did you mean policy.metalaw.dev/protect?"},
		"the first letters":                {nil, noted("policy.metalaw.dev/pla", "x"), "did you mean policy.metalaw.dev/placement?"},
		"something else":                   {nil, noted("policy.metalaw.dev/banana", "x"), "known are policy.metalaw.dev/protect, policy.metalaw.dev/placement"},
		"one that was there":               {noted("policy.metalaw.dev/protct", "true"), noted("policy.metalaw.dev/protct", "false"), ""},
		"one that is added to an old name": {noted("policy.metalaw.dev/x", "1"), noted("policy.metalaw.dev/x", "1", "policy.metalaw.dev/protct", "true"), "did you mean policy.metalaw.dev/protect?"},
	} {
		t.Run(title, func(t *testing.T) {
			var found Findings
			CheckNames(c.before, c.after, "ServerClaim", known, &found)
			got := strings.Join(found.Warnings, "\n")
			if (got == "") != (c.want == "") || !strings.HasSuffix(got, c.want) || !found.Pass() {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// things are so many diagnostics of a severity, with a message.
func things(n int, severity diag.Severity, message string) (list diag.List) {
	for i := range n {
		list = append(list, diag.Diagnostic{Severity: severity, Code: "c", File: "f", Line: i + 1, Column: 1, Message: message})
	}
	return list
}

func TestHowMuchIsSaidOfWhatIsFound(t *testing.T) {
	within := bounds{lines: 2, length: 22, total: 50, more: "see all"}
	for name, c := range map[string]struct {
		list diag.List
		want []string
	}{
		"nothing":              {nil, nil},
		"errors before others": {append(things(1, diag.Warning, "w"), things(1, diag.Error, "e")...), []string{"f:1:1: error: e [c]", "f:1:1: warning: w [c]"}},
		"a line too many":      {things(4, diag.Error, "e")[1:], []string{"f:2:1: error: e [c]", "f:3:1: error: e [c]", "and 1 more: see all"}},
		"a line that breaks":   {things(1, diag.Error, "a\nb\x00cd e f g"), []string{"f:1:1: error: a b c..."}},
	} {
		got := within.of(c.list)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	mixed := append(append(things(2, diag.Error, "e"), things(1, diag.Warning, "w")...), things(3, diag.Info, "i")...)
	if got := Counted(mixed); got != "2 errors, 1 warning" {
		t.Errorf("it counts %q", got)
	}
	var found Findings
	found.DenyDiagnostics("broken", mixed)
	if want := "data: broken: 2 errors, 1 warning\nf:1:1: error: e [c]\nf:2:1: error: e [c]\nf:1:1: warning: w [c]"; found.Text() != want {
		t.Errorf("it says %q", found.Text())
	}
}

func TestTheAnswerToARequest(t *testing.T) {
	forbidden := field.Forbidden(field.NewPath("spec"), "no")
	invalid := field.Invalid(field.NewPath("spec"), "x", "no")
	for name, c := range map[string]struct {
		found   Findings
		code    int32
		message string
	}{
		"nothing is found":           {Findings{Warnings: []string{"w"}}, http.StatusOK, ""},
		"a thing that must not be":   {denying(forbidden), http.StatusForbidden, `Server "s": update is not allowed: spec: Forbidden: no`},
		"a value that is wrong":      {denying(invalid), http.StatusUnprocessableEntity, `Server "s": is invalid: spec: Invalid value: "x": no`},
		"both":                       {denying(forbidden, invalid), http.StatusUnprocessableEntity, `Server "s": is invalid: spec: Forbidden: no; spec: Invalid value: "x": no`},
		"the object as a whole":      {denying(field.Forbidden(nil, "no")), http.StatusForbidden, `Server "s": update is not allowed: Forbidden: no`},
		"a rule that names no field": {Findings{Denials: []metav1.StatusCause{{Type: "quota", Message: "no"}}}, http.StatusForbidden, `Server "s": update is not allowed: no`},
		"a rule that names a field":  {Findings{Denials: []metav1.StatusCause{{Type: "quota", Field: "spec", Message: "no"}}}, http.StatusUnprocessableEntity, `Server "s": is invalid: spec: no`},
	} {
		t.Run(name, func(t *testing.T) {
			c.found.Audited()["by"] = "jane"
			got := c.found.Response(&admissionv1.AdmissionRequest{Name: "s", Operation: admissionv1.Update}, "Server")
			switch {
			case got.Result.Code != c.code || got.Result.Message != c.message:
				t.Errorf("got %d %q, want %d %q", got.Result.Code, got.Result.Message, c.code, c.message)
			case got.Allowed != (c.message == ""), got.Allowed != (got.AuditAnnotations["by"] == "jane"):
				t.Errorf("allowed %t with %v", got.Allowed, got.AuditAnnotations)
			case !got.Allowed && len(got.Result.Details.Causes) != len(c.found.Denials):
				t.Errorf("the causes are %v", got.Result.Details.Causes)
			}
		})
	}
}

func denying(errs ...*field.Error) (found Findings) {
	found.Deny(errs...)
	return found
}

func TestARuleThatFailsRefusesUnlessTheObjectGoes(t *testing.T) {
	object := func(resourceVersion, spec string, finalizers ...any) map[string]any {
		return map[string]any{"metadata": map[string]any{"finalizers": finalizers, "resourceVersion": resourceVersion}, "spec": spec}
	}
	failed := &engineadmission.EvalError{Cause: errors.New("no number")}
	for name, c := range map[string]struct {
		operation     admissionv1.Operation
		before, after map[string]any
		err           error
		// says is in the refusal; empty where it passes with a warning.
		says string
	}{
		"a creation":                              {admissionv1.Create, nil, object("1", "a"), failed, "mend the rule"},
		"a change":                                {admissionv1.Update, object("1", "a", "f"), object("2", "b", "f"), failed, "mend the rule"},
		"a deletion":                              {admissionv1.Delete, object("1", "a"), nil, failed, ""},
		"a finalizer goes":                        {admissionv1.Update, object("1", "a", "f", "g"), object("2", "a", "g"), failed, ""},
		"the last finalizer goes":                 {admissionv1.Update, object("1", "a", "f"), object("2", "a"), failed, ""},
		"a finalizer goes and something else":     {admissionv1.Update, object("1", "a", "f"), object("2", "b"), failed, "mend the rule"},
		"a finalizer goes and another comes":      {admissionv1.Update, object("1", "a", "f", "g"), object("2", "a", "h"), failed, "mend the rule"},
		"a finalizer comes":                       {admissionv1.Update, object("1", "a"), object("2", "a", "f"), failed, "mend the rule"},
		"the rules do not compile":                {admissionv1.Create, nil, object("1", "a"), errNotCompiled, "run the version of metalaw that accepted it"},
		"the object is too large":                 {admissionv1.Create, nil, object("1", "a"), errors.New("too large"), "see whether the object can be made smaller"},
		"the rules do not compile and a deletion": {admissionv1.Delete, object("1", "a"), nil, errNotCompiled, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := engineadmission.Input{Operation: string(c.operation), Object: c.after, OldObject: c.before}
			found := undecided(&bundle.Bundle{}, in, c.err)
			if found.Pass() != (c.says == "") || !strings.Contains(found.Text(), c.says) || found.Pass() != (len(found.Warnings) == 1) {
				t.Errorf("it passes: %t; %q %q", found.Pass(), found.Text(), found.Warnings)
			}
		})
	}
}

func TestWhatTheRulesOfTheBundleSee(t *testing.T) {
	redact := func(o map[string]any) { delete(o, "data") }
	for name, c := range map[string]struct {
		raw  string
		want map[string]any
	}{
		"no object":     {"", nil},
		"null":          {"null", nil},
		"managedFields": {`{"metadata":{"name":"a","managedFields":[]}}`, map[string]any{"metadata": map[string]any{"name": "a"}}},
		"a secret":      {`{"data":{"password":"x"},"kind":"B"}`, map[string]any{"kind": "B"}},
		"a number":      {`{"n":3}`, map[string]any{"n": int64(3)}},
	} {
		got, err := generic([]byte(c.raw), redact)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	if _, err := generic([]byte("{"), nil); err == nil {
		t.Error("half an object is read")
	}
}

func TestAMutatingReview(t *testing.T) {
	for name, c := range map[string]struct {
		object, old string
		edits       []Edit
		patch       string
		code        int32
	}{
		"an edit":                 {object: `{"metadata":{"name":"a"}}`, edits: []Edit{{Op: "remove", Path: "/x"}}, patch: `[{"op":"remove","path":"/x"}]`, code: http.StatusOK},
		"no edit":                 {object: `{"metadata":{"name":"a"}}`, code: http.StatusOK},
		"a deletion is not asked": {old: `{"metadata":{"name":"a"}}`, edits: []Edit{{Op: "remove", Path: "/x"}}, code: http.StatusOK},
		"no object at all":        {code: http.StatusBadRequest},
		"what is no object":       {object: `{"metadata":1}`, code: http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			hook := Mutator("manager", func(context.Context, Change[corev1.ConfigMap]) ([]Edit, []string) { return c.edits, nil })
			got := hook.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Object: runtime.RawExtension{Raw: []byte(c.object)}, OldObject: runtime.RawExtension{Raw: []byte(c.old)}}})
			if got.Result.Code != c.code || string(got.Patch) != c.patch {
				t.Errorf("got %d %s", got.Result.Code, got.Patch)
			}
		})
	}
}

func TestTheFirstReaderThatHasAnObjectAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		name    string
		readers []client.Reader
		found   bool
		err     string
	}{
		"the first has it":             {"a", []client.Reader{reads{}, reads{err: errors.New("not asked")}}, true, ""},
		"the second has it":            {"a", []client.Reader{reads{absent: true}, reads{}}, true, ""},
		"none has it":                  {"a", []client.Reader{reads{absent: true}, reads{absent: true}}, false, ""},
		"one fails":                    {"a", []client.Reader{reads{err: errors.New("no answer")}, reads{}}, false, `"a" cannot be read: no answer`},
		"a name that nothing can have": {"a/b", []client.Reader{reads{}}, false, ""},
	} {
		got, err := Get[corev1.ConfigMap](t.Context(), client.ObjectKey{Name: c.name}, c.readers...)
		if (got != nil) != c.found || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
