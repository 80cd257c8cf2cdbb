// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

// asksBy has jane ask for an operation, with further annotations.
func (w *world) asksBy(operation, reason string, more map[string]string) {
	w.t.Helper()
	edit(w, "a", &v1alpha1.Server{}, func(s *v1alpha1.Server) {
		for name, value := range map[string]string{v1alpha1.OperationAnnotation: operation, v1alpha1.OperationReasonAnnotation: reason,
			v1alpha1.OperationByAnnotation: "jane"} {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, name, value)
		}
		for name, value := range more {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, name, value)
		}
	})
	w.manager.run(time.Minute)
}

func (w *world) decommission() metav1.Condition {
	w.t.Helper()
	if c := meta.FindStatusCondition(w.server().Status.Conditions, v1alpha1.ConditionDecommission); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// leaving is a server for which decommission was taken in.
func leaving(s *v1alpha1.Server) {
	s.Annotations[v1alpha1.DecommissionAnnotation] = "old"
	s.Spec.Unclaimable = true
}

// reported is the inventory of a clean machine that an agent looked at.
func reported() *policyv1alpha1.ServerInventory {
	i := inventoryOfA()
	i.Report = &policyv1alpha1.ProbeReport{Entry: 6}
	i.Custody = &policyv1alpha1.Custody{Disks: []policyv1alpha1.CustodyDisk{{Name: "sda", WWID: "w"}}}
	return i
}

func TestAFreeServerGoesOutOfServiceAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateAvailable), reported())
		w.manager.run(time.Minute)
		w.asksBy(v1alpha1.OperationDecommission, "too old", nil)
		s := w.server()
		if s.Status.State != v1alpha1.StateDecommissioned || w.operation() != "decommission Succeeded" || !s.Spec.Unclaimable ||
			s.Annotations[v1alpha1.DecommissionAnnotation] != "too old" {
			t.Fatalf("it is in %s: %+v %v", s.Status.State, s.Status.Operation, s.Annotations)
		}
		if c := w.decommission(); c.Status != "True" || !strings.HasPrefix(c.Message, "It is out of service: too old.") {
			t.Errorf("it says %+v", c)
		}
		asked := len(w.machine.asked())
		w.machine.will(0, redfish.PowerOn)
		w.manager.run(time.Hour)
		if got := w.machine.asked()[asked:]; len(got) > 0 {
			t.Errorf("its machine is asked for %v", got)
		}
		w.machine.will(0, redfish.PowerOff)
		w.manager.run(time.Hour)
		w.asksBy(v1alpha1.OperationRecommission, "needed after all", nil)
		if s = w.server(); s.Status.State != v1alpha1.StateDiscovery || w.operation() != "recommission Succeeded" || !s.Spec.Unclaimable {
			t.Errorf("it is in %s: %+v", s.Status.State, s.Status.Operation)
		}
		if _, still := s.Annotations[v1alpha1.DecommissionAnnotation]; still || w.decommission().Type != "" {
			t.Errorf("it is still to go: %v %+v", s.Annotations, w.decommission())
		}
	})
}

func TestADecommissionIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		server *v1alpha1.Server
		reason string
		says   string
	}{
		"of a parked server": {serverIn(v1alpha1.StateParked), "old", "unpark"},
		"of a machine that is not ours": {serverIn(v1alpha1.StateObserving, func(s *v1alpha1.Server) {
			s.Status.Lifecycle.Marks = []string{"Stranger"}
		}), "old", "take it over first"},
		"without a reason":                   {serverIn(v1alpha1.StateAvailable), "", "say why"},
		"of a server that is to go already":  {serverIn(v1alpha1.StateReserved, holdsWeb, leaving), "old", "to go out of service already"},
		"of a server that is out of service": {serverIn(v1alpha1.StateDecommissioned, leaving), "old", "out of service already"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := inWorld(t, newMachine(redfish.PowerOff), c.server, reported())
				w.asksBy(v1alpha1.OperationDecommission, c.reason, nil)
				if op := w.server().Status.Operation; w.operation() != "decommission Refused" || !strings.Contains(op.Message, c.says) {
					t.Errorf("it is %+v", op)
				}
			})
		})
	}
}

