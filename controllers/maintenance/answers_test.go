// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/maintenance"
)

func priority(of int32) func(*v1alpha1.ServerMaintenance) {
	return func(m *v1alpha1.ServerMaintenance) { m.Spec.Priority = of }
}

func annotated(key, value string) func(*v1alpha1.ServerMaintenance) {
	return func(m *v1alpha1.ServerMaintenance) { metav1.SetMetaDataAnnotation(&m.ObjectMeta, key, value) }
}

func TestTheHigherPriorityGoesFirstAndHandsOver(t *testing.T) {
	w := newWorld(t, free(), sm("low"), sm("high", priority(10)))
	w.rounds()
	w.is("high", "InMaintenance ServerGranted")
	w.is("low", "Pending MaintenanceAhead")
	w.remake(sm("late", priority(1000), enforced))
	w.rounds()
	w.is("high", "InMaintenance ServerGranted")
	w.is("late", "Pending ServerHeld")
	w.delete(sm("high"))
	w.writes = nil
	w.pass()
	if got := w.server().Spec.ServerMaintenanceRef; got == nil || got.Name != "late" {
		t.Errorf("the server names %v", got)
	}
	if n := len(slices.DeleteFunc(slices.Clone(w.writes), func(one string) bool { return one != "patch Server s1" })); n != 1 {
		t.Errorf("the server was written %d times: %v", n, w.writes)
	}
}

func TestOfFiftyForOneServerOneHasIt(t *testing.T) {
	objects := []client.Object{free()}
	for i := range 50 {
		objects = append(objects, sm(fmt.Sprintf("m%02d", i)))
	}
	w := newWorld(t, objects...)
	w.rounds()
	var list v1alpha1.ServerMaintenanceList
	if err := w.api.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	has := 0
	for i := range list.Items {
		if list.Items[i].Status.State == v1alpha1.ServerMaintenanceStateInMaintenance {
			has++
		}
	}
	if has != 1 {
		t.Errorf("%d have it", has)
	}
}

func TestAnEnforcedOneLabelsTheClaimAndDoesNotWait(t *testing.T) {
	w := newWorld(t, free(claimed), claim(), sm("a", enforced))
	w.rounds()
	w.is("a", "InMaintenance ServerGranted")
	if got := w.claim().Labels[v1alpha1.MaintenanceNeededLabel]; got != "true" {
		t.Errorf("the claim is labelled %q", got)
	}
}

func TestAnEnforcedOneGivesNotice(t *testing.T) {
	w := newWorld(t, free(claimed), claim(), sm("a", enforced))
	w.policy = &maintenance.Policy{EnforcedNotice: 15 * time.Minute}
	w.rounds()
	w.is("a", "Pending WaitsForNotice")
	w.after(14 * time.Minute)
	w.is("a", "Pending WaitsForNotice")
	w.after(time.Minute)
	w.rounds()
	w.is("a", "InMaintenance ServerGranted")
}

// An enforced maintenance overrules a holder, and nobody whom it could not tell.
func TestAHolderThatCannotBeToldKeepsItsServer(t *testing.T) {
	w := newWorld(t, free(claimed), claim(), sm("a", enforced))
	w.policy = &maintenance.Policy{EnforcedNotice: 15 * time.Minute}
	refused := errors.New("a webhook of the tenant refuses the label")
	w.refuse = func(o client.Object) error {
		if _, is := o.(*v1alpha1.ServerClaim); is {
			return refused
		}
		return nil
	}
	for range 10 {
		_, err := w.s.Reconcile(t.Context(), pass{})
		if err != nil && !errors.Is(err, refused) {
			t.Fatal(err)
		}
		w.at = w.at.Add(10 * time.Minute)
	}
	w.is("a", "Pending WaitsForNotice")
	if w.server().Spec.ServerMaintenanceRef != nil {
		t.Error("it has the server")
	}
	w.refuse = nil
	w.rounds()
	w.is("a", "InMaintenance ServerGranted")
}

