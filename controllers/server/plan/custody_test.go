// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/gates"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/controllers/server/status"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
)

var web = policyv1alpha1.Holder{Namespace: "shop", Name: "web", UID: "uid-web"}

// found has the report of the entry show data.
func found(s Seen) Seen {
	s.Facts.Probe.DataFound = true
	return s
}

// running has the machine be one that was found running.
func running(s Seen) Seen {
	s.Facts.Lifecycle.Marks = append(s.Facts.Lifecycle.Marks, policies.MarkStranger)
	return s
}

func forced(s Seen) Seen {
	s.Forced = &operations.Move{}
	return s
}

func TestAMarkThatGuardsDataIsKeptBeforeTheStatusBearsIt(t *testing.T) {
	kept := policyv1alpha1.Custody{Marks: []string{policies.MarkDirty}, DirtiedAt: microPtr(0), ServerName: "a"}
	attested := policyv1alpha1.AttestedDisk{CustodyDisk: policyv1alpha1.CustodyDisk{Name: "sda"}}
	stored := "waits MarkStored 1ms"
	dirtied := func(s *v1alpha1.Server) { s.Status.Lifecycle.Marks = []string{policies.MarkDirty} }
	for name, c := range map[string]struct {
		seen Seen
		mark string
		want want
	}{
		"a mark of the status alone is confirmed and set": {seenIn(v1alpha1.StateReserved, marks("Dirty")), policies.MarkManaged, want{
			acts: []string{"confirm record", "set"}, then: stored,
			records: func(s *v1alpha1.Server) { s.Status.Lifecycle.Marks = []string{"Dirty", "Managed"} }}},
		"Dirty is kept in custody first": {seenIn(v1alpha1.StateReserved), policies.MarkDirty, want{
			acts: []string{"confirm record", "keep", "set"}, then: stored, records: dirtied,
			keeps: func(i *policyv1alpha1.ServerInventory) { i.Custody = &kept }}},
		"with the claim that holds the machine": {seenIn(v1alpha1.StateReserved, claimed(v1alpha1.PowerOn), func(s *Seen) {
			metav1.SetMetaDataAnnotation(&s.Claim.ObjectMeta, v1alpha1.MinimumTermAnnotation, "Purge")
		}), policies.MarkDirty, want{acts: []string{"confirm record", "keep", "set"}, then: stored, records: dirtied,
			keeps: func(i *policyv1alpha1.ServerInventory) {
				i.Custody = kept.DeepCopy()
				i.Custody.LastHolder, i.Custody.TimesClaimed, i.Custody.MinimumTerm = &web, 1, policyv1alpha1.TermPurge
			}}},
		"a word that is no term is none": {seenIn(v1alpha1.StateReserved, claimed(v1alpha1.PowerOn), func(s *Seen) {
			metav1.SetMetaDataAnnotation(&s.Claim.ObjectMeta, v1alpha1.MinimumTermAnnotation, "Shred")
		}), policies.MarkDirty, want{acts: []string{"confirm record", "keep", "set"}, then: stored, records: dirtied,
			keeps: func(i *policyv1alpha1.ServerInventory) {
				i.Custody = kept.DeepCopy()
				i.Custody.LastHolder, i.Custody.TimesClaimed = &web, 1
			}}},
		"the same claim counts once": {seenIn(v1alpha1.StateReserved, claimed(v1alpha1.PowerOn), custody(policyv1alpha1.Custody{
			Marks: []string{"Dirty"}, DirtiedAt: microPtr(time.Hour), LastHolder: &web, TimesClaimed: 3, ServerName: "a",
			Attested: []policyv1alpha1.AttestedDisk{attested}}), func(s *Seen) { s.Claim = nil }), policies.MarkDirty, want{
			acts: []string{"confirm record", "keep", "set"}, then: stored, records: dirtied}},
		"what was attested for another holder goes": {seenIn(v1alpha1.StateReserved, claimed(v1alpha1.PowerOn), custody(policyv1alpha1.Custody{
			Marks: []string{"Dirty"}, DirtiedAt: microPtr(time.Hour), LastHolder: &policyv1alpha1.Holder{Name: "db"}, TimesClaimed: 3,
			DataFound: &policyv1alpha1.FoundData{}, MinimumTerm: policyv1alpha1.TermPurge, Attested: []policyv1alpha1.AttestedDisk{attested}})),
			policies.MarkDirty, want{acts: []string{"confirm record", "keep", "set"}, then: stored, records: dirtied,
				keeps: func(i *policyv1alpha1.ServerInventory) {
					i.Custody = &policyv1alpha1.Custody{Marks: []string{"Dirty"}, DirtiedAt: microPtr(time.Hour), LastHolder: &web,
						TimesClaimed: 4, ServerName: "a"}
				}}},
		"the record of a clean machine goes": {seenIn(v1alpha1.StateReserved, custody(policyv1alpha1.Custody{
			Clean: &policyv1alpha1.CleanRecord{}, Attested: []policyv1alpha1.AttestedDisk{attested}})), policies.MarkDirty, want{
			acts: []string{"confirm record", "keep", "set"}, then: stored, records: dirtied,
			keeps: func(i *policyv1alpha1.ServerInventory) { i.Custody = &kept }}},
		"data that was found is kept in words": {found(seenIn(v1alpha1.StateDiscovery)), policies.MarkDirty, want{
			acts: []string{"confirm record", "keep", "set"}, then: stored, records: dirtied,
			keeps: func(i *policyv1alpha1.ServerInventory) {
				i.Custody = kept.DeepCopy()
				i.Custody.DataFound = &policyv1alpha1.FoundData{At: micro(0)}
			}}},
		"before a lifecycle is stored a fear is kept unconfirmed, and not in the status": {seenIn("", unborn), policies.MarkDirty, want{
			acts: []string{"keep"}, then: stored, keeps: func(i *policyv1alpha1.ServerInventory) { i.Custody = &kept }}},
		"a stranger is kept unconfirmed": {running(seenIn(v1alpha1.StateInitial, custody(policyv1alpha1.Custody{Marks: []string{"Dirty"}}))),
			policies.MarkStranger, want{acts: []string{"keep"}, then: stored, keeps: func(i *policyv1alpha1.ServerInventory) {
				i.Custody = &policyv1alpha1.Custody{Marks: []string{"Dirty", "Stranger"}, ServerName: "a"}
			}}},
		"and taken back once it is none": {seenIn(v1alpha1.StateInitial, marks("Managed"), custody(policyv1alpha1.Custody{
			Marks: []string{"Dirty", "Stranger"}})), policies.MarkStranger, want{acts: []string{"keep"}, then: stored,
			keeps: func(i *policyv1alpha1.ServerInventory) {
				i.Custody = &policyv1alpha1.Custody{Marks: []string{"Dirty"}, ServerName: "a"}
			}}},
		"and once a person forces it": {forced(running(seenIn(v1alpha1.StateInitial))), policies.MarkStranger, want{
			acts: []string{"keep"}, then: stored, keeps: func(i *policyv1alpha1.ServerInventory) { i.Custody = &policyv1alpha1.Custody{ServerName: "a"} }}},
		"a doubt that ended is forgotten": {seenIn(v1alpha1.StateAvailable, custody(policyv1alpha1.Custody{Doubt: &policyv1alpha1.RestoredDoubt{}})),
			gates.DoubtEnded, want{acts: []string{"confirm record", "keep"}, then: "waits RestoredDoubt 1s",
				keeps: func(i *policyv1alpha1.ServerInventory) { i.Custody.Doubt = nil }}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, c.seen, func(s Seen) Steps { return Effect(s, engine.MarkFirst(c.mark)) }, c.want)
		})
	}
}

