// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/counted"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// held is a server on which the claim team/web with UID 1 is written.
func held(change ...func(*v1alpha1.Server)) *v1alpha1.Server {
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "r1", Annotations: map[string]string{v1alpha1.ClaimUIDAnnotation: "1"}}}
	s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "team", Name: "web"}
	s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 4}
	s.Status.State = v1alpha1.StateReserved
	for _, c := range change {
		c(s)
	}
	return s
}

func web(uid types.UID, server string) *v1alpha1.ServerClaim {
	c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: uid}}
	c.Spec.Power = v1alpha1.PowerOn
	if server != "" {
		c.Spec.ServerRef = &corev1.LocalObjectReference{Name: server}
	}
	return c
}

func annotated(name, value string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) { s.Annotations[name] = value }
}

// tenHours is a counted time.
const tenHours = counted.Time(10 * time.Hour)

func TestClaimFacts(t *testing.T) {
	for name, c := range map[string]struct {
		server *v1alpha1.Server
		claim  *v1alpha1.ServerClaim
		grace  time.Duration
		want   ClaimFacts
	}{
		"is bound when both references and the UID agree": {
			held(), web("1", "r1"), 0, ClaimFacts{Bound: true, Power: "On"}},
		"is not bound while the claim does not name the server": {
			held(), web("1", ""), 0, ClaimFacts{Binding: true, Power: "None"}},
		"is not bound to a claim of the same name with another UID": {
			held(), web("2", "r1"), 0, ClaimFacts{Missing: true, Power: "None"}},
		"is missing, and not released, when no such claim is found": {
			held(), nil, 0, ClaimFacts{Missing: true, Power: "None"}},
		"is released by a record of the last holder's UID": {
			held(annotated(v1alpha1.ReleasedClaimAnnotation, "1")), nil, 0, ClaimFacts{Released: true, Power: "None"}},
		"is not released by the record of another claim": {
			held(annotated(v1alpha1.ReleasedClaimAnnotation, "7")), nil, 0, ClaimFacts{Missing: true, Power: "None"}},
		"is no longer bound once the release is recorded, though the claim is still there": {
			held(annotated(v1alpha1.ReleasedClaimAnnotation, "1")), web("1", "r1"), 0, ClaimFacts{Released: true, Power: "None"}},
		"is not yet released within the grace period": {
			held(annotated(v1alpha1.ReleasedClaimAnnotation, "1"), annotated(v1alpha1.ReleasedCountedAnnotation, "9h30m")),
			nil, time.Hour, ClaimFacts{Power: "None", Ended: true}},
		"is released after the grace period": {
			held(annotated(v1alpha1.ReleasedClaimAnnotation, "1"), annotated(v1alpha1.ReleasedCountedAnnotation, "8h30m")),
			nil, time.Hour, ClaimFacts{Released: true, Power: "None"}},
		"is not released after a grace period whose beginning cannot be read": {
			held(annotated(v1alpha1.ReleasedClaimAnnotation, "1"), annotated(v1alpha1.ReleasedCountedAnnotation, "yesterday")),
			nil, time.Hour, ClaimFacts{Power: "None", Ended: true}},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observation{Server: c.server, Claim: c.claim, Now: noon, CountedNow: tenHours, Settings: bundle.Settings{ReleaseGrace: c.grace, Sanitization: "required", ReleasePower: bundle.PowerImmediate}}
			if diff := cmp.Diff(c.want, o.Facts().Claim); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestInheritedMarks(t *testing.T) {
	ours := func(s *v1alpha1.Server) { s.Finalizers = []string{v1alpha1.FinalizerServer} }
	dirty := &policyv1alpha1.ServerInventory{Custody: &policyv1alpha1.Custody{Marks: []string{"Dirty"}}}
	seen := func(change ...func(*policyv1alpha1.ServerInventory)) *policyv1alpha1.ServerInventory {
		inv := &policyv1alpha1.ServerInventory{Custody: &policyv1alpha1.Custody{}}
		for _, c := range change {
			c(inv)
		}
		return inv
	}
	keeps := func(mark string) func(*policyv1alpha1.ServerInventory) {
		return func(inv *policyv1alpha1.ServerInventory) { inv.Custody.Marks = []string{mark} }
	}
	wiped := func(state policyv1alpha1.WipeState) func(*policyv1alpha1.ServerInventory) {
		return func(inv *policyv1alpha1.ServerInventory) { inv.Wipe = &policyv1alpha1.WipeReport{State: state} }
	}
	holder := func(inv *policyv1alpha1.ServerInventory) {
		inv.Custody.LastHolder = &policyv1alpha1.Holder{Namespace: "team", Name: "web", UID: "1"}
	}
	reported := func(inv *policyv1alpha1.ServerInventory) { inv.Report = &policyv1alpha1.ProbeReport{} }
	in := func(state v1alpha1.ServerState) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) { s.Status.State = state }
	}
	fresh := func(change ...func(*v1alpha1.Server)) *v1alpha1.Server {
		s := &v1alpha1.Server{}
		for _, c := range change {
			c(s)
		}
		return s
	}
	for name, c := range map[string]struct {
		server    *v1alpha1.Server
		inventory *policyv1alpha1.ServerInventory
		want      []string
	}{
		"none for a machine seen for the first time":                          {fresh(), nil, nil},
		"those that its inventory keeps, for a server made anew":              {fresh(), dirty, []string{"Dirty"}},
		"Dirty and Managed for one of ours that lost its status":              {fresh(ours), seen(reported), []string{"Dirty", "Managed"}},
		"the same where all that its inventory tells is a wipe":               {fresh(ours), seen(wiped(policyv1alpha1.WipeFailed)), []string{"Dirty", "Managed"}},
		"Dirty alone for one that lost its status and never ran our agent":    {fresh(ours), seen(keeps("Dirty"), holder), []string{"Dirty"}},
		"none for a server with the finalizer and no inventory":               {fresh(ours), nil, nil},
		"none for one that another operator left in Initial":                  {fresh(ours, in(v1alpha1.StateInitial)), nil, nil},
		"none for one that another operator left in Available":                {fresh(ours, in(v1alpha1.StateAvailable)), nil, nil},
		"none for one that another operator left in Error":                    {fresh(ours, in(v1alpha1.StateError)), nil, nil},
		"Dirty for one in a state that another operator or bundle has named":  {fresh(ours, in("Tainted")), nil, []string{"Dirty"}},
		"Dirty for one in such a state, whose inventory tells of no wipe":     {fresh(in("Tainted")), seen(), []string{"Dirty"}},
		"Dirty for one in such a state, whose wipe failed":                    {fresh(in("Tainted")), seen(wiped(policyv1alpha1.WipeFailed)), []string{"Dirty"}},
		"Dirty for one in such a state, that had a holder since its wipe":     {fresh(in("Tainted")), seen(wiped(policyv1alpha1.WipeVerified), holder), []string{"Dirty"}},
		"Dirty for one in such a state, that was booted since its wipe":       {fresh(in("Tainted")), seen(wiped(policyv1alpha1.WipeVerified), keeps("Dirty")), []string{"Dirty"}},
		"none for one in such a state, whose inventory proves it clean":       {fresh(in("Tainted")), seen(wiped(policyv1alpha1.WipeVerified)), nil},
		"Dirty for one of ours in such a state that lost its lifecycle":       {fresh(ours, in("Tainted")), seen(wiped(policyv1alpha1.WipeVerified)), []string{"Dirty"}},
		"Dirty for one of ours in Observing that lost its lifecycle":          {fresh(ours, in(v1alpha1.StateObserving)), seen(), []string{"Dirty"}},
		"none for one that another operator left in Parked":                   {fresh(ours, in(v1alpha1.StateParked)), nil, nil},
		"Managed for one that another operator left in Discovery":             {fresh(ours, in(v1alpha1.StateDiscovery)), nil, []string{"Managed"}},
		"Dirty for one that another operator left in Maintenance":             {fresh(ours, in(v1alpha1.StateMaintenance)), nil, []string{"Dirty"}},
		"Dirty and Managed for one that another operator left in Reserved":    {fresh(ours, in(v1alpha1.StateReserved)), nil, []string{"Dirty", "Managed"}},
		"Dirty and Managed for one that another operator left in Released":    {fresh(ours, in(v1alpha1.StateReleased)), nil, []string{"Dirty", "Managed"}},
		"Dirty and Managed for one that another operator left in Cleanup":     {fresh(ours, in(v1alpha1.StateCleanup)), nil, []string{"Dirty", "Managed"}},
		"Dirty for one parked with a claim's reference":                       {held(in(v1alpha1.StateParked)), nil, []string{"Dirty"}},
		"Dirty for one with a claim's reference and no state":                 {held(in("")), nil, []string{"Dirty"}},
		"none for one found again that once was ours to stop":                 {fresh(), seen(keeps("Managed")), nil},
		"none for one in Available of which our inventory says nothing":       {fresh(in(v1alpha1.StateAvailable)), &policyv1alpha1.ServerInventory{}, nil},
		"Dirty and Managed for one that is restored with a claim's reference": {held(), nil, []string{"Dirty", "Managed"}},
		"Stranger for one that was found running before its status was lost":  {fresh(ours), seen(keeps("Stranger")), []string{"Stranger"}},
		"and not Managed, though our agent ran on it before that":             {fresh(ours), seen(keeps("Stranger"), reported), []string{"Dirty", "Stranger"}},
		"nor by the state that it was left in":                                {fresh(ours, in(v1alpha1.StateDiscovery)), seen(keeps("Stranger")), []string{"Stranger"}},
		"Stranger for one that was found running before it was deleted":       {fresh(), seen(keeps("Stranger")), []string{"Stranger"}},
		"Dirty besides for one that a claim had before that":                  {fresh(ours), seen(keeps("Stranger"), holder), []string{"Dirty", "Stranger"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, MarksOf(Inheritance(c.server, c.inventory, Proof{}))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAMachineOfAnotherOperatorIsTreatedAsTheBundleSays(t *testing.T) {
	for name, c := range map[string]struct {
		state     v1alpha1.ServerState
		held      bool
		power     string
		firstSeen string
		to        engine.State
		effects   []string
	}{
		"a running one in Available is observed, and not stopped": {
			v1alpha1.StateAvailable, false, "On", bundle.FirstSeenObserve, "Observing", nil},
		"a running one in Initial is observed, and not stopped": {
			v1alpha1.StateInitial, false, "On", bundle.FirstSeenObserve, "Observing", nil},
		"a running one in Observing stays untouched": {
			v1alpha1.StateObserving, false, "On", bundle.FirstSeenObserve, "Observing", []string{EffectClearBoot}},
		"one in Available that is off is offered": {
			v1alpha1.StateAvailable, false, "Off", bundle.FirstSeenObserve, "Available",
			[]string{EffectForgetHolder, EffectClearBoot, EffectApplyBootOrder, EffectLocate}},
		"one in Initial that is off is probed": {
			v1alpha1.StateInitial, false, "Off", bundle.FirstSeenObserve, "Discovery", nil},
		"a running one in Available is stopped where the bundle says manage": {
			v1alpha1.StateAvailable, false, "On", bundle.FirstSeenManage, "Available",
			[]string{EffectPowerOff, EffectForgetHolder, EffectClearBoot, EffectLocate}},
		"a running one in Reserved goes on for its claim": {
			v1alpha1.StateReserved, true, "On", bundle.FirstSeenObserve, "Reserved",
			[]string{EffectBootAsClaimed, EffectLocate, EffectPowerAsClaimed}},
	} {
		t.Run(name, func(t *testing.T) {
			s := held(func(s *v1alpha1.Server) {
				s.Finalizers, s.Status.State, s.Status.Lifecycle = []string{v1alpha1.FinalizerServer}, c.state, nil
				if !c.held {
					s.Spec.ServerClaimRef = nil
				}
			})
			o := Observation{Server: s, Claim: web("1", "r1"), Now: noon, Settings: bundle.Settings{FirstSeen: c.firstSeen, Sanitization: "required"},
				System: SystemReading{Reachable: true, Power: c.power, Health: "OK", Identity: IdentitySame}}
			d := defaultLifecycle(t).Decide(o.Facts())
			if d.Halt != nil || d.To != c.to || !slices.Equal(names(d), c.effects) {
				t.Errorf("goes to %s and does %v, halted by %+v, want %s and %v", d.To, names(d), d.Halt, c.to, c.effects)
			}
		})
	}
}

func TestBootFactsCountReadyOnlyForThePresentSpec(t *testing.T) {
	boot := func(generation, handedOver int64, state v1alpha1.ServerBootConfigurationState) *v1alpha1.ServerBootConfiguration {
		b := &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Generation: generation,
			Annotations: map[string]string{v1alpha1.BootPurposeAnnotation: "Claim"}}}
		b.Status.State = state
		if handedOver > 0 {
			b.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSpecHandedOver, ObservedGeneration: handedOver}}
		}
		return b
	}
	for name, c := range map[string]struct {
		boot *v1alpha1.ServerBootConfiguration
		want BootFacts
	}{
		"nothing without a boot configuration":                          {nil, BootFacts{Purpose: "None", State: "None"}},
		"Pending before the boot operator has spoken":                   {boot(1, 0, ""), BootFacts{Purpose: "Claim", State: "Pending"}},
		"ready as it was created":                                       {boot(1, 0, "Ready"), BootFacts{Purpose: "Claim", State: "Ready", Ready: true}},
		"not ready while the Ready may speak of the spec before":        {boot(2, 0, "Ready"), BootFacts{Purpose: "Claim", State: "Ready"}},
		"ready once the boot operator has spoken of the spec as it is":  {boot(2, 2, "Ready"), BootFacts{Purpose: "Claim", State: "Ready", Ready: true}},
		"not ready after a further change that was not handed over yet": {boot(3, 2, "Ready"), BootFacts{Purpose: "Claim", State: "Ready"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, BootFactsOf(c.boot)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestOperationFactsShowAnOperationOnlyOnceItsAnnotationIsGone(t *testing.T) {
	recorded := func(s *v1alpha1.Server) {
		s.Status.Operation = &v1alpha1.OperationStatus{Name: "power-cycle-server", State: v1alpha1.OperationPending, Entry: 4}
	}
	for name, c := range map[string]struct {
		server *v1alpha1.Server
		want   OperationFacts
	}{
		"nothing asked":                    {held(), OperationFacts{Name: "None", Entry: -1}},
		"recorded, annotation still there": {held(recorded, annotated(v1alpha1.OperationAnnotation, "power-cycle-server")), OperationFacts{Name: "None", Entry: -1}},
		"recorded, annotation gone":        {held(recorded), OperationFacts{Name: "power-cycle-server", Entry: 4, Reset: true}},
		"ended": {held(recorded, func(s *v1alpha1.Server) { s.Status.Operation.State = v1alpha1.OperationSucceeded }),
			OperationFacts{Name: "None", Entry: -1}},
		"consented": {held(annotated(v1alpha1.ConsentAnnotation, v1alpha1.ConsentTakeOver)), OperationFacts{Name: "None", Entry: -1, Consented: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Observation{Server: c.server, Now: noon}.Facts().Operation); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestUnreachableIsUnknownAndNotOff(t *testing.T) {
	f := Observation{Server: held(), Now: noon, System: SystemReading{Reachable: false, Power: "Off", Health: "OK", Identity: IdentitySame}}.Facts()
	if diff := cmp.Diff(BMCFacts{Power: "Unknown", Health: "Unknown", Identity: "Unknown"}, f.BMC); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWipeBudget(t *testing.T) {
	disks := func(disks ...policyv1alpha1.BlockDevice) *policyv1alpha1.ServerInventory {
		return &policyv1alpha1.ServerInventory{Report: &policyv1alpha1.ProbeReport{Data: policyv1alpha1.ProbeData{Storage: disks}}}
	}
	for name, c := range map[string]struct {
		inventory *policyv1alpha1.ServerInventory
		want      time.Duration
	}{
		"four hours where the disks are not known": {nil, 4 * time.Hour},
		"half an hour and twice the time of every disk, one after another where the adapter is not known": {
			disks(policyv1alpha1.BlockDevice{SizeBytes: 180e9}, policyv1alpha1.BlockDevice{SizeBytes: 360e9}), 30*time.Minute + 6*time.Hour},
		"adapters at the same time": {
			disks(policyv1alpha1.BlockDevice{SizeBytes: 180e9, PCIAddress: "0000:01:00.0"},
				policyv1alpha1.BlockDevice{SizeBytes: 360e9, PCIAddress: "0000:02:00.0"},
				policyv1alpha1.BlockDevice{SizeBytes: 270e9, PCIAddress: "0000:01:00.0"}), 30*time.Minute + 5*time.Hour},
		"a year at most, whatever disks report": {
			disks(policyv1alpha1.BlockDevice{SizeBytes: 1 << 62}, policyv1alpha1.BlockDevice{SizeBytes: 1 << 62}), 30*time.Minute + 365*24*time.Hour},
		"without disks that are not erased": {
			disks(policyv1alpha1.BlockDevice{SizeBytes: 180e9}, policyv1alpha1.BlockDevice{SizeBytes: 360e9, Removable: true}), 30*time.Minute + 2*time.Hour},
		"without disks over a network": {
			disks(policyv1alpha1.BlockDevice{SizeBytes: 180e9}, policyv1alpha1.BlockDevice{SizeBytes: 360e12, Transport: "iscsi"}), 30*time.Minute + 2*time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			if got := WipeBudget(c.inventory); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestWipeFacts(t *testing.T) {
	said := func(state policyv1alpha1.WipeState, ago time.Duration) *policyv1alpha1.ServerInventory {
		return &policyv1alpha1.ServerInventory{Wipe: &policyv1alpha1.WipeReport{Entry: 4, State: state, UpdatedAt: metav1.NewMicroTime(noon.Add(-ago))}}
	}
	for name, c := range map[string]struct {
		inventory *policyv1alpha1.ServerInventory
		want      WipeFacts
	}{
		"nothing said":        {nil, WipeFacts{Entry: -1, Budget: 4 * time.Hour}},
		"running":             {said(policyv1alpha1.WipeRunning, time.Minute), WipeFacts{Entry: 4, Running: true, Budget: 4 * time.Hour}},
		"running, and silent": {said(policyv1alpha1.WipeRunning, time.Hour), WipeFacts{Entry: 4, Budget: 4 * time.Hour}},
		"verified":            {said(policyv1alpha1.WipeVerified, time.Hour), WipeFacts{Entry: 4, Verified: true, Budget: 4 * time.Hour}},
		"failed":              {said(policyv1alpha1.WipeFailed, time.Hour), WipeFacts{Entry: 4, Failed: true, Budget: 4 * time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Observation{Server: held(), Now: noon, Inventory: c.inventory}.Facts().Wipe); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestWhereAServerWasParkedCountsWhileItIsParked(t *testing.T) {
	for name, c := range map[string]struct {
		state v1alpha1.ServerState
		was   string
		want  string
	}{
		"in Error":                        {v1alpha1.StateParked, "Error", "Error"},
		"in Released":                     {v1alpha1.StateParked, "Released", "Released"},
		"elsewhere it goes on by facts":   {v1alpha1.StateParked, "Reserved", "None"},
		"by a word that says nothing":     {v1alpha1.StateParked, "Attic", "None"},
		"a server that is not parked":     {v1alpha1.StateAvailable, "Error", "None"},
		"where another program wrote not": {v1alpha1.StateParked, "", "None"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.Server{}
			s.Status.State, s.Annotations = c.state, map[string]string{v1alpha1.PreParkStateAnnotation: c.was}
			if got := (Observation{Server: s}).Facts().Server.ParkedFrom; got != c.want {
				t.Errorf("got %s", got)
			}
		})
	}
}