func TestABundleWithoutTheStateRefusesADecommission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateAvailable), reported())
		w.manager.Bundles = governed{compat(t)}
		w.asksBy(v1alpha1.OperationDecommission, "old", nil)
		op, says := w.server().Status.Operation, "defines no state Decommissioned; promote a bundle that does, such as default"
		if w.operation() != "decommission Refused" || !strings.Contains(op.Message, says) || w.decommission().Type != "" {
			t.Errorf("it is %+v", op)
		}
	})
}

func TestAServerOutOfServiceWhoseStatusIsPrunedStaysThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inventory := reported()
		inventory.Custody.Clean = &policyv1alpha1.CleanRecord{Cause: policyv1alpha1.CleanWiped, ServerUID: "uid-a"}
		w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateAvailable, leaving), inventory)
		w.manager.run(time.Minute)
		if s := w.server(); s.Status.State != v1alpha1.StateDecommissioned {
			t.Fatalf("it is in %s", s.Status.State)
		}
		asked := len(w.machine.asked())
		statusBecomes(prunedStatus)(w)
		w.start().run(10 * time.Minute)
		if s := w.server(); s.Status.State != v1alpha1.StateDecommissioned || len(w.machine.asked()) != asked {
			t.Errorf("it is in %s, and its machine was asked for %v", s.Status.State, w.machine.asked()[asked:])
		}
	})
}

func TestWhatADecommissionWaitsFor(t *testing.T) {
	dirty := func(s *v1alpha1.Server) { s.Status.Lifecycle.Marks = []string{"Dirty", "Managed"} }
	found := func(i *policyv1alpha1.ServerInventory) *policyv1alpha1.ServerInventory {
		i.Custody.Marks, i.Custody.DataFound = []string{"Dirty"}, &policyv1alpha1.FoundData{}
		return i
	}
	held := reserved(v1alpha1.PowerOff, leaving)
	for name, c := range map[string]struct {
		objects []client.Object
		reason  string
		says    string
	}{
		"the claim that holds it": {append(held, reported()), v1alpha1.ReasonWaitsForClaim, "Waits until claim shop/web is deleted."},
		"data that is retained": {[]client.Object{serverIn(v1alpha1.StateReleased, holdsWeb, released, leaving, dirty, func(s *v1alpha1.Server) {
			s.Spec.ReclaimPolicy = v1alpha1.ReclaimPolicyRetain
		}), reported()}, v1alpha1.ReasonWaitsForClaim, "Set spec.reclaimPolicy to Recycle"},
		"data of nobody": {[]client.Object{serverIn(v1alpha1.StateError, leaving, dirty), found(reported())}, v1alpha1.ReasonWaitsForDisks,
			"Have them erased (metalaw server sanitize), or attest each disk (metalaw server attest); 0 of 1 are."},
		"a wipe that failed": {[]client.Object{serverIn(v1alpha1.StateError, leaving, dirty, func(s *v1alpha1.Server) {
			s.Annotations[v1alpha1.ClaimUIDAnnotation] = "u"
		}, released), reported()}, v1alpha1.ReasonWaitsForDisks, "Mend that and retry, or attest each disk"},
		"a machine of which no disks are known": {[]client.Object{serverIn(v1alpha1.StateError, leaving)}, v1alpha1.ReasonWaitsForInspection,
			"No agent has reported its disks."},
		"a maintenance": {[]client.Object{serverIn(v1alpha1.StateMaintenance, leaving, inService), reported()}, v1alpha1.ReasonWaitsForOthers,
			"Waits for the end of its maintenance."},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := inWorld(t, newMachine(redfish.PowerOff), c.objects...)
				w.manager.run(time.Minute)
				if got := w.decommission(); got.Status != "False" || got.Reason != c.reason || !strings.Contains(got.Message, c.says) {
					t.Errorf("in %s it says %+v", w.server().Status.State, got)
				}
			})
		})
	}
}

// broken is a server in Error whose wipe failed, and the inventory of its two disks.
func broken() []client.Object {
	i := reported()
	i.Custody.Marks = []string{"Dirty"}
	i.Custody.Disks = append(i.Custody.Disks, policyv1alpha1.CustodyDisk{Name: "sdb", Serial: "S"})
	return []client.Object{serverIn(v1alpha1.StateError, leaving, func(s *v1alpha1.Server) {
		s.Annotations[v1alpha1.ClaimUIDAnnotation] = "u"
		s.Status.Lifecycle.Marks = []string{"Dirty", "Managed"}
	}, released), i}
}

