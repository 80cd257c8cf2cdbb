// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
)

type follower struct {
	*run
	open  map[string]*followed
	told  map[string]bool
	began time.Time
}

// follow waits until every request has ended, and reports each as it does. The time limit is one for all.
func (r *run) follow(ctx context.Context, asked []followed) {
	if len(asked) == 0 {
		return
	}
	f := &follower{run: r, open: map[string]*followed{}, told: map[string]bool{}, began: time.Now()}
	for i := range asked {
		f.open[asked[i].result.Name] = &asked[i]
	}
	limited, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	for len(f.open) > 0 && limited.Err() == nil {
		err := f.turn(limited)
		if err != nil && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)) {
			f.giveUp(func(o *followed) result {
				o.result.Message = "stored, but what became of it cannot be seen: " + err.Error()
				o.result.Outcome = outcomeFailed
				return o.result
			})
			return
		}
		if len(f.open) > 0 {
			pause(limited) // the watch ended, or the API server is away for a moment
		}
	}
	f.giveUp(func(o *followed) result {
		if ctx.Err() != nil {
			o.result.Outcome, o.result.Message = outcomeTimedOut, "stored; you stopped waiting"
			return o.result
		}
		if !o.takenAway.IsZero() {
			return f.unexplained(o)
		}
		return overdue(o.result, o.stored, stageOf(o.stored, r.verb.operation, o.before), r.timeout.String())
	})
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(500 * time.Millisecond):
	}
}

// turn lists the servers and watches them from there, until all requests have ended or the watch does.
func (f *follower) turn(ctx context.Context) error {
	scope := f.scope()
	var list v1alpha1.ServerList
	if err := f.client.List(ctx, &list, scope); err != nil {
		return access.Explain(err, "list", access.Servers)
	}
	seen := map[string]bool{}
	for i := range list.Items {
		seen[list.Items[i].Name] = true
		f.see(&list.Items[i], time.Now())
	}
	for name, o := range f.open {
		if !seen[name] {
			f.gone(o.stored)
		}
	}
	if len(f.open) == 0 {
		return nil
	}
	w, err := f.client.Watch(ctx, &v1alpha1.ServerList{}, scope, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return access.Explain(err, "watch", access.Servers)
	}
	defer w.Stop()
	return f.events(ctx, w)
}

// events takes in what a watch brings, until nothing is open any more or the watch ends.
func (f *follower) events(ctx context.Context, w watch.Interface) error {
	looks := time.NewTicker(eventLook)
	defer looks.Stop()
	for len(f.open) > 0 {
		select {
		case <-ctx.Done():
			return nil
		case now := <-looks.C:
			f.settle(ctx, now)
			f.tellWaits(now)
		case e, more := <-w.ResultChan():
			if !more {
				return nil
			}
			s, ok := e.Object.(*v1alpha1.Server)
			switch {
			case e.Type == watch.Error:
				if err := apierrors.FromObject(e.Object); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
					return access.Explain(err, "watch", access.Servers)
				}
				return nil
			case ok && e.Type == watch.Deleted:
				f.gone(s)
			case ok:
				f.see(s, time.Now())
			}
		}
	}
	return nil
}

// scope is the narrowest list that holds every server that is waited for.
func (f *follower) scope() client.ListOption {
	if len(f.open) == 1 {
		for name := range f.open {
			return client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)}
		}
	}
	// The labels of a server may change while it is waited for.
	return client.MatchingFieldsSelector{Selector: fields.Everything()}
}

// see takes in the present form of a server.
func (f *follower) see(s *v1alpha1.Server, now time.Time) {
	o := f.open[s.Name]
	if o == nil {
		return
	}
	o.stored = s
	stage := stageOf(s, f.verb.operation, o.before)
	if stage != stageUnrecorded {
		o.takenAway = time.Time{}
	}
	switch stage {
	case stageUnseen, stageKept:
	case stageBegun:
		f.tellOverrides(s, "would set aside")
	case stageEnded:
		f.tellOverrides(s, "set aside") // one that was refused names none
		f.close(ended(o.result, s.Status.Operation))
	case stageUnrecorded:
		if o.takenAway.IsZero() {
			o.takenAway = now
		}
	}
}

func (f *follower) gone(s *v1alpha1.Server) {
	if o := f.open[s.Name]; o != nil {
		o.result.Outcome, o.result.Message = outcomeFailed, "the server was deleted"
		f.close(o.result)
	}
}

func (f *follower) close(r result) {
	delete(f.open, r.Name)
	f.report.add(r)
}

func (f *follower) giveUp(outcome func(*followed) result) {
	for _, name := range slices.Sorted(maps.Keys(f.open)) {
		f.close(outcome(f.open[name]))
	}
}

// tellOverrides says, as soon as the manager has recorded it, which safety rules a forced move would set aside, or did.
func (f *follower) tellOverrides(s *v1alpha1.Server, words string) {
	if overrides := s.Status.Operation.Overrides; len(overrides) > 0 && !f.told[s.Name] {
		f.told[s.Name] = true
		f.report.terminal.Notef("%s: %s %s", s.Name, words, strings.Join(overrides, ", "))
	}
}