func TestAnApprovalCoversThoseThatWereAsked(t *testing.T) {
	w := newWorld(t, free(claimed), claim(), sm("a"))
	w.policy = &maintenance.Policy{}
	w.rounds()
	change(w, claim(), approve)
	w.rounds()
	w.is("a", "InMaintenance ServerGranted")
	w.remake(sm("b"))
	w.rounds()
	w.delete(sm("a"))
	w.rounds()
	w.is("b", "Pending ApprovalOlder")
	if got := w.claim(); got.Labels[v1alpha1.MaintenanceNeededLabel] != "true" || got.Labels[v1alpha1.MaintenanceApprovedLabel] != "yes" {
		t.Errorf("the claim bears %v", got.Labels)
	}
	change(w, claim(), func(c *v1alpha1.ServerClaim) { delete(c.Labels, v1alpha1.MaintenanceApprovedLabel) })
	w.rounds()
	w.is("b", "Pending WaitsForApproval")
	change(w, claim(), approve)
	w.rounds()
	w.is("b", "InMaintenance ServerGranted")
}

func TestAWithdrawnApprovalThatTheCacheStillShowsGrantsNothing(t *testing.T) {
	w := newWorld(t, free(claimed), claim(), sm("a"))
	w.rounds()
	cached := w.claim()
	approve(cached)
	v, err := w.s.see(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v.claims[v1alpha1.ObjectReference{Namespace: "team", Name: "db"}] = cached
	r := &round{scheduler: w.s, view: v, answers: w.s.decide(v), until: noon.Add(time.Hour)}
	if !r.answers["uid-a"].Granted {
		t.Fatal("the cache does not show an approval")
	}
	r.serve(t.Context(), v.concerned())
	if got := w.server().Spec.ServerMaintenanceRef; got != nil || r.failed != nil {
		t.Errorf("it was granted: %v, error %v", got, r.failed)
	}
}

func TestAMakerWithoutARightGetsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		objects []client.Object
		denied  string
		want    string
	}{
		"a free server takes maintain":               {[]client.Object{free(), sm("a")}, "maintain", "Pending NotPermitted"},
		"who may not enforce asks":                   {[]client.Object{free(claimed), claim(), sm("a", enforced)}, "enforce", "Pending WaitsForApproval"},
		"an image on a claimed server takes a right": {[]client.Object{free(claimed), claim(approve), sm("a", boots)}, "boot-maintenance", "Pending NotPermitted"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.objects...)
			w.denied = []string{c.denied}
			w.rounds()
			w.is("a", c.want)
			if w.server().Spec.ServerMaintenanceRef != nil {
				t.Error("it has the server")
			}
			w.denied = nil
			w.after(2 * time.Minute)
			change(w, c.objects[1], func(client.Object) {})
			w.rounds()
			if c.denied != "enforce" {
				w.is("a", "InMaintenance ServerGranted")
			}
		})
	}
}

func TestAnUnknownMakerBootsNothingBesideData(t *testing.T) {
	unknown := func(m *v1alpha1.ServerMaintenance) { m.Annotations = nil }
	w := newWorld(t, free(claimed), claim(approve), sm("a", boots, unknown))
	w.rounds()
	w.is("a", "Pending NotPermitted")
	w = newWorld(t, free(claimed), claim(), sm("a", enforced, unknown))
	w.rounds()
	w.is("a", "Pending WaitsForApproval")
}

// Where no webhook is asked, a tenant writes that the administrator made it.
func TestWithoutAdmissionNoMakerIsBelieved(t *testing.T) {
	w := newWorld(t, free(claimed), claim(), sm("a", enforced))
	w.s.makers.unknown = true
	w.rounds()
	w.is("a", "Pending WaitsForApproval")
	w = newWorld(t, free(claimed), claim(approve), sm("a", boots))
	w.s.makers.unknown = true
	w.rounds()
	w.is("a", "Pending NotPermitted")
}

