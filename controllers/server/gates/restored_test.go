// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/restored"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

type change = func(*Input)

var asked = metav1.NewMicroTime(noon.Add(-time.Second))

// custody is the custody of the server's machine.
func custody(in *Input) *policyv1alpha1.Custody {
	if in.Observation.Inventory == nil {
		in.Observation.Inventory = &policyv1alpha1.ServerInventory{Custody: &policyv1alpha1.Custody{}}
	}
	return in.Observation.Inventory.Custody
}

// doubted is in doubt, and not compared.
func doubted(in *Input) {
	in.Observation.Server.Annotations[v1alpha1.RestoredDoubtAnnotation] = restored.Doubted
	custody(in).Doubt = &policyv1alpha1.RestoredDoubt{Since: metav1.NewMicroTime(noon)}
}

// confirmed is in doubt and to be inspected.
func confirmed(in *Input) {
	doubted(in)
	in.Observation.Server.Annotations[v1alpha1.RestoredDoubtAnnotation] = restored.Inspect
	custody(in).Doubt.InspectSince = &asked
}

// inspecting is in an inspection that has begun.
func inspecting(in *Input) {
	confirmed(in)
	l := in.Observation.Server.Status.Lifecycle
	l.RestoredInspection = &asked
	l.Marks = nil
}

func running(in *Input) {
	in.Observation.System.Power = "On"
	in.Reading.Power = redfish.PowerOn
}

// claimedOn is held by a claim that asks for a power.
func claimedOn(p v1alpha1.Power) change {
	return func(in *Input) {
		s := in.Observation.Server
		c := &v1alpha1.ServerClaim{}
		c.Namespace, c.Name, c.UID = "shop", "web", "u"
		c.Spec.ServerRef = nil
		c.Spec.Power = p
		s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "shop", Name: "web"}
		s.Annotations[v1alpha1.ClaimUIDAnnotation] = "u"
		s.Status.Lifecycle.Marks = []string{policies.MarkDirty, policies.MarkManaged}
		custody(in).Marks = []string{policies.MarkDirty}
		in.Observation.Claim = c
	}
}

func released(in *Input) {
	claimedOn(v1alpha1.PowerOn)(in)
	in.Observation.Claim = nil
	in.Observation.Server.Annotations[v1alpha1.ReleasedClaimAnnotation] = "u"
	in.Observation.Server.Annotations[v1alpha1.ReleasedCountedAnnotation] = v1alpha1.ReleasedNoGrace
}

func forcedTo(state engine.State) change {
	return func(in *Input) {
		in.Forced = &engine.Decision{From: engine.State(in.Observation.Server.Status.State), To: state, Rule: v1alpha1.RuleForced}
	}
}

func asks(operation string) change {
	return func(in *Input) {
		in.Observation.Server.Status.Operation = &v1alpha1.OperationStatus{ID: "1", Name: operation, State: v1alpha1.OperationPending, Entry: 7}
	}
}

// reports is what the agent of an entry reported of the only disk.
func reports(entry int64, content policyv1alpha1.DiskContent) change {
	return func(in *Input) {
		custody(in)
		in.Observation.Inventory.Report = &policyv1alpha1.ProbeReport{Entry: entry, Data: policyv1alpha1.ProbeData{
			Storage: []policyv1alpha1.BlockDevice{{Name: "sda", WWID: "w", SizeBytes: 1, Content: content}}}}
	}
}

// wiped is what is stored of a verified wipe of the only disk.
func wiped(entry int64) change {
	return func(in *Input) {
		custody(in).Clean = &policyv1alpha1.CleanRecord{Since: asked, Cause: policyv1alpha1.CleanWiped}
		in.Observation.Inventory.Wipe = &policyv1alpha1.WipeReport{Entry: entry, State: policyv1alpha1.WipeVerified, UpdatedAt: asked,
			Disks: []policyv1alpha1.DiskWipe{{Name: "sda", WWID: "w", State: policyv1alpha1.DiskVerified}}}
	}
}