func TestAReferenceIsClearedAfterALookAtTheClaim(t *testing.T) {
	for name, c := range map[string]struct {
		seen Seen
		want want
	}{
		"that is none": {seenIn(v1alpha1.StateCleanup), want{}},
		"the holder and the release stay on record": {seenIn(v1alpha1.StateCleanup, claimed(v1alpha1.PowerOn),
			annotated(v1alpha1.ReleasedClaimAnnotation, "uid-web")), want{acts: []string{"confirm the claim", "set"},
			then: "waits ReferenceCleared 1ms", records: func(s *v1alpha1.Server) { s.Spec.ServerClaimRef = nil }}},
	} {
		t.Run(name, func(t *testing.T) { check(t, c.seen, effect(policies.EffectReleaseClaim), c.want) })
	}
}

func TestTheLastHolderIsForgottenOnProof(t *testing.T) {
	held := annotated(v1alpha1.ClaimUIDAnnotation, "uid-web")
	forgotten := func(s *v1alpha1.Server) { s.Annotations = map[string]string{"site": "x"} }
	wiped := keeps(func(i *policyv1alpha1.ServerInventory) {
		i.Wipe = &policyv1alpha1.WipeReport{Entry: 6, State: policyv1alpha1.WipeVerified}
		i.Custody = &policyv1alpha1.Custody{Marks: []string{"Dirty", "Stranger"}, LastHolder: &web, MinimumTerm: policyv1alpha1.TermPurge,
			DataFound: &policyv1alpha1.FoundData{}, TimesClaimed: 2}
	})
	clean := policyv1alpha1.CleanRecord{Since: micro(0), ServerUID: "uid-a", Cause: policyv1alpha1.CleanWiped}
	began := lifecycle(func(l *v1alpha1.LifecycleStatus) {
		l.History = []v1alpha1.LifecycleMove{{To: v1alpha1.StateInitial, Entry: 6}, {From: v1alpha1.StateInitial, To: v1alpha1.StateAvailable, Entry: 7}}
	})
	proven := []string{"confirm record", "prove the wipe of entry 6", "keep"}
	for name, c := range map[string]struct {
		seen Seen
		want want
	}{
		"once the store proves the wipe": {seenIn(v1alpha1.StateAvailable, annotated("site", "x"), held, wiped), want{
			acts: append(proven, "set"), records: forgotten, keeps: func(i *policyv1alpha1.ServerInventory) {
				i.Custody = &policyv1alpha1.Custody{Marks: []string{"Stranger"}, TimesClaimed: 2, Clean: &clean}
			}}},
		"on the server alone where custody has none": {seenIn(v1alpha1.StateAvailable, annotated("site", "x"), held,
			annotated(v1alpha1.ReleasedAtAnnotation, "t"), annotated(v1alpha1.ReleasedCountedAnnotation, "1s")), want{
			acts: []string{"set"}, records: forgotten}},
		"a machine that never had one costs one write": {seenIn(v1alpha1.StateAvailable, began), want{acts: proven,
			keeps: func(i *policyv1alpha1.ServerInventory) {
				record := clean
				record.Cause = policyv1alpha1.CleanNeverBooted
				i.Custody = &policyv1alpha1.Custody{Clean: &record}
			}}},
		"and none while the manager only observes": {seenIn(v1alpha1.StateAvailable, began, func(s *Seen) { s.ObserveOnly = true }), want{}},
		"and none once it is on record":            {seenIn(v1alpha1.StateAvailable, began, custody(policyv1alpha1.Custody{Clean: &clean})), want{}},
		"what a fear left in custody is confirmed before it goes": {seenIn(v1alpha1.StateAvailable, custody(policyv1alpha1.Custody{
			Marks: []string{"Dirty"}})), want{acts: proven, keeps: func(i *policyv1alpha1.ServerInventory) {
			i.Custody = &policyv1alpha1.Custody{Marks: []string{}}
		}}},
	} {
		t.Run(name, func(t *testing.T) { check(t, c.seen, effect(policies.EffectForgetHolder), c.want) })
	}
}

