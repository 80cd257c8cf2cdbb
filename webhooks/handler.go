// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/metalaw/metalaw/engine/diag"
)

// change is one request with its objects decoded.
type change[T any] struct {
	// old is nil on a creation, new on a deletion.
	old, new *T
	// status says that the request is for the status subresource.
	status bool
	// dryRun says that nothing will be stored.
	dryRun bool
	// user is who asks, and byManager says that it is the manager's own user.
	user      authenticationv1.UserInfo
	byManager bool
	// undo is called where the request is refused after all.
	undo *[]func()
}

func (c change[T]) created() bool { return c.old == nil }
func (c change[T]) deleted() bool { return c.new == nil }

// onDenial registers what takes a reservation back.
func (c change[T]) onDenial(f func()) { *c.undo = append(*c.undo, f) }

// rules holds what there is to say about one kind.
type rules[T any] struct {
	kind string
	// judge looks up what the rules need and asks them. facts are what the bundle's rules get to know besides. The error
	// is a look-up that failed.
	judge func(ctx context.Context, c change[T]) (found findings, facts map[string]any, err error)
	// look finds out what takes long, and adds what it has to say, and to the facts where a rule of the bundle reads them. It is
	// asked last, and only about what nothing refuses so far; nil where there is no such thing.
	look func(ctx context.Context, c change[T], found *findings, facts map[string]any)
	// redact takes away what the bundle's rules must not see; nil where there is nothing.
	redact func(object map[string]any)
	// alone says that the bundle's rules are not asked.
	alone bool
}

// longestReview bounds a review in which the bundle's rules have a say: the API server waits for five seconds, and lets the request
// pass then where failurePolicy is Ignore. A rule that has not answered by that time refuses the request.
const longestReview = 4 * time.Second

// validator answers the reviews of one kind.
type validator[T any] struct {
	rules[T]
	bundles     Bundles
	managerUser string
	metrics     *metrics
	now         func() time.Time
}

// Handle implements admission.Handler.
func (v *validator[T]) Handle(ctx context.Context, req admission.Request) admission.Response {
	began := v.now()
	found, err := v.decide(ctx, &req.AdmissionRequest)
	verdict := verdictAllowed
	log := logf.FromContext(ctx)
	switch {
	case err != nil:
		verdict = verdictError
		log.Error(err, "an admission review could not be decided", "operation", req.Operation)
	case !found.pass():
		verdict = verdictDenied
		log.Info("denied", "operation", req.Operation, "because", diag.ShortenedCharacters(found.text(), maxLogged))
	}
	v.metrics.observe(v.kind, verdict, v.now().Sub(began))
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return found.response(&req.AdmissionRequest, v.kind)
}

func (v *validator[T]) decide(ctx context.Context, req *admissionv1.AdmissionRequest) (findings, error) {
	c, err := decode[T](req)
	if err != nil {
		return findings{}, err
	}
	c.user, c.byManager = req.UserInfo, req.UserInfo.Username == v.managerUser
	if !v.alone {
		inTime, cancel := context.WithTimeout(ctx, longestReview)
		defer cancel()
		ctx = inTime
	}
	found, facts, err := v.judge(ctx, c)
	if err == nil {
		err = v.consult(ctx, c, req, &found, facts)
	}
	if err != nil || !found.pass() {
		for _, undo := range *c.undo {
			undo()
		}
	}
	return found, err
}

// consult asks the bundle's rules, and looks once they let the request pass: what a look costs can then keep nobody from being held
// to them. Those that read the facts have to wait for it; the others are asked before.
func (v *validator[T]) consult(ctx context.Context, c change[T], req *admissionv1.AdmissionRequest, found *findings, facts map[string]any) error {
	rules := asker{bundle: v.bundles.Active(), kind: v.kind, req: req, redact: v.redact}
	held := !c.byManager && !c.status && !v.alone
	waits := held && v.look != nil && rules.readsFacts()
	if waits {
		early, err := rules.early(ctx)
		found.add(early)
		if err != nil || !found.pass() {
			return err
		}
		v.look(ctx, c, found, facts)
	}
	if held {
		said, err := rules.all(ctx, facts)
		found.add(said)
		if err != nil {
			return err
		}
	}
	if v.look != nil && !waits && !c.byManager && !c.status && found.pass() { // what the manager writes it has judged itself
		v.look(ctx, c, found, facts)
	}
	return nil
}

func decode[T any](req *admissionv1.AdmissionRequest) (change[T], error) {
	c := change[T]{
		status: req.SubResource == "status",
		dryRun: req.DryRun != nil && *req.DryRun,
		undo:   &[]func(){},
	}
	var err error
	if c.new, err = object[T](req.Object.Raw); err != nil {
		return c, fmt.Errorf("the object cannot be read: %w", err)
	}
	if c.old, err = object[T](req.OldObject.Raw); err != nil {
		return c, fmt.Errorf("the stored object cannot be read: %w", err)
	}
	if c.new == nil && c.old == nil {
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
