// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

// kept is the marks that the inventory of the machine keeps.
func (w *world) kept() []string {
	w.t.Helper()
	var inv policyv1alpha1.ServerInventory
	err := w.api.Get(w.t.Context(), client.ObjectKey{Name: machineUUID}, &inv)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if apierrors.IsNotFound(err) || inv.Custody == nil {
		return nil
	}
	return inv.Custody.Marks
}

// loses takes the status of the server away, but for what its BMC shows.
func (w *world) loses() {
	w.t.Helper()
	lost := w.server()
	lost.Status = v1alpha1.ServerStatus{NetworkInterfaces: lost.Status.NetworkInterfaces}
	if err := w.api.Status().Update(w.t.Context(), lost); err != nil {
		w.t.Fatal(err)
	}
}

func TestAMachineThatWasFoundRunningStaysAStrangerThoughItsStatusIsLost(t *testing.T) {
	unknown := func(s *v1alpha1.Server) {
		s.Status.State, s.Status.Lifecycle, s.Finalizers = "", nil, nil
	}
	onceOurs := &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: machineUUID},
		Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: machineUUID}, Report: &policyv1alpha1.ProbeReport{Entry: 3}}
	for name, known := range map[string][]client.Object{
		"that nobody has seen before":                 nil,
		"that was ours before its Server was deleted": {onceOurs},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOn)
				w := inWorld(t, m, append([]client.Object{serverIn("", unknown)}, known...)...)
				w.manager.run(5 * time.Minute)
				if got := w.server().Status; got.State != v1alpha1.StateObserving || !slices.Equal(got.Lifecycle.Marks, []string{"Stranger"}) {
					t.Fatalf("it is %s with the marks %v", got.State, got.Lifecycle.Marks)
				}
				m.will(0, redfish.PowerOff)
				w.manager.run(10 * time.Minute)
				w.loses()
				w.manager.run(time.Hour)
				if got := w.server().Status; got.State != v1alpha1.StateObserving || !slices.Contains(got.Lifecycle.Marks, "Stranger") {
					t.Errorf("off, and its status lost, it is %s with the marks %v", got.State, got.Lifecycle.Marks)
				}
				m.wants(t, "while nobody consents")
			})
		})
	}
}

func TestWhatTheInventoryTellsOfAStrangerOutlivesAStatusThatDoesNot(t *testing.T) {
	told := &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: machineUUID},
		Spec:    policyv1alpha1.ServerInventorySpec{SystemUUID: machineUUID},
		Custody: &policyv1alpha1.Custody{Marks: []string{"Stranger"}}}
	for name, c := range map[string]struct {
		change func(*v1alpha1.Server)
		state  v1alpha1.ServerState
		marks  []string
		kept   []string
	}{
		"a machine that nobody gave to us is observed again": {
			func(s *v1alpha1.Server) { s.Status.Lifecycle.Marks = nil }, v1alpha1.StateObserving, []string{"Stranger"}, []string{"Stranger"}},
		"one that we booted since is ours": {
			func(s *v1alpha1.Server) { s.Status.Lifecycle.Marks = []string{"Managed"} }, v1alpha1.StateAvailable, []string{"Managed"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOff)
				w := inWorld(t, m, serverIn(v1alpha1.StateAvailable, c.change), told.DeepCopy())
				w.manager.run(5 * time.Minute)
				got := w.server().Status
				if got.State != c.state || !slices.Equal(got.Lifecycle.Marks, c.marks) || !slices.Equal(w.kept(), c.kept) {
					t.Errorf("it is %s with the marks %v, and its inventory keeps %v", got.State, got.Lifecycle.Marks, w.kept())
				}
				m.wants(t, "in all")
			})
		})
	}
}

func TestAForcedMoveIsAWordThatOutlivesWhatTheInventoryTold(t *testing.T) {
	stranger := func(s *v1alpha1.Server) { s.Status.Lifecycle.Marks = []string{"Stranger"} }
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		w := inWorld(t, m, serverIn(v1alpha1.StateObserving, stranger))
		w.manager.run(time.Minute)
		edit(w, "a", &v1alpha1.Server{}, func(s *v1alpha1.Server) {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationAnnotation, v1alpha1.OperationForce)
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ForceToAnnotation, string(v1alpha1.StateAvailable))
		})
		w.manager.run(5 * time.Minute)
		got := w.server().Status
		if got.State != v1alpha1.StateAvailable || len(got.Lifecycle.Marks) > 0 || len(w.kept()) > 0 {
			t.Errorf("it is %s with the marks %v, and its inventory keeps %v", got.State, got.Lifecycle.Marks, w.kept())
		}
	})
}

func TestAMachineThatIsGivenToUsIsAStrangerNoMore(t *testing.T) {
	stranger := func(s *v1alpha1.Server) { s.Status.Lifecycle.Marks = []string{"Stranger"} }
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		w := inWorld(t, m, serverIn(v1alpha1.StateObserving, stranger))
		w.manager.run(time.Minute)
		if got := w.kept(); !slices.Equal(got, []string{"Stranger"}) {
			t.Fatalf("its inventory keeps %v", got)
		}
		edit(w, "a", &v1alpha1.Server{}, func(s *v1alpha1.Server) {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ConsentAnnotation, v1alpha1.ConsentTakeOver)
		})
		w.manager.run(5 * time.Minute)
		if got := w.kept(); len(got) > 0 {
			t.Errorf("with consent its inventory keeps %v", got)
		}
		if got := w.server().Status.State; got != v1alpha1.StateDiscovery {
			t.Errorf("with consent it is %s", got)
		}
	})
}

func TestNothingIsWrittenToABMCThatDoesNotShowTheTextOfItsServer(t *testing.T) {
	for name, c := range map[string]struct {
		shows    string
		asked    bool
		mismatch string
	}{
		"it shows a UUID":                    {machineUUID, false, `True the BMC answers for system "1a2b3c4d-0000-0000-0000-000000000001" (serial "S1"), this server is system "rack-7"; nothing is written to it`},
		"it shows none":                      {"", false, "none"},
		"it shows another text":              {"rack-8", false, `True the BMC answers for system "rack-8" (serial "S1"), this server is system "rack-7"; nothing is written to it`},
		"it shows that text, as some do":     {"RACK-7", true, "none"},
		"it shows what firmware writes then": {"Not Specified", false, `True the BMC answers for system "Not Specified" (serial "S1"), this server is system "rack-7"; nothing is written to it`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOff)
				m.shows.Identity = redfish.Identity{UUID: c.shows, SerialNumber: "S1"}
				w := inWorld(t, m, reserved(v1alpha1.PowerOn, func(s *v1alpha1.Server) { s.Spec.SystemUUID = "rack-7" })...)
				w.manager.run(20 * time.Minute)
				if got := m.asked(); (len(got) > 0) != c.asked {
					t.Errorf("the BMC was asked for %q", got)
				}
				got := "none"
				if is := meta.FindStatusCondition(w.server().Status.Conditions, v1alpha1.ConditionIdentityMismatch); is != nil {
					got = string(is.Status) + " " + is.Message
				}
				if got != c.mismatch {
					t.Errorf("IdentityMismatch: %s", got)
				}
			})
		})
	}
}