func TestAServerGoesOnceItsMachineIsRemembered(t *testing.T) {
	dirty, lets := marks("Dirty"), annotated(v1alpha1.DeleteDataAnnotation, "true")
	withheld := func(s *v1alpha1.Server) {
		status.SetCondition(s, noon, v1alpha1.ConditionReady, metav1.ConditionFalse, "HoldsData",
			"the server holds data or a claim; annotation "+v1alpha1.DeleteDataAnnotation+"=true lets it go")
	}
	remembered := func(i *policyv1alpha1.ServerInventory) {
		i.Custody = &policyv1alpha1.Custody{Marks: []string{"Dirty"}, DirtiedAt: microPtr(0), ServerName: "a"}
	}
	for name, c := range map[string]struct {
		seen Seen
		want want
	}{
		"a clean one":                                         {seenIn(v1alpha1.StateAvailable), want{}},
		"one that was never looked at":                        {seenIn("", unborn), want{}},
		"not one that holds data":                             {seenIn(v1alpha1.StateReserved, dirty), want{acts: []string{"set"}, then: "waits HoldsData", records: withheld}},
		"not one that a claim holds":                          {seenIn(v1alpha1.StateReserved, claimed(v1alpha1.PowerOn)), want{acts: []string{"set"}, then: "waits HoldsData", records: withheld}},
		"not one that custody calls dirty":                    {seenIn(v1alpha1.StateError, custody(policyv1alpha1.Custody{Marks: []string{"Dirty"}})), want{acts: []string{"set"}, then: "waits HoldsData", records: withheld}},
		"one that holds data, once its annotation lets it go": {seenIn(v1alpha1.StateReserved, dirty, lets), want{acts: []string{"keep"}, keeps: remembered}},
		"a word that is not true lets nothing go": {seenIn(v1alpha1.StateReserved, dirty, annotated(v1alpha1.DeleteDataAnnotation, "yes")),
			want{acts: []string{"set"}, then: "waits HoldsData", records: withheld}},
	} {
		t.Run(name, func(t *testing.T) { check(t, c.seen, Finalize, c.want) })
	}
}