func attests(disk, method string) map[string]string {
	return map[string]string{v1alpha1.AttestDiskAnnotation: disk, v1alpha1.AttestMethodAnnotation: method}
}

func TestAServerGoesOutOfServiceWithoutAWipeOnceEachDiskIsAttested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOff), broken()...)
		w.asksBy(v1alpha1.OperationAttestDisk, "shredded", attests("w", "destroy"))
		if s := w.server(); w.operation() != "attest-disk Succeeded" || s.Status.State != v1alpha1.StateError || len(s.Annotations[v1alpha1.AttestDiskAnnotation]) > 0 {
			t.Fatalf("it is in %s: %+v %v", s.Status.State, s.Status.Operation, s.Annotations)
		}
		w.asksBy(v1alpha1.OperationAttestDisk, "again", attests("sda", "removed"))
		if op := w.server().Status.Operation; op.State != v1alpha1.OperationRefused || !strings.Contains(op.Message, "attested already") {
			t.Errorf("the same disk is attested twice: %+v", op)
		}
		w.asksBy(v1alpha1.OperationAttestDisk, "sent back", attests("S", "removed"))
		w.manager.run(time.Minute)
		c := w.inventory().Custody
		if len(c.Attested) != 2 || c.Attested[1].Serial != "S" || c.Attested[1].By != "jane" || c.Attested[1].Reason != "sent back" || c.Attested[1].Method != "removed" {
			t.Errorf("custody is %+v", c)
		}
		if s := w.server(); s.Status.State != v1alpha1.StateDecommissioned || s.Status.Lifecycle.Rule != "DecommissionedAttested" {
			t.Errorf("it is in %s by %s: %+v", s.Status.State, s.Status.Lifecycle.Rule, w.decommission())
		}
		if err := w.api.Delete(t.Context(), w.server()); err != nil {
			t.Fatal(err)
		}
		w.manager.run(time.Minute)
		if err := w.api.Get(t.Context(), client.ObjectKey{Name: "a"}, &v1alpha1.Server{}); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("its Server is not gone: %v", err)
		}
		if c := w.inventory().Custody; len(c.Attested) != 2 || len(c.Marks) != 1 {
			t.Errorf("custody is %+v", c)
		}
	})
}

func TestAnAttestationIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		disk, method, reason, says string
	}{
		"of a disk that nobody knows":   {"x", "destroy", "shredded", `lists no disk "x"; it lists w, S`},
		"by a method that there is not": {"w", "lost", "shredded", `"lost" is no method`},
		"without a disk":                {"", "destroy", "shredded", "name the disk"},
		"without a reason":              {"w", "destroy", " ", "say why"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := inWorld(t, newMachine(redfish.PowerOff), broken()...)
				w.asksBy(v1alpha1.OperationAttestDisk, c.reason, attests(c.disk, c.method))
				if op := w.server().Status.Operation; w.operation() != "attest-disk Refused" || !strings.Contains(op.Message, c.says) {
					t.Errorf("it is %+v", op)
				}
				if got := w.inventory().Custody.Attested; len(got) > 0 {
					t.Errorf("custody has %+v", got)
				}
			})
		})
	}
}

func TestADecommissionIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOff), append(reserved(v1alpha1.PowerOff, leaving), reported())...)
		w.asksBy(v1alpha1.OperationRecommission, "needed after all", nil)
		s := w.server()
		if _, still := s.Annotations[v1alpha1.DecommissionAnnotation]; still || w.operation() != "recommission Succeeded" || s.Status.State != v1alpha1.StateReserved {
			t.Errorf("it is in %s: %+v %v", s.Status.State, s.Status.Operation, s.Annotations)
		}
		w.asksBy(v1alpha1.OperationRecommission, "twice", nil)
		if w.operation() != "recommission Refused" {
			t.Errorf("it is %+v", w.server().Status.Operation)
		}
	})
}

func TestADecommissionedServerWithoutABMCRaisesNoAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateDecommissioned, leaving), reported())
		w.manager.run(time.Minute)
		w.machine.mu.Lock()
		w.machine.silent = errDown
		w.machine.mu.Unlock()
		w.manager.run(2 * time.Hour)
		s := w.server()
		if !meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionReady) || meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionBMCReachable) != nil {
			t.Errorf("it says %+v", s.Status.Conditions)
		}
	})
}
