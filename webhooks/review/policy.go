// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"errors"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/metalaw/metalaw/engine/admission"
	"github.com/metalaw/metalaw/engine/bundle"
)

// causePolicyError is the type of the cause that names a rule which could not be evaluated.
const causePolicyError metav1.CauseType = "PolicyError"

// asker asks the admission.rego of the bundle in force. Its rules see the objects without managedFields. A rule that cannot be
// evaluated refuses the request, unless the request only helps an object to go.
type asker struct {
	bundle *bundle.Bundle
	kind   string
	req    *admissionv1.AdmissionRequest
	redact func(map[string]any)
}

// readsFacts says that some rule reads the facts.
func (a asker) readsFacts() bool { return a.bundle.Admission != nil && a.bundle.Admission.ReadsFacts() }

// ask asks every rule or, early, those that refuse without the facts.
func (a asker) ask(ctx context.Context, facts map[string]any, early bool) (Findings, error) {
	var found Findings
	in, err := a.input(facts)
	if err != nil {
		return found, err
	}
	if a.bundle.Admission == nil {
		return undecided(a.bundle, in, errNotCompiled), nil
	}
	rules := a.bundle.Admission.Admit
	if early {
		rules = a.bundle.Admission.AdmitEarly
	}
	verdict, err := rules(ctx, in)
	if err != nil {
		return undecided(a.bundle, in, err), nil
	}
	for _, d := range verdict.Denials {
		found.Denials = append(found.Denials, metav1.StatusCause{Type: metav1.CauseType(d.Code), Field: d.Field, Message: d.Message})
	}
	for _, w := range verdict.Warnings {
		if w.Field != "" {
			w.Message = w.Field + ": " + w.Message
		}
		found.Warn("%s [%s]", w.Message, w.Code)
	}
	return found, nil
}

// input is what the rules see of the request.
func (a asker) input(facts map[string]any) (admission.Input, error) {
	req := a.req
	in := admission.Input{Operation: string(req.Operation), Kind: a.kind, Facts: facts,
		User: admission.User{Name: req.UserInfo.Username, Groups: append([]string{}, req.UserInfo.Groups...)}}
	var err error
	if in.Object, err = generic(req.Object.Raw, a.redact); err != nil {
		return in, err
	}
	in.OldObject, err = generic(req.OldObject.Raw, a.redact)
	return in, err
}

// errNotCompiled: the revision in force does not compile in this engine, so that it is not known what its rules refuse.
var errNotCompiled = errors.New("its content does not compile in this version of metalaw, so that what it refuses is not known")

// undecided is the answer where a rule failed.
func undecided(b *bundle.Bundle, in admission.Input, err error) Findings {
	var found Findings
	if in.Operation == string(admissionv1.Delete) || onlyRemovesFinalizers(in.OldObject, in.Object) {
		found.Warn("policy %s could not be asked and is passed over, so that the object can go: %v", b.Revision.Name, err)
		return found
	}
	remedy := "mend the rule or put the former bundle in force again"
	var failed *admission.EvalError
	switch {
	case errors.Is(err, errNotCompiled):
		remedy = "run the version of metalaw that accepted it, or promote a bundle that this one accepts; deletions, bundles, freezes and " +
			"the manager's own writes pass meanwhile"
	case !errors.As(err, &failed):
		remedy = "see whether the object can be made smaller"
	}
	found.Denials = []metav1.StatusCause{{Type: causePolicyError,
		Message: "policy " + b.Revision.Name + " could not decide: " + err.Error() + "; " + remedy}}
	return found
}

// generic is nil where there is no object.
func generic(raw []byte, redact func(map[string]any)) (map[string]any, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var o map[string]any
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	if meta, ok := o["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
	}
	if redact != nil && o != nil {
		redact(o)
	}
	return o, nil
}

// onlyRemovesFinalizers says that an update takes finalizers away and changes nothing else. It changes both objects.
func onlyRemovesFinalizers(before, after map[string]any) bool {
	was, is := takeFinalizers(before), takeFinalizers(after)
	if len(is) >= len(was) {
		return false
	}
	if slices.ContainsFunc(is, func(f any) bool { return !slices.Contains(was, f) }) {
		return false
	}
	return reflect.DeepEqual(before, after)
}

// takeFinalizers also takes what the API server counts up by itself.
func takeFinalizers(o map[string]any) []any {
	meta, ok := o["metadata"].(map[string]any)
	if !ok {
		return nil
	}
	finalizers, _ := meta["finalizers"].([]any)
	for _, name := range []string{"finalizers", "resourceVersion", "generation"} {
		delete(meta, name)
	}
	return finalizers
}