func TestCustodyIsWrittenAheadOfAMoveIntoAStateThatNeedsIt(t *testing.T) {
	b, err := policies.Default()
	if err != nil {
		t.Fatal(err)
	}
	governed := func(s *Seen) { s.Bundle, s.Settings = b, b.Settings }
	bound := func(s *Seen) {
		claimed(v1alpha1.PowerOn)(s)
		s.Claim.Spec.ServerRef = &corev1.LocalObjectReference{Name: "a"}
	}
	into := engine.Decision{From: "Available", To: "Reserved"}
	kept := want{acts: []string{"confirm record", "keep"}, keeps: func(i *policyv1alpha1.ServerInventory) {
		i.Custody = &policyv1alpha1.Custody{Marks: []string{"Dirty"}, DirtiedAt: microPtr(0), ServerName: "a", LastHolder: &web, TimesClaimed: 1}
	}}
	for name, c := range map[string]struct {
		seen     Seen
		decision engine.Decision
		want     want
		none     bool
	}{
		"into Reserved":                        {seenIn(v1alpha1.StateAvailable, governed, bound, marks("Managed")), into, kept, false},
		"not for a state that is kept":         {seenIn(v1alpha1.StateReserved, governed, bound, marks("Managed")), engine.Decision{From: "Reserved", To: "Reserved"}, want{}, true},
		"not for a decision that halts":        {seenIn(v1alpha1.StateAvailable, governed, bound), engine.Decision{From: "Available", To: "Reserved", Halt: &engine.Halt{}}, want{}, true},
		"not for a mark that the status bears": {seenIn(v1alpha1.StateAvailable, governed, bound, marks("Dirty", "Managed")), into, want{}, true},
		"not for a state that needs none":      {seenIn(v1alpha1.StateAvailable, governed), engine.Decision{From: "Available", To: "Parked"}, want{}, true},
		"not for the first state":              {seenIn("", governed, unborn), engine.Decision{To: "Reserved"}, want{}, true},
		"not for a move that a person forces":  {forced(seenIn(v1alpha1.StateAvailable, governed, bound)), into, want{}, true},
		"not where nothing governs":            {seenIn(v1alpha1.StateAvailable, bound), into, want{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, ok := Ahead(c.seen, c.decision); ok == c.none {
				t.Fatalf("there are steps: %t", ok)
			}
			check(t, c.seen, func(s Seen) Steps {
				steps, _ := Ahead(s, c.decision)
				return steps
			}, c.want)
		})
	}
}
