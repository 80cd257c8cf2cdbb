// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

func TestAReleaseIsUndoneUntilAWipeIsPrepared(t *testing.T) {
	released := func(s *v1alpha1.Server) {
		s.Annotations[v1alpha1.ReleasedClaimAnnotation] = "uid-web"
		s.Annotations[v1alpha1.ReleasedAtAnnotation] = time.Now().UTC().Format(time.RFC3339)
	}
	for name, c := range map[string]struct {
		grace  bool
		server []func(*v1alpha1.Server)
		want   string
		state  v1alpha1.ServerState
	}{
		"within the grace the record goes and the server waits for its claim": {
			true, []func(*v1alpha1.Server){released}, "undo-release Succeeded", v1alpha1.StateReserved},
		"without a record there is nothing to undo": {
			true, nil, "undo-release Refused", v1alpha1.StateReserved},
		"a release that took effect is undone while the machine is not off yet": {
			false, []func(*v1alpha1.Server){released}, "undo-release Succeeded", v1alpha1.StateReserved},
		"a server without its reference may have been erased": {
			false, []func(*v1alpha1.Server){released, func(s *v1alpha1.Server) { s.Spec.ServerClaimRef = nil }}, "undo-release Refused", v1alpha1.StateReserved},
		"a kept server goes back from Released": {
			false, []func(*v1alpha1.Server){released, func(s *v1alpha1.Server) {
				s.Status.State, s.Spec.ReclaimPolicy = v1alpha1.StateReleased, v1alpha1.ReclaimPolicyRetain
			}},
			"undo-release Succeeded", v1alpha1.StateReserved},
		"and so does one whose record went in a write that came to half": {
			false, []func(*v1alpha1.Server){func(s *v1alpha1.Server) { s.Status.State = v1alpha1.StateReleased }},
			"undo-release Succeeded", v1alpha1.StateReserved},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serverIn(v1alpha1.StateReserved, holdsWeb, operates(v1alpha1.OperationUndoRelease), func(s *v1alpha1.Server) {
					s.Status.Lifecycle.Marks = []string{"Dirty", "Managed"}
				})
				for _, change := range c.server {
					change(s)
				}
				w := inWorld(t, newMachine(redfish.PowerOn), s)
				w.manager.NoReleaseGrace, w.manager.Counted = !c.grace, counts(500)
				w.manager.run(time.Second)
				if got := w.operation(); got != c.want {
					t.Errorf("the operation: %s, want %s (%+v)", got, c.want, w.server().Status.Operation)
				}
				after := w.server()
				if c.want == "undo-release Succeeded" && after.Annotations[v1alpha1.ReleasedClaimAnnotation] != "" {
					t.Error("the release is recorded still")
				}
				w.manager.run(10 * time.Minute)
				if got := w.server().Status.State; c.want == "undo-release Succeeded" && got != c.state {
					t.Errorf("it came to %s, want %s", got, c.state)
				}
			})
		})
	}
}

func TestAReleaseThatWaitsIsToldInReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := func(s *v1alpha1.Server) {
			s.Annotations[v1alpha1.ReleasedClaimAnnotation] = "uid-web"
			s.Annotations[v1alpha1.ReleasedAtAnnotation] = time.Now().UTC().Format(time.RFC3339)
			s.Status.Lifecycle.Marks = []string{"Dirty", "Managed"}
		}
		w := inWorld(t, newMachine(redfish.PowerOn), serverIn(v1alpha1.StateReserved, holdsWeb, ended))
		w.manager.NoReleaseGrace, w.manager.Counted = false, counts(500)
		effect := time.Now().Add(5 * time.Minute).UTC().Format(time.RFC3339)
		w.manager.run(time.Minute)
		first := w.server()
		want := "Bound to a claim, which owns power and boot; powered off once released. Its claim has ended: the machine is powered off, and " +
			"the release takes effect at " + effect +
			". Until then metalaw server undo-release a takes it back."
		if ready := meta.FindStatusCondition(first.Status.Conditions, v1alpha1.ConditionReady); ready == nil || ready.Message != want {
			t.Errorf("got  %+v\nwant %s", ready, want)
		}
		w.manager.run(3 * time.Minute)
		if after := w.server(); after.ResourceVersion != first.ResourceVersion {
			t.Errorf("it was written again within the grace: %+v", after.Status)
		}
		w.manager.run(10 * time.Minute)
		if s := w.server(); s.Status.State != v1alpha1.StateCleanup {
			t.Errorf("it came to %s: %+v", s.Status.State, s.Status.Conditions)
		}
	})
}