func TestAServerInDoubtAfterARestoreIsLeftAsItIs(t *testing.T) {
	b := version(t, "1.0.0")
	consented := func(in *Input) {
		in.Observation.Server.Annotations[v1alpha1.ConsentAnnotation] = v1alpha1.ConsentTakeOver
	}
	for name, c := range map[string]struct {
		state  v1alpha1.ServerState
		change []change
	}{
		"running as its claim says":          {"Reserved", []change{claimedOn(v1alpha1.PowerOn), running}},
		"its claim asks for power off":       {"Reserved", []change{claimedOn(v1alpha1.PowerOff), running}},
		"its claim asks for power on":        {"Reserved", []change{claimedOn(v1alpha1.PowerOn)}},
		"its claim has ended, and it runs":   {"Reserved", []change{released, running}},
		"its claim has ended, and it is off": {"Reserved", []change{released}},
		"released":                           {"Released", []change{released}},
		"about to be wiped":                  {"Cleanup", []change{released}},
		"its wipe is verified":               {"Cleanup", []change{released, wiped(7), reports(7, policyv1alpha1.ContentBlank)}},
		"available, and running":             {"Available", []change{running}},
		"available, and off":                 {"Available", nil},
		"a stranger with consent":            {"Observing", []change{running, consented}},
		"about to be inspected":              {"Initial", nil},
		"inspected before the restore":       {"Discovery", []change{reports(7, policyv1alpha1.ContentBlank)}},
		"in error, and cleared":              {"Error", []change{asks(v1alpha1.OperationRetry)}},
		"parked, and handed back":            {"Parked", []change{asks(v1alpha1.OperationUnpark)}},
		"forced":                             {"Available", []change{forcedTo("Error")}},
		"confirmed, and not taken in by the manager": {"Available", []change{func(in *Input) {
			in.Observation.Server.Annotations[v1alpha1.RestoredDoubtAnnotation] = restored.Confirmed
		}}},
		"in doubt by its inventory alone, as a new one": {"Available", []change{func(in *Input) { delete(in.Observation.Server.Annotations, v1alpha1.RestoredDoubtAnnotation) }}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(at(b, c.state, append([]change{doubted}, c.change...)...))
			if d := got.Decision; got.Gate != RestoredDoubt || d.Moves() || d.Halt != nil || len(d.Effects) > 0 || d.Awaits != nil {
				t.Errorf("gate %q, to %q, halt %v, effects %v", got.Gate, d.To, d.Halt, d.Effects)
			}
		})
	}
}

func TestNoRevisionTakesOverAHaltedServerInDoubt(t *testing.T) {
	now, next := version(t, "1.0.0"), version(t, "2.0.0")
	halted := func(in *Input) {
		in.Halted, in.Active.Bundle, in.Grants.Turn = true, next, rollout.Granted
		in.Governance = rollout.Governance{Unloaded: &engine.Halt{Cause: rollout.HaltRevisionHeld}, Successor: next}
	}
	if got := Decide(at(now, "Available", halted)); got.Gate != "" {
		t.Fatalf("without a doubt it is taken over: %q", got.Gate)
	}
	if got := Decide(at(now, "Available", halted, doubted)); got.Decision.Halt == nil || got.Governance.Bundle != nil {
		t.Errorf("taken over: %+v", got.Decision)
	}
}

