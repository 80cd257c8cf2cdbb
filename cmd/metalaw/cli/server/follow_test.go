// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// following waits for a park of servers s1, s2 and s3, which the manager has taken away at noon without a record. Events are
// read from the list; the error, where one is given, is the answer to whoever reads them.
func following(t *testing.T, events []corev1.Event, unreadable error) (f *follower, out, notes *bytes.Buffer) {
	t.Helper()
	api := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			asked := client.ListOptions{}
			asked.ApplyOptions(options)
			found, ok := list.(*corev1.EventList)
			if !ok || unreadable != nil {
				return unreadable
			}
			for _, e := range events {
				if reason, _ := asked.FieldSelector.RequiresExactMatch("reason"); e.Reason == reason {
					found.Items = append(found.Items, e)
				}
			}
			return nil
		},
	}).Build()
	out, notes = &bytes.Buffer{}, &bytes.Buffer{}
	r := &run{request: request{verb: verbNamed(t, "park")}, client: api, report: &report{terminal: &terminal.Terminal{Out: out, Err: notes}}}
	f = &follower{run: r, open: map[string]*followed{}, told: map[string]bool{}}
	for _, name := range []string{"s1", "s2", "s3"} {
		f.open[name] = &followed{result: result{Name: name, Outcome: outcomeAsked}}
		f.see(aServer(func(s *v1alpha1.Server) { s.Name = name }), noonSharp)
	}
	return f, out, notes
}

var noonSharp = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestRefusalsThatNobodyMayReadTakeNoLongerThanOne(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New(`User "bob" cannot list resource "events"`))
	f, out, notes := following(t, nil, forbidden)
	f.rememberEvents(t.Context())
	const right = `forbidden: User "bob" cannot list resource "events"; it takes the verb "list" on events; the ClusterRole metalaw-fleet-viewer has it, ` +
		`and so has the cluster's own "view"`
	if diff := cmp.Diff("why something is refused cannot be read: "+right+"\n", notes.String()); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
	f.settle(t.Context(), noonSharp.Add(eventDelay-time.Millisecond))
	if len(f.open) != 3 {
		t.Errorf("a record may still come, and %d are waited for", len(f.open))
	}
	f.settle(t.Context(), noonSharp.Add(eventDelay))
	const line = "  refused    the manager took the request away and recorded nothing; it says why in an Event, which you cannot see: " + right + "\n"
	if diff := cmp.Diff("s1"+line+"s2"+line+"s3"+line, out.String()); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}

func TestWhatBecomesOfARequestThatWasTakenAway(t *testing.T) {
	refusal := corev1.Event{ObjectMeta: metav1.ObjectMeta{UID: "e", ResourceVersion: "8"}, Reason: v1alpha1.ReasonOperationRefused,
		InvolvedObject: corev1.ObjectReference{Name: "s2"}, Message: "park cannot be used in state Error"}
	f, out, _ := following(t, []corev1.Event{refusal}, nil)
	f.settle(t.Context(), noonSharp)
	f.see(aServer(records("park", v1alpha1.OperationSucceeded), func(s *v1alpha1.Server) { s.Name = "s1" }), noonSharp)
	f.settle(t.Context(), noonSharp.Add(eventDelay))
	const want = "s2  refused    park cannot be used in state Error\ns1  done       \n" +
		"s3  refused    the manager took the request away and recorded nothing; it says why in an Event: " +
		"kubectl get events -n default --field-selector involvedObject.name=s3\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}

func TestARequestThatWasBegunAfterAllIsWaitedFor(t *testing.T) {
	f, _, _ := following(t, nil, nil)
	f.see(aServer(records("park", v1alpha1.OperationPending), func(s *v1alpha1.Server) { s.Name = "s1" }), noonSharp)
	f.settle(t.Context(), noonSharp.Add(eventDelay))
	if len(f.open) != 1 || f.open["s1"] == nil {
		t.Errorf("waits for %d", len(f.open))
	}
}

func TestWhatIsSetAsideIsToldOnce(t *testing.T) {
	f, _, notes := following(t, nil, nil)
	see := func(name string, state v1alpha1.OperationState) {
		f.see(aServer(records("park", state), func(s *v1alpha1.Server) {
			s.Name, s.Status.Operation.Overrides = name, []string{"AbsenceIsNotEvidence", "ClearOnlyOnProof"}
		}), noonSharp)
	}
	see("s1", v1alpha1.OperationPending)
	see("s1", v1alpha1.OperationSucceeded)
	see("s2", v1alpha1.OperationSucceeded)
	const want = "s1: would set aside AbsenceIsNotEvidence, ClearOnlyOnProof\ns2: set aside AbsenceIsNotEvidence, ClearOnlyOnProof\n"
	if diff := cmp.Diff(want, notes.String()); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}
