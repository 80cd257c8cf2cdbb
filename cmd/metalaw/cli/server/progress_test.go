// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

func TestHowFarTheManagerHasCome(t *testing.T) {
	stands, keeps := annotated(v1alpha1.OperationAnnotation, "park"), annotated(v1alpha1.ParkRequestedAnnotation, "{}")
	for name, c := range map[string]struct {
		server *v1alpha1.Server
		before string
		want   stage
	}{
		"not taken in":                             {aServer(stands), "", stageUnseen},
		"recorded while the annotation stands":     {aServer(stands, records("park", v1alpha1.OperationPending)), "", stageBegun},
		"begun":                                    {aServer(records("park", v1alpha1.OperationInProgress)), "", stageBegun},
		"done":                                     {aServer(records("park", v1alpha1.OperationSucceeded)), "", stageEnded},
		"failed":                                   {aServer(records("park", v1alpha1.OperationFailed)), "", stageEnded},
		"an older record of the same operation":    {aServer(stands, records("park", v1alpha1.OperationSucceeded)), "op1", stageUnseen},
		"kept until its state allows it":           {aServer(keeps), "", stageKept},
		"kept beside another one's record":         {aServer(keeps, records("retry", v1alpha1.OperationPending)), "", stageKept},
		"kept, and begun":                          {aServer(keeps, records("park", v1alpha1.OperationPending)), "", stageBegun},
		"taken away and not recorded":              {aServer(records("park", v1alpha1.OperationSucceeded)), "op1", stageUnrecorded},
		"taken away beside another one's record":   {aServer(records("retry", v1alpha1.OperationSucceeded)), "", stageUnrecorded},
		"taken away, where nothing was ever done":  {aServer(), "", stageUnrecorded},
		"somebody asked for something else since":  {aServer(annotated(v1alpha1.OperationAnnotation, "retry")), "", stageUnrecorded},
		"refused, on record, by a later operation": {aServer(records("park", v1alpha1.OperationRefused)), "", stageEnded},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stageOf(c.server, "park", c.before); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestAWaitThatIsOverSaysWhatHoldsTheRequestUp(t *testing.T) {
	withheld := func(s *v1alpha1.Server) {
		s.Status.Conditions = []metav1.Condition{{Type: "Withheld", Status: "True", Reason: "Frozen", Message: "by bob"}}
	}
	for name, c := range map[string]struct {
		server *v1alpha1.Server
		stage  stage
		want   string
	}{
		"nobody took it in": {aServer(), stageUnseen, "not taken in after 1m0s; does the manager run?"},
		"it is kept": {aServer(annotated(v1alpha1.ParkRequestedAnnotation, "{}")), stageKept,
			"the request is kept, and after 1m0s the server is in Error; no new claim gets it"},
		"it is under way":     {aServer(records("park", v1alpha1.OperationInProgress)), stageBegun, "still InProgress after 1m0s"},
		"something withholds": {aServer(records("park", v1alpha1.OperationPending), withheld), stageBegun, "still Pending after 1m0s; Withheld is True, Frozen: by bob"},
	} {
		t.Run(name, func(t *testing.T) {
			got := overdue(result{Name: "s"}, c.server, c.stage, "1m0s")
			if got.Outcome != "timed-out" || got.Message != c.want {
				t.Errorf("got %s %q, want %q", got.Outcome, got.Message, c.want)
			}
		})
	}
}

func TestTheEventThatExplainsARefusal(t *testing.T) {
	early := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	event := func(reason, message string, at time.Time) corev1.Event {
		return corev1.Event{ObjectMeta: metav1.ObjectMeta{UID: "e", ResourceVersion: "8"}, Reason: reason, Message: message, EventTime: metav1.NewMicroTime(at)}
	}
	for name, c := range map[string]struct {
		operation string
		former    formerEvents
		events    []corev1.Event
		want      string
	}{
		"none yet": {"park", nil, nil, ""},
		"the newest": {"park", nil, []corev1.Event{
			event("OperationRefused", "park cannot be used in state Error", early.Add(2*time.Second)),
			event("OperationRefused", "park cannot be used in state Initial", early.Add(time.Second))},
			"park cannot be used in state Error"},
		"not one of an earlier request": {"park", formerEvents{"e": "8"}, []corev1.Event{event("OperationRefused", "park cannot be used in state Error", early)}, ""},
		"one that is repeated":          {"park", formerEvents{"e": "7"}, []corev1.Event{event("OperationRefused", "park cannot be used in state Error", early)}, "park cannot be used in state Error"},
		"not one of another operation":  {"park", nil, []corev1.Event{event("OperationRefused", "retry cannot be used in state Parked", early)}, ""},
		"one that a parked server drops": {"retry", nil, []corev1.Event{event("ParkedOperationDropped", "retry is dropped: it is parked", early)},
			"retry is dropped: it is parked"},
		"a kept one that another claim drops": {"park", nil, []corev1.Event{event("ParkRequestDropped", "park is dropped: claim a/b", early)},
			"park is dropped: claim a/b"},
		"not one of another kind": {"park", nil, []corev1.Event{event("Parked", "park", early)}, ""},
		"one of a manager that does not know the word": {"force", nil, []corev1.Event{event("UnknownOperation", `there is no operation "force"`, early)},
			`there is no operation "force"`},
		"what a force would take, by the name of its flag": {"force", nil, []corev1.Event{
			event("OperationRefused", "force to Available: NeverOfferDirty: no; ask with policy.metalaw.dev/force-override=true", early)},
			"force to Available: NeverOfferDirty: no; ask with policy.metalaw.dev/force-override=true (that is --override-safety)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newest(c.events, c.operation, c.former); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTheReport(t *testing.T) {
	results := []result{
		{Name: "b", State: "Error", Outcome: outcomeAsked, Message: "retry; it was in Error"},
		{Name: "long", Outcome: outcomeFailed, Message: "there is no server of this name"},
	}
	for name, c := range map[string]struct {
		output  terminal.Output
		dryRun  bool
		results []result
		want    string
		err     error
	}{
		"in text, a line each": {results: results, err: terminal.ErrIncomplete,
			want: "b     asked      retry; it was in Error\nlong  failed     there is no server of this name\n"},
		"of a dry run": {results: results[:1], dryRun: true, want: "b     asked      retry; it was in Error (dry run: nothing was stored)\n"},
		"in JSON": {results: results[:1], output: terminal.OutputAs(terminal.AsJSON), want: `{
  "verb": "retry",
  "complete": true,
  "servers": [
    {
      "name": "b",
      "state": "Error",
      "outcome": "asked",
      "message": "retry; it was in Error"
    }
  ]
}
`},
		"in YAML": {results: results[:1], output: terminal.OutputAs(terminal.AsYAML), want: `complete: true
servers:
- message: retry; it was in Error
  name: b
  outcome: asked
  state: Error
verb: retry
`},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			r := &report{terminal: &terminal.Terminal{Out: &out}, output: c.output, dryRun: c.dryRun, verb: "retry"}
			r.begin(results)
			for _, o := range c.results {
				r.add(o)
			}
			if err := r.end(); !errors.Is(err, c.err) {
				t.Errorf("ended with %v, want %v", err, c.err)
			}
			if out.String() != c.want {
				t.Errorf("got\n%swant\n%s", out.String(), c.want)
			}
		})
	}
}
