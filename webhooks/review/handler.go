// SPDX-License-Identifier: Apache-2.0

// Package review decodes admission requests, asks the rules of a kind and those of the bundle, and answers.
package review

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/ptr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/metalaw/metalaw/engine/diag"
)

// Change is one request with its objects decoded.
type Change[T any] struct {
	// Old is nil on a creation, New on a deletion.
	Old, New *T
	// Status says that the request is for the status subresource.
	Status bool
	// DryRun says that nothing will be stored.
	DryRun bool
	// User is who asks, and ByManager says that it is the manager's own user.
	User      authenticationv1.UserInfo
	ByManager bool
	// Undo is called where the request is refused after all.
	Undo *[]func()
}

// Created says that the request creates the object.
func (c Change[T]) Created() bool { return c.Old == nil }

// Deleted says that the request deletes the object.
func (c Change[T]) Deleted() bool { return c.New == nil }

// OnDenial registers what takes a reservation back.
func (c Change[T]) OnDenial(f func()) { *c.Undo = append(*c.Undo, f) }

// Rules holds what there is to say about one kind.
type Rules[T any] struct {
	Kind string
	// Judge looks up what the rules need and asks them. To the facts it adds what the bundle's rules get to know besides. The error
	// is a look-up that failed. It is nil where metalaw itself has no rules.
	Judge func(ctx context.Context, c Change[T], found *Findings, facts map[string]any) error
	// Look finds out what takes long, and adds what it has to say, and to the facts where a rule of the bundle reads them. It is
	// asked last, and only about what nothing refuses so far; nil where there is no such thing.
	Look func(ctx context.Context, c Change[T], found *Findings, facts map[string]any)
	// Redact takes away what the bundle's rules must not see; nil where there is nothing.
	Redact func(object map[string]any)
	// Alone says that the bundle's rules are not asked.
	Alone bool
}

// Pure makes a Judge of rules that need no look-up.
func Pure[T any](check func(Change[T], *Findings)) func(context.Context, Change[T], *Findings, map[string]any) error {
	return func(_ context.Context, c Change[T], found *Findings, _ map[string]any) error {
		check(c, found)
		return nil
	}
}

// longestReview bounds a review in which the bundle's rules have a say: the API server waits for five seconds, and lets the request
// pass then where failurePolicy is Ignore. A rule that has not answered by that time refuses the request.
const longestReview = 4 * time.Second

// Validator answers the reviews of one kind.
type Validator[T any] struct {
	Rules[T]
	Bundles     Bundles
	ManagerUser string
	Metrics     *Metrics
	Now         func() time.Time
}

// Handle implements admission.Handler.
func (v *Validator[T]) Handle(ctx context.Context, req admission.Request) admission.Response {
	began := v.Now()
	found, err := v.Decide(ctx, &req.AdmissionRequest)
	verdict := verdictAllowed
	log := logf.FromContext(ctx)
	switch {
	case err != nil:
		verdict = verdictError
		log.Error(err, "an admission review could not be decided", "operation", req.Operation)
	case !found.Pass():
		verdict = verdictDenied
		log.Info("denied", "operation", req.Operation, "because", diag.ShortenedCharacters(found.Text(), maxLogged))
	}
	v.Metrics.observe(v.Kind, verdict, v.Now().Sub(began))
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return found.Response(&req.AdmissionRequest, v.Kind)
}

// Decide says what is found about a request. An error is a look-up that failed.
func (v *Validator[T]) Decide(ctx context.Context, req *admissionv1.AdmissionRequest) (Findings, error) {
	c, err := decode[T](req, v.ManagerUser)
	if err != nil {
		return Findings{}, err
	}
	if !v.Alone {
		inTime, cancel := context.WithTimeout(ctx, longestReview)
		defer cancel()
		ctx = inTime
	}
	var found Findings
	facts := map[string]any{}
	if v.Judge != nil {
		err = v.Judge(ctx, c, &found, facts)
	}
	if err == nil {
		err = v.consult(ctx, c, req, &found, facts)
	}
	if err != nil || !found.Pass() {
		for _, undo := range *c.Undo {
			undo()
		}
	}
	return found, err
}

// consult asks the bundle's rules, and looks once they let the request pass: what a look costs can then keep no request
// from being held to them. Those that read the facts have to wait for it; the others are asked before.
func (v *Validator[T]) consult(ctx context.Context, c Change[T], req *admissionv1.AdmissionRequest, found *Findings, facts map[string]any) error {
	rules := asker{bundle: v.Bundles.Active(), kind: v.Kind, req: req, redact: v.Redact}
	held := !c.ByManager && !c.Status && !v.Alone
	waits := held && v.Look != nil && rules.readsFacts()
	if waits {
		early, err := rules.ask(ctx, nil, true)
		found.add(early)
		if err != nil || !found.Pass() {
			return err
		}
		v.Look(ctx, c, found, facts)
	}
	if held {
		said, err := rules.ask(ctx, facts, false)
		found.add(said)
		if err != nil {
			return err
		}
	}
	if v.Look != nil && !waits && !c.ByManager && !c.Status && found.Pass() { // what the manager writes it has judged itself
		v.Look(ctx, c, found, facts)
	}
	return nil
}

func decode[T any](req *admissionv1.AdmissionRequest, managerUser string) (Change[T], error) {
	c := Change[T]{
		Status:    req.SubResource == "status",
		DryRun:    ptr.Deref(req.DryRun, false),
		User:      req.UserInfo,
		ByManager: req.UserInfo.Username == managerUser,
		Undo:      &[]func(){},
	}
	var err error
	if c.New, err = object[T](req.Object.Raw); err != nil {
		return c, fmt.Errorf("the object cannot be read: %w", err)
	}
	if c.Old, err = object[T](req.OldObject.Raw); err != nil {
		return c, fmt.Errorf("the stored object cannot be read: %w", err)
	}
	if c.New == nil && c.Old == nil {
		return c, fmt.Errorf("the review of a %s bears no object", req.Operation)
	}
	return c, nil
}

// object is nil where there is none.
func object[T any](raw []byte) (*T, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	o := new(T)
	return o, json.Unmarshal(raw, o)
}
