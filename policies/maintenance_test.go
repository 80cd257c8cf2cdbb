// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// disks is a maintenance, and inDisks a server that it has.
func disks() *v1alpha1.ServerMaintenance {
	m := &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "disks", UID: "uid-disks"}}
	m.Spec.ServerRef.Name = "a"
	return m
}

func inDisks(change ...func(*v1alpha1.Server)) *v1alpha1.Server {
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{v1alpha1.MaintenanceUIDAnnotation: "uid-disks"}}}
	s.Spec.ServerMaintenanceRef = &v1alpha1.ObjectReference{Namespace: "ops", Name: "disks"}
	for _, c := range change {
		c(s)
	}
	return s
}

func without(key string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) { delete(s.Annotations, key) }
}

func with(key, value string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) { s.Annotations[key] = value }
}

func TestAMaintenanceIsOursOnlyByTheUIDThatWasGranted(t *testing.T) {
	for name, c := range map[string]struct {
		server      *v1alpha1.Server
		maintenance *v1alpha1.ServerMaintenance
		want        bool
	}{
		"the one on record":                    {inDisks(), disks(), true},
		"one that was made again":              {inDisks(with(v1alpha1.MaintenanceUIDAnnotation, "uid-former")), disks(), false},
		"one that nobody granted":              {inDisks(without(v1alpha1.MaintenanceUIDAnnotation)), disks(), false},
		"one that is not found":                {inDisks(), nil, false},
		"one that the server names no more":    {inDisks(func(s *v1alpha1.Server) { s.Spec.ServerMaintenanceRef = nil }), disks(), false},
		"one beside that which it names":       {inDisks(func(s *v1alpha1.Server) { s.Spec.ServerMaintenanceRef.Name = "fans" }), disks(), false},
		"one of that name in another place":    {inDisks(func(s *v1alpha1.Server) { s.Spec.ServerMaintenanceRef.Namespace = "dev" }), disks(), false},
		"one without a UID, as none is stored": {inDisks(with(v1alpha1.MaintenanceUIDAnnotation, "")), func() *v1alpha1.ServerMaintenance { m := disks(); m.UID = ""; return m }(), false},
	} {
		if got := (Observation{Server: c.server, Maintenance: c.maintenance}).Facts().Maintenance.Ours; got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestOnlyTheClaimThatWasAskedConsents(t *testing.T) {
	held := func(s *v1alpha1.Server) {
		s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "shop", Name: "web"}
		s.Annotations[v1alpha1.ClaimUIDAnnotation] = "uid-web"
	}
	for name, c := range map[string]struct {
		server *v1alpha1.Server
		want   bool
	}{
		"nobody holds it":                     {inDisks(), true},
		"its claim was asked":                 {inDisks(held, with(v1alpha1.MaintenanceClaimAnnotation, "uid-web")), true},
		"its claim was not asked":             {inDisks(held), false},
		"another claim was asked":             {inDisks(held, with(v1alpha1.MaintenanceClaimAnnotation, "uid-former")), false},
		"a reference of which nothing tells":  {inDisks(held, without(v1alpha1.ClaimUIDAnnotation), with(v1alpha1.MaintenanceClaimAnnotation, "")), false},
		"its claim is released on the record": {inDisks(held, with(v1alpha1.ReleasedClaimAnnotation, "uid-web")), true},
	} {
		if got := (Observation{Server: c.server}).Facts().Maintenance.Consented; got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// underOurs is a server in a maintenance of ours whose machine is ours and runs.
func underOurs(change func(*Facts)) *Facts {
	f := free("Maintenance", nil)
	f.Maintenance = MaintenanceFacts{Granted: true, Ours: true, Consented: true}
	f.BMC.Power, f.Lifecycle.Marks = "On", []string{MarkManaged}
	if change != nil {
		change(f)
	}
	return f
}

func TestNoBundleHasAMaintenanceServedAgainstASafetyRule(t *testing.T) {
	for name, c := range map[string]struct {
		awaits string
		facts  func(*Facts)
	}{
		"where all is well":                    {"", func(*Facts) {}},
		"on a machine that is off":             {"", func(f *Facts) { f.BMC.Power, f.Lifecycle.Marks = "Off", nil }},
		"on another machine":                   {"IdentityFirst", func(f *Facts) { f.BMC.Identity, f.BMC.Power = IdentityOther, unknown }},
		"on a machine that is not known":       {"IdentityFirst", func(f *Facts) { f.BMC.Identity, f.BMC.Power = IdentityUnknown, unknown }},
		"on a claim that was not asked":        {"NoRebootWithoutConsent", func(f *Facts) { f.Server.ClaimRefSet, f.Claim.Bound, f.Maintenance.Consented = true, true, false }},
		"on a claim that nobody finds":         {"NoRebootWithoutConsent", func(f *Facts) { f.Server.ClaimRefSet, f.Claim.Missing, f.Maintenance.Consented = true, true, false }},
		"in the middle of an erase":            {"NeverCutAnErase", func(f *Facts) { f.Wipe.Entry, f.Wipe.Running = f.Lifecycle.Entry, true }},
		"on a wipe that stands":                {"NeverCutAnErase", func(f *Facts) { f.Boot = BootFacts{Purpose: "Wipe", State: "Ready", Ready: true} }},
		"on a machine that was found running":  {"LeftToItself", func(f *Facts) { f.Lifecycle.Marks = []string{MarkStranger} }},
		"on a stranger that went off":          {"LeftToItself", func(f *Facts) { f.Lifecycle.Marks, f.BMC.Power = []string{MarkStranger}, "Off" }},
		"on a machine that nobody calls ours":  {"NotAStranger", func(f *Facts) { f.Lifecycle.Marks = nil }},
		"on a machine whose power is not told": {"NotAStranger", func(f *Facts) { f.Lifecycle.Marks, f.BMC.Power = nil, unknown }},
	} {
		t.Run(name, func(t *testing.T) {
			d := hostile(t, "Maintenance", EffectMaintain).Decide(underOurs(c.facts))
			if d.Halt != nil {
				t.Fatalf("it is halted: %+v", *d.Halt)
			}
			awaits := ""
			if d.Awaits != nil {
				awaits = d.Awaits.Rule
			}
			if awaits != c.awaits || (len(d.Effects) > 0) != (c.awaits == "") {
				t.Errorf("does %q, and waits for %q", doesAndEarns(d), awaits)
			}
			foreign := underOurs(c.facts)
			foreign.Maintenance.Ours = false
			if d := hostile(t, "Maintenance", EffectMaintain).Decide(foreign); d.Halt != nil || d.Awaits != nil || doesAndEarns(d) != EffectMaintain {
				t.Errorf("under another program's it does %q, waits for %+v, halted by %+v", doesAndEarns(d), d.Awaits, d.Halt)
			}
		})
	}
	wantSafetyHalt(t, hostile(t, "Somewhere", EffectMaintain).Decide(underOurs(func(f *Facts) { f.Lifecycle.State = "Somewhere" })), "ServedInMaintenance")
}

func TestAMachineBecomesOursByAPowerOnOfItsMaintenance(t *testing.T) {
	for name, c := range map[string]struct {
		want  string
		facts func(*Facts)
	}{
		"from off":                        {EffectMaintain + " earns Managed", func(f *Facts) { f.BMC.Power, f.Lifecycle.Marks = "Off", nil }},
		"not one that runs":               {EffectMaintain, func(f *Facts) { f.Lifecycle.Marks, f.Operation.Consented = nil, true }},
		"not under another program's":     {EffectMaintain, func(f *Facts) { f.BMC.Power, f.Lifecycle.Marks, f.Maintenance.Ours = "Off", nil, false }},
		"and one that is stays":           {EffectMaintain, func(f *Facts) { f.BMC.Power = "Off" }},
		"and nothing of it clears a mark": {EffectMaintain, func(f *Facts) { f.Lifecycle.Marks = []string{MarkDirty, MarkManaged} }},
	} {
		d := defaultLifecycle(t).Decide(underOurs(c.facts))
		if got := doesAndEarns(d); got != c.want || len(d.Clears) > 0 {
			t.Errorf("%s: %q, clears %v", name, got, d.Clears)
		}
	}
}