// tellWaits says once of each request what holds it back, so that its user need not wait for the timeout to learn that.
func (f *follower) tellWaits(now time.Time) {
	for _, name := range slices.Sorted(maps.Keys(f.open)) {
		o := f.open[name]
		why := waits(o.stored, stageOf(o.stored, f.verb.operation, o.before), now.Sub(f.began) >= eventDelay)
		if why != "" && !f.told["waits/"+name] {
			f.told["waits/"+name] = true
			f.report.terminal.Notef("%s: %s", name, why)
		}
	}
}

// settle ends the requests that the manager took away without a record: it says why in an Event. Both the Event and a
// record may come a moment after the annotation is gone; a record comes by the watch. All of them are looked for at once,
// so that many refusals take no longer than one.
func (f *follower) settle(ctx context.Context, now time.Time) {
	var waiting []*followed
	for _, name := range slices.Sorted(maps.Keys(f.open)) {
		if o := f.open[name]; !o.takenAway.IsZero() {
			waiting = append(waiting, o)
		}
	}
	if len(waiting) == 0 {
		return
	}
	refusals := f.readRefusals(ctx)
	for _, o := range waiting {
		if why := newest(refusals[o.result.Name], f.verb.operation, f.former); why != "" {
			o.result.Outcome, o.result.Message = outcomeRefused, why
			f.close(o.result)
		} else if now.Sub(o.takenAway) >= eventDelay {
			f.close(f.unexplained(o))
		}
	}
}

// unexplained is the result of a request that the manager took away, and of which nothing that can be read says why. The
// manager records what it begins, so that this is a refusal.
func (f *follower) unexplained(o *followed) result {
	r := o.result
	r.Outcome, r.Message = outcomeRefused, "the manager took the request away and recorded nothing; it says why in an Event"
	if f.unreadable != nil {
		r.Message += fmt.Sprintf(", which you cannot see: %v", f.unreadable)
	} else {
		r.Message += ": kubectl get events -n default --field-selector involvedObject.name=" + r.Name
	}
	return r
}

const (
	// eventDelay is how long an Event, or a record, may take to appear after the write that it explains.
	eventDelay = 3 * time.Second
	// eventLook is how often they are looked for.
	eventLook = 200 * time.Millisecond
)

// stage is how far the manager has come with a request.
type stage int

const (
	// stageUnseen: the annotation stands and nothing is recorded.
	stageUnseen stage = iota
	// stageBegun: the manager has recorded it.
	stageBegun
	// stageKept: the manager keeps the request until the state of the server allows it.
	stageKept
	// stageEnded: it is over; the record says how.
	stageEnded
	// stageUnrecorded: the annotation is gone and no record was made: refused, or the record comes in a moment.
	stageUnrecorded
)

// stageOf reads from a server how far an operation has come that was asked for when the last recorded one had the id
// before.
func stageOf(s *v1alpha1.Server, operation, before string) stage {
	if op := s.Status.Operation; op != nil && op.ID != before && op.Name == operation {
		if op.FinishedAt != nil || (op.State != v1alpha1.OperationPending && op.State != v1alpha1.OperationInProgress) {
			return stageEnded
		}
		return stageBegun
	}
	if s.Annotations[v1alpha1.OperationAnnotation] == operation {
		return stageUnseen
	}
	if _, kept := s.Annotations[v1alpha1.ParkRequestedAnnotation]; kept && operation == v1alpha1.OperationPark {
		return stageKept
	}
	return stageUnrecorded
}

// ended is the result that a record of an operation that is over gives.
func ended(r result, op *v1alpha1.OperationStatus) result {
	r.Operation, r.Message = op, op.Message
	switch op.State {
	case v1alpha1.OperationSucceeded:
		r.Outcome = outcomeDone
	case v1alpha1.OperationRefused:
		r.Outcome = outcomeRefused
	default:
		r.Outcome = outcomeFailed
	}
	return r
}

// holdingUp are the conditions that hold a request up.
var holdingUp = []fault{
	{v1alpha1.ConditionWithheld, metav1.ConditionTrue},
	{v1alpha1.ConditionPolicyHalted, metav1.ConditionTrue},
	{v1alpha1.ConditionBMCReachable, metav1.ConditionFalse},
}

// overdue is the result for a request that has not ended in time: how far it is, and what is known to hold it up.
func overdue(r result, s *v1alpha1.Server, at stage, waited string) result {
	r.Outcome = outcomeTimedOut
	words := []string{fmt.Sprintf("not taken in after %s; does the manager run?", waited)}
	switch at { //nolint:exhaustive // the others are not taken in
	case stageBegun:
		r.Operation = s.Status.Operation
		words = []string{fmt.Sprintf("still %s after %s", s.Status.Operation.State, waited)}
	case stageKept:
		words = []string{fmt.Sprintf("the request is kept, and after %s the server is in %s; no new claim gets it",
			waited, s.Status.State)}
	}
	for _, holds := range holdingUp {
		if c := holds.on(s); c != nil {
			words = append(words, fmt.Sprintf("%s is %s, %s: %s", holds.kind, c.Status, c.Reason, c.Message))
		}
	}
	r.Message = strings.Join(words, "; ")
	return r
}