func TestAConfirmedServerWithoutAClaimIsOfferedOnlyOnWhatIsReadNow(t *testing.T) {
	b := version(t, "1.0.0")
	lax := version(t, "3.0.0")
	lax.Settings.OfferAccepts = []string{bundle.AcceptWiped, bundle.AcceptBlank, bundle.AcceptData, bundle.AcceptUnread}
	lax.Settings.Sanitization, lax.Settings.FirstSeen = bundle.SanitizationNone, bundle.FirstSeenManage
	stale := func(in *Input) { in.Reading.Fresh = false }
	for name, c := range map[string]struct {
		state  v1alpha1.ServerState
		change []change
		gate   string
		to     engine.State
		rule   string
		ends   bool
	}{
		"off and available: it is inspected":      {"Available", []change{confirmed}, RestoredDoubt, "Initial", v1alpha1.RuleRestored, false},
		"off in the initial state: a new entry":   {"Initial", []change{confirmed}, RestoredDoubt, "Initial", v1alpha1.RuleRestored, false},
		"running: it is not powered off":          {"Available", []change{confirmed, running}, RestoredDoubt, "Available", "", false},
		"its power is not known to be fresh":      {"Available", []change{confirmed, stale}, RestoredDoubt, "Available", "", false},
		"its BMC is silent":                       {"Available", []change{confirmed, func(in *Input) { in.Reading = power.Reading{Tried: true, Failure: "down"} }}, RestoredDoubt, "Available", "", false},
		"parked: it stays with its new holder":    {"Parked", []change{confirmed}, RestoredDoubt, "Parked", "", false},
		"parked, and handed back: inspected":      {"Parked", []change{confirmed, asks(v1alpha1.OperationUnpark)}, RestoredDoubt, "Initial", v1alpha1.RuleRestored, false},
		"in error: it stays":                      {"Error", []change{confirmed}, RestoredDoubt, "Error", "", false},
		"in error, and cleared: inspected":        {"Error", []change{confirmed, asks(v1alpha1.OperationRetry)}, RestoredDoubt, "Initial", v1alpha1.RuleRestored, false},
		"a report of a former entry is not now":   {"Available", []change{inspecting, reports(6, policyv1alpha1.ContentBlank)}, RestoredDoubt, "Initial", v1alpha1.RuleRestored, false},
		"being inspected: the lifecycle goes on":  {"Initial", []change{inspecting}, "", "Discovery", "ProbeDue", false},
		"blank disks end the doubt":               {"Discovery", []change{inspecting, reports(7, policyv1alpha1.ContentBlank)}, RestoredDoubt, "Discovery", "", true},
		"data is marked first":                    {"Discovery", []change{inspecting, reports(7, policyv1alpha1.ContentData)}, DataNoted, "Discovery", "", false},
		"data that a former wipe covered":         {"Discovery", []change{inspecting, reports(7, policyv1alpha1.ContentData), wiped(5)}, DataNoted, "Discovery", "", false},
		"disks that were not read":                {"Discovery", []change{inspecting, reports(7, ""), wiped(5)}, DataNoted, "Discovery", "", false},
		"found running meanwhile: a stranger":     {"Initial", []change{inspecting, running}, StrangerNoted, "Initial", "", false},
		"forced to be offered: it is not":         {"Discovery", []change{inspecting, forcedTo("Available")}, RestoredDoubt, "Discovery", "", false},
		"a wipe of this entry ends the doubt too": {"Cleanup", []change{released, inspecting, dirtied, wiped(7), reports(7, policyv1alpha1.ContentData)}, RestoredDoubt, "Cleanup", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, governing := range []*bundle.Bundle{b, lax} {
				in := at(governing, c.state, c.change...)
				got := Decide(in)
				d := got.Decision
				ends := slices.ContainsFunc(d.Effects, func(e engine.Effect) bool { return e.Param("mark").Text() == DoubtEnded })
				if got.Gate != c.gate || d.To != c.to || d.Rule != c.rule || ends != c.ends {
					t.Errorf("%s: gate %q, to %q by %q, effects %v", governing.Revision.Name, got.Gate, d.To, d.Rule, d.Effects)
				}
				if d.Rule == v1alpha1.RuleRestored && !slices.Contains(d.Clears, policies.MarkManaged) {
					t.Error("that the machine was ours counts still")
				}
			}
		})
	}
}

func dirtied(in *Input) {
	in.Observation.Server.Status.Lifecycle.Marks = []string{policies.MarkDirty, policies.MarkManaged}
	in.Observation.Server.Spec.ServerClaimRef = nil
}