func TestWhatWasGrantedBeforeItWasSwitchedOffMayGo(t *testing.T) {
	theirs := sm("theirs", func(m *v1alpha1.ServerMaintenance) { m.Finalizers = []string{v1alpha1.FinalizerServerMaintenance} })
	w := newWorld(t, free(claimed), claim(), sm("waits"), theirs.DeepCopy())
	change(w, sm("theirs"), func(m *v1alpha1.ServerMaintenance) { m.Status.State = v1alpha1.ServerMaintenanceStatePending })
	w.s.consent = noon.Add(2 * time.Hour) // that of another program is not answered by a manager that grants
	change(w, sm("waits"), annotated(v1alpha1.AdoptAnnotation, "true"))
	v, err := w.s.see(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v.of["s1"] = slices.DeleteFunc(v.of["s1"], func(m *v1alpha1.ServerMaintenance) bool { return m.Name == "theirs" })
	r := &round{scheduler: w.s, view: v, answers: w.s.decide(v), until: noon.Add(time.Hour)}
	r.serve(t.Context(), v.concerned())
	off := &reconciler{client: w.api, now: func() time.Time { return noon }}
	for name, stays := range map[string]bool{"waits": false, "theirs": true} {
		w.delete(sm(name))
		key := client.ObjectKey{Namespace: "ops", Name: name}
		if _, err := off.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		if err := w.api.Get(t.Context(), key, &v1alpha1.ServerMaintenance{}); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestManyOfOneMakerCostOneQuestion(t *testing.T) {
	var objects []client.Object
	for i := range 20 {
		name := fmt.Sprintf("s%d", i+1)
		objects = append(objects, free(func(s *v1alpha1.Server) { s.Name, s.UID = name, "uid-"+s.UID }),
			sm("m"+name, func(m *v1alpha1.ServerMaintenance) { m.Spec.ServerRef.Name = name }))
		objects[len(objects)-2].SetUID(objects[len(objects)-1].GetUID() + "-server")
	}
	w := newWorld(t, objects...)
	w.pass()
	reviews := slices.DeleteFunc(slices.Clone(w.reads), func(one string) bool { return !strings.HasPrefix(one, "review") })
	if diff := cmp.Diff([]string{"review maintain "}, reviews); diff != "" {
		t.Error(diff)
	}
}

func TestARefThatAnotherProgramWroteStays(t *testing.T) {
	theirs := func(s *v1alpha1.Server) {
		s.Spec.ServerMaintenanceRef = &v1alpha1.ObjectReference{Namespace: "mmo", Name: "theirs"}
		s.Status.State = v1alpha1.StateMaintenance
	}
	w := newWorld(t, free(theirs), sm("a"))
	w.rounds()
	w.after(24 * time.Hour)
	w.is("a", "Pending ServerHeld")
	if got := w.server().Spec.ServerMaintenanceRef; got == nil || got.Name != "theirs" {
		t.Errorf("the server names %v", got)
	}
}

func TestARefOfOursWhoseMaintenanceIsGoneIsCleared(t *testing.T) {
	w := newWorld(t, free(claimed), claim(approve), sm("a"))
	w.rounds()
	change(w, sm("a"), func(m *v1alpha1.ServerMaintenance) { m.Finalizers = nil })
	w.delete(sm("a"))
	w.rounds()
	w.gone("a")
	nothingLeft(w)
}

func TestAMaintenanceThatTheCacheDoesNotShowKeepsItsServer(t *testing.T) {
	w := newWorld(t, free(), sm("a"))
	w.rounds()
	v, err := w.s.see(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v.of, v.maintenances = nil, nil
	r := &round{scheduler: w.s, view: v, until: noon.Add(time.Hour)}
	r.serve(t.Context(), v.concerned())
	if w.server().Spec.ServerMaintenanceRef == nil {
		t.Error("it was taken away")
	}
}

func TestWhatIsPlannedWritesNothingButStatus(t *testing.T) {
	w := newWorld(t, free(claimed), claim(approve), sm("a"))
	w.mode = Plan
	w.restart()
	w.rounds()
	w.is("a", "Pending PlanOnly")
	if diff := cmp.Diff([]string{"status of ServerMaintenance a"}, w.writes); diff != "" {
		t.Error(diff)
	}
}

func TestAnOldOneWaitsUntilItIsAdopted(t *testing.T) {
	for _, age := range []time.Duration{time.Hour, 0} { // times are of whole seconds
		oldOneWaits(t, func(m *v1alpha1.ServerMaintenance) { m.CreationTimestamp = metav1.NewTime(noon.Add(-age)) })
	}
}

func oldOneWaits(t *testing.T, old func(*v1alpha1.ServerMaintenance)) {
	t.Helper()
	w := newWorld(t, free(claimed), claim(approve), sm("a", old))
	w.rounds()
	w.is("a", "Pending NotAdopted")
	if diff := cmp.Diff([]string{"status of ServerMaintenance a"}, w.writes); diff != "" {
		t.Error(diff)
	}
	change(w, sm("a"), annotated(v1alpha1.AdoptAnnotation, "true"))
	w.restart()
	w.rounds()
	w.is("a", "InMaintenance ServerGranted")
}

func TestAnAbortedOneStopsAtItsSafePoint(t *testing.T) {
	w := newWorld(t, free(), sm("a", boots))
	w.rounds()
	change(w, free(), func(s *v1alpha1.Server) {
		s.Status.Lifecycle.Request = &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionOn, Attempts: 1, AskedAt: metav1.NewMicroTime(noon)}
	})
	change(w, sm("a"), annotated(v1alpha1.AbortAnnotation, "wrong rack"))
	w.pass()
	served := meta.FindStatusCondition(w.sm("a").Status.Conditions, v1alpha1.ConditionServed)
	if served == nil || served.Message != "it was aborted, and waits for its safe point: the power request On of 2026-05-04T12:00:00Z has to show first" {
		t.Errorf("%+v", served)
	}
	change(w, free(), func(s *v1alpha1.Server) { s.Status.Lifecycle.Request.ShownAt = ptr.To(metav1.NewMicroTime(noon)) })
	w.rounds()
	w.is("a", "Failed Aborted")
	if w.server().Spec.ServerMaintenanceRef != nil {
		t.Error("it still has the server")
	}
	nothingLeft(w)
}

func TestABootConfigurationOfAnotherIsLeftAlone(t *testing.T) {
	theirs := bootOf(sm("a", boots), v1alpha1.ServerBootConfigurationStateReady)
	theirs.OwnerReferences = nil
	w := newWorld(t, free(), sm("a", boots), theirs)
	w.rounds()
	w.is("a", "Failed ServerGranted")
	w.delete(sm("a"))
	w.rounds()
	w.gone("a")
	readBack(w, &v1alpha1.ServerBootConfiguration{}, "ops", "a")
}

func TestAServerThatIsToGoLabelsItsClaim(t *testing.T) {
	w := newWorld(t, free(claimed, func(s *v1alpha1.Server) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.DecommissionAnnotation, "dead fan")
	}), claim())
	w.rounds()
	if got := w.claim().Labels[v1alpha1.MaintenanceNeededLabel]; got != "true" {
		t.Errorf("the claim is labelled %q", got)
	}
	change(w, free(), func(s *v1alpha1.Server) { delete(s.Annotations, v1alpha1.DecommissionAnnotation) })
	w.rounds()
	nothingLeft(w)
}

func TestAFreezeHoldsMaintenancesBack(t *testing.T) {
	control := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}}
	control.Spec.Freezes = []policyv1alpha1.Freeze{{Name: "maintenance-paused", Level: policyv1alpha1.FreezeMaintenance,
		Until: ptr.To(metav1.NewTime(noon.Add(time.Hour)))}}
	w := newWorld(t, free(), sm("a"), control)
	w.rounds()
	w.is("a", "Pending Frozen")
	w.after(time.Hour)
	w.rounds()
	w.is("a", "InMaintenance ServerGranted")
}
