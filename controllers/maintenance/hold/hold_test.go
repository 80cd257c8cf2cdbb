// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/maintenance/grant"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// sm is the maintenance ops/a of server s1, which has our finalizer.
func sm(change ...func(*v1alpha1.ServerMaintenance)) *v1alpha1.ServerMaintenance {
	m := &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "a", UID: "uid-a",
		Finalizers: []string{v1alpha1.FinalizerServerMaintenance}}}
	m.Spec.ServerRef.Name = "s1"
	for _, c := range change {
		c(m)
	}
	return m
}

func fresh(m *v1alpha1.ServerMaintenance)   { m.Finalizers = nil }
func deleted(m *v1alpha1.ServerMaintenance) { m.DeletionTimestamp = &metav1.Time{Time: noon} }
func aborted(m *v1alpha1.ServerMaintenance) {
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AbortAnnotation, "wrong rack")
}
func boots(m *v1alpha1.ServerMaintenance) {
	m.Spec.ServerBootConfigurationTemplate = &v1alpha1.ServerBootConfigurationTemplate{Name: "t"}
}
func lit(m *v1alpha1.ServerMaintenance) { m.Spec.LocatorLED = v1alpha1.IndicatorLEDLit }

// granted is one that says that it has its server, since noon.
func granted(m *v1alpha1.ServerMaintenance) {
	m.Status.State, m.Status.GrantedAt = v1alpha1.ServerMaintenanceStateInMaintenance, &metav1.Time{Time: noon}
	m.Status.Conditions = []metav1.Condition{
		{Type: "Granted", Status: "True", Reason: "ServerGranted", Message: "the server was handed over", LastTransitionTime: metav1.NewTime(noon)},
		{Type: "Served", Status: "True", Reason: "Served", Message: "the machine is as this maintenance asks", LastTransitionTime: metav1.NewTime(noon)},
	}
}

func says(kind, reason string, ago time.Duration) func(*v1alpha1.ServerMaintenance) {
	return func(m *v1alpha1.ServerMaintenance) {
		meta.RemoveStatusCondition(&m.Status.Conditions, kind)
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: kind, Status: "False", Reason: reason, Message: "m",
			LastTransitionTime: metav1.NewTime(noon.Add(-ago))})
	}
}

func server(change ...func(*v1alpha1.Server)) *v1alpha1.Server {
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "s1", Annotations: map[string]string{}}}
	s.Status.State, s.Status.PowerState = v1alpha1.StateAvailable, v1alpha1.PowerStateOff
	for _, c := range change {
		c(s)
	}
	return s
}

// held is a server in state Maintenance that ops/a has.
func held(s *v1alpha1.Server) {
	s.Status.State = v1alpha1.StateMaintenance
	s.Spec.ServerMaintenanceRef = &v1alpha1.ObjectReference{Namespace: "ops", Name: "a"}
	s.Annotations[v1alpha1.MaintenanceUIDAnnotation] = "uid-a"
}

func booted(s *v1alpha1.Server) {
	s.Spec.MaintenanceBootConfigurationRef = &v1alpha1.ObjectReference{Namespace: "ops", Name: "a"}
	s.Status.PowerState = v1alpha1.PowerStateOn
}

// comesOn is a machine that is off, and was asked to come on.
func comesOn(ago time.Duration) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		s.Status.PowerState = v1alpha1.PowerStateOff
		s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Request: &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionOn,
			Attempts: 1, AskedAt: metav1.NewMicroTime(noon.Add(-ago))}}
	}
}

// goesOff is a machine that was asked to shut down. Of that no attempts are counted.
func goesOff(s *v1alpha1.Server) {
	s.Status.PowerState = v1alpha1.PowerStateOn
	s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Request: &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionGracefulShutdown,
		AskedAt: metav1.NewMicroTime(noon)}}
}

func givenUp(s *v1alpha1.Server) { s.Status.Lifecycle.Request.Attempts = 0 }

func blinks(s *v1alpha1.Server)   { s.Status.IndicatorLED = v1alpha1.IndicatorLEDBlinking }
func reserved(s *v1alpha1.Server) { s.Status.State = v1alpha1.StateReserved }
func handed(s *v1alpha1.Server)   { s.Annotations[v1alpha1.MaintenanceClaimAnnotation] = "uid-c" }

func claim(keys ...string) *v1alpha1.ServerClaim {
	c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "c", UID: "uid-c"}}
	for _, key := range keys {
		metav1.SetMetaDataLabel(&c.ObjectMeta, key, "true")
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, key, "true")
	}
	return c
}

// lost is the boot configuration that the manager wrote for the maintenance, without its owner.
func lost(state v1alpha1.ServerBootConfigurationState) *v1alpha1.ServerBootConfiguration {
	b := boot("", state)
	b.Annotations = map[string]string{v1alpha1.BootPurposeAnnotation: v1alpha1.BootPurposeMaintenance}
	return b
}

func boot(owner string, state v1alpha1.ServerBootConfigurationState) *v1alpha1.ServerBootConfiguration {
	b := &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "a"}}
	if owner != "" {
		b.OwnerReferences = []metav1.OwnerReference{{UID: "uid-a", Controller: ptr.To(true)}}
	}
	b.Status.State = state
	return b
}

func yes(a *grant.Grant) {
	a.Granted, a.Reason, a.Message = true, v1alpha1.ReasonMaintenanceGranted, "granted"
}

func wait(reason string, change ...func(*grant.Grant)) *grant.Grant {
	a := &grant.Grant{Answer: grant.Answer{Reason: reason, Message: "m"}}
	for _, c := range change {
		c(a)
	}
	return a
}

func asks(a *grant.Grant) { a.Asks = true }

func besides(a *grant.Grant) {
	a.Obstacles = []grant.Obstacle{{Answer: a.Answer}, {Answer: grant.Answer{Reason: "LimitReached", Message: "n"}}}
}

func one(m *v1alpha1.ServerMaintenance, a *grant.Grant) []Maintenance {
	return []Maintenance{{ServerMaintenance: m, Answer: a}}
}

// told is a step in short: its kind, and what a status says.
func told(s Step) string {
	text := string(s.Kind)
	if s.Kind != Status {
		return text
	}
	text += " " + string(s.Status.State)
	for _, c := range s.Status.Conditions {
		text += " " + c.Type + "=" + string(c.Status) + ":" + c.Reason
	}
	if s.Status.Asked != nil {
		text += " asked"
	}
	return text
}

func TestWhichWriteIsDue(t *testing.T) {
	needed := v1alpha1.MaintenanceNeededLabel
	for name, c := range map[string]struct {
		look Look
		want string
	}{
		"one that is granted gets a finalizer first": {Look{Server: server(), Maintenances: one(sm(fresh), wait("", yes))}, "Finalizer"},
		"then the server": {Look{Server: server(), Maintenances: one(sm(), wait("", yes))}, "Grant"},
		"then it says so": {Look{Server: server(held), Maintenances: one(sm(), wait("", yes))},
			"Status InMaintenance Granted=True:ServerGranted Served=True:Served"},
		"but gives the server a moment to move": {Look{Server: server(held, reserved), Settling: true, Maintenances: one(sm(), wait("", yes))}, ""},
		"and no longer than that": {Look{Server: server(held, reserved), Maintenances: one(sm(), nil)},
			"Status InMaintenance Granted=True:ServerGranted Served=False:ServerNotReady"},
		"one that waits says why": {Look{Server: server(), Maintenances: one(sm(fresh), wait("WindowClosed"))},
			"Status Pending Granted=False:WindowClosed"},
		"once":                                  {Look{Server: server(), Maintenances: one(sm(pending, says("Granted", "WindowClosed", 0)), wait("WindowClosed"))}, ""},
		"one that asks gets a finalizer first":  {Look{Server: server(), Claim: claim(), Maintenances: one(sm(fresh), wait("WaitsForApproval", asks))}, "Finalizer"},
		"then it records that it asks":          {Look{Server: server(), Claim: claim(), Maintenances: one(sm(), wait("WaitsForApproval", asks))}, "Status Pending Granted=False:WaitsForApproval asked"},
		"then it labels the claim":              {Look{Server: server(), Claim: claim(), Maintenances: one(sm(asked), wait("m"))}, "Label"},
		"also where the approval is older":      {Look{Server: server(), Claim: claim(), Maintenances: one(sm(pending, says("Granted", "ApprovalOlder", 0)), wait("ApprovalOlder"))}, "Label"},
		"also where it has the server":          {Look{Server: server(held, handed), Claim: claim(), Maintenances: one(sm(granted, claimed), nil)}, "Label"},
		"a server that is to go labels it too":  {Look{Server: server(decommissioned), Claim: claim()}, "Label"},
		"the label stays while another waits":   {Look{Server: server(), Claim: claim(needed), Maintenances: one(sm(pending, says("Granted", "WindowClosed", 0)), wait("WindowClosed"))}, ""},
		"and goes when none does":               {Look{Server: server(), Claim: claim(needed)}, "Unlabel"},
		"and with the last one, whoever set it": {Look{Server: server(), Claim: theirs(claim()), Maintenances: one(sm(deleted), nil)}, "Unlabel"},
		"but not with one of two":               {Look{Server: server(), Claim: theirs(claim()), Maintenances: append(one(sm(deleted), nil), one(sm(pending, says("Granted", "NotAdopted", 0)), wait("NotAdopted"))...)}, "Release"},
		"what another manager labelled stays":   {Look{Server: server(), Claim: theirs(claim())}, ""},
		"one that is deleted gives back":        {Look{Server: server(held), Maintenances: one(sm(deleted, granted), nil)}, "GiveBack"},
		"after its boot configuration":          {Look{Server: server(held), Maintenances: []Maintenance{{ServerMaintenance: sm(deleted, granted, boots), Boot: boot("a", "Ready")}}}, "DropBoot"},
		"after its machine has shut down":       {Look{Server: server(held, booted), Maintenances: []Maintenance{{ServerMaintenance: sm(deleted, granted, boots), Boot: boot("a", "Ready")}}}, "Status InMaintenance Granted=True:ServerGranted Served=False:Ending"},
		"also where it is still to come on":     {Look{Server: server(held, booted, comesOn(0)), Maintenances: one(sm(deleted, granted, boots), nil)}, "Status InMaintenance Granted=True:ServerGranted Served=False:Ending"},
		"or where it never does":                {Look{Server: server(held, booted, comesOn(5*time.Minute)), Maintenances: one(sm(deleted, granted, boots), nil)}, "GiveBack"},
		"or was given up":                       {Look{Server: server(held, booted, comesOn(0), givenUp), Maintenances: one(sm(deleted, granted, boots), nil)}, "GiveBack"},
		"what it did not boot may come on":      {Look{Server: server(held, comesOn(0)), Maintenances: one(sm(deleted, granted), nil)}, "GiveBack"},
		"not where it is aborted":               {Look{Server: server(held, comesOn(0)), Maintenances: one(sm(aborted, granted), nil)}, "Status InMaintenance Granted=True:ServerGranted Served=False:Ending"},
		"what it waited for before counts no more": {Look{Server: server(held, comesOn(0)), Maintenances: one(sm(aborted, says("Granted", "WaitsForDrain", 0)), nil)},
			"Status  Granted=True:ServerGranted Served=False:Ending"},
		"nor while it is to go off":              {Look{Server: server(held, goesOff), Maintenances: one(sm(aborted, granted), nil)}, "Status InMaintenance Granted=True:ServerGranted Served=False:Ending"},
		"which it does not wait for elsewhere":   {Look{Server: server(held, booted, reserved), Maintenances: one(sm(deleted, granted, boots), nil)}, "GiveBack"},
		"after its light went out":               {Look{Server: server(held, blinks), Maintenances: one(sm(deleted, granted, lit), nil)}, "Status InMaintenance Granted=True:ServerGranted Served=False:Ending"},
		"but a minute at most":                   {Look{Server: server(held, blinks), Maintenances: one(sm(deleted, granted, lit, says("Served", "Ending", time.Minute)), nil)}, "GiveBack"},
		"or hands over":                          {Look{Server: server(held), Maintenances: append(one(sm(deleted, granted), nil), one(next(), wait("", yes))...)}, "Grant"},
		"it labels the claim before, if late":    {Look{Server: server(held, handed), Claim: claim(), Maintenances: one(sm(deleted, granted), nil)}, "Label"},
		"afterwards the label goes":              {Look{Server: server(), Claim: claim(needed), Maintenances: one(sm(deleted, granted), nil)}, "Unlabel"},
		"and the finalizer last":                 {Look{Server: server(), Claim: claim(), Maintenances: one(sm(deleted, granted), nil)}, "Release"},
		"also where its server is gone":          {Look{Maintenances: one(sm(deleted), nil)}, "Release"},
		"a boot configuration that was left":     {Look{Server: server(), Maintenances: []Maintenance{{ServerMaintenance: sm(deleted, boots), Boot: boot("a", "Ready")}}}, "DropBoot"},
		"one that lost its owner":                {Look{Server: server(), Maintenances: []Maintenance{{ServerMaintenance: sm(deleted, boots), Boot: lost("Ready")}}}, "DropBoot"},
		"that of another is left alone":          {Look{Server: server(), Maintenances: []Maintenance{{ServerMaintenance: sm(deleted, boots), Boot: boot("", "Ready")}}}, "Release"},
		"and fails the maintenance":              {Look{Server: server(held), Maintenances: []Maintenance{{ServerMaintenance: sm(boots), Boot: boot("", "Ready")}}}, "Status Failed Granted=True:ServerGranted Served=False:BootFailed"},
		"one that is not prepared is waited for": {Look{Server: server(held), Maintenances: []Maintenance{{ServerMaintenance: sm(boots), Boot: boot("a", "Pending")}}}, "Status InMaintenance Granted=True:ServerGranted Served=False:ServerNotReady"},
		"one that cannot be prepared fails it":   {Look{Server: server(held), Maintenances: []Maintenance{{ServerMaintenance: sm(granted, boots), Boot: boot("a", "Error")}}}, "Status Failed Granted=True:ServerGranted Served=False:BootFailed"},
		"aborted while it waits":                 {Look{Server: server(), Maintenances: one(sm(aborted), nil)}, "Status Failed Granted=False:Aborted"},
		"aborted while it has the server":        {Look{Server: server(held), Maintenances: one(sm(aborted, granted), nil)}, "GiveBack"},
		"a holder that is gone":                  {Look{Server: server(held), Gone: true}, "GiveBack"},
		"one that may only be not cached":        {Look{Server: server(held)}, ""},
		"a reference of another program":         {Look{Server: server(held, foreignRef), Gone: true, Maintenances: one(sm(deleted), nil)}, "Release"},
		"one that lost its server waits anew":    {Look{Server: server(), Maintenances: one(sm(granted), wait("WindowClosed"))}, "Status Pending Granted=False:WindowClosed"},
		"one that names another server now":      {Look{Server: server(held), Maintenances: one(sm(granted, moved), nil)}, "GiveBack"},
		"a server that does not exist":           {Look{Maintenances: one(sm(fresh), nil)}, "Status Pending Granted=False:ServerNotReady"},
		"one to be left alone":                   {Look{Server: server(held), Maintenances: one(sm(deleted, ignored), nil)}, ""},
		"a check that fails for too long":        {Look{Server: server(), Maintenances: one(sm(pending, says("Granted", "CheckFails", 10*time.Minute)), wait("CheckFails", failsAfter))}, "Status Failed Granted=False:CheckFails"},
		"and one that may still":                 {Look{Server: server(), Maintenances: one(sm(pending, says("Granted", "CheckFails", 9*time.Minute)), wait("CheckFails", failsAfter))}, ""},
		"a check afterwards is waited for":       {Look{Server: server(), Maintenances: unproven(sm(deleted, granted))}, "Status InMaintenance Granted=True:ServerGranted Served=False:CheckFails"},
		"but not for ever":                       {Look{Server: server(), Maintenances: unproven(sm(deleted, granted, says("Served", "CheckFails", 10*time.Minute)))}, "Status Failed Granted=True:ServerGranted Served=False:CheckFails"},
		"and not where it is aborted":            {Look{Server: server(), Maintenances: unproven(sm(deleted, granted, aborted))}, "Release"},
		"one that is overdue": {Look{Server: server(held), Maintenances: []Maintenance{{ServerMaintenance: sm(granted, since), Expected: time.Hour}}},
			"Status InMaintenance Granted=True:ServerGranted Served=True:Served Overdue=True:Overdue"},
		"what only plans writes status":                  {Look{PlanOnly: true, Server: server(), Maintenances: one(sm(fresh), wait("PlanOnly"))}, "Status Pending Granted=False:PlanOnly"},
		"and grants nothing":                             {Look{PlanOnly: true, Server: server(), Claim: claim(needed), Maintenances: one(sm(deleted), wait("", yes))}, ""},
		"but lets go of what was granted before":         {Look{PlanOnly: true, Server: server(), Maintenances: one(sm(deleted, granted), nil)}, "Release"},
		"unless it still has its server":                 {Look{PlanOnly: true, Server: server(held), Maintenances: one(sm(deleted, granted), nil)}, "Status InMaintenance Granted=True:ServerGranted Served=False:Ending"},
		"another for which it waits is no news":          {Look{Server: server(), Maintenances: quiet(sm(pending, says("Granted", "WaveWaits", 0)), wait("LimitReached"))}, ""},
		"nor is another thing that it waits for besides": {Look{Server: server(), Maintenances: quiet(sm(pending, says("Granted", "WindowClosed", 0)), wait("WindowClosed", besides))}, ""},
		"until a while has passed":                       {Look{Server: server(), Maintenances: one(sm(pending, says("Granted", "WindowClosed", 0)), wait("WindowClosed", besides))}, "Status Pending Granted=False:WindowClosed"},
		"that it waits for its holder is":                {Look{Server: server(), Maintenances: quiet(sm(pending, says("Granted", "WaveWaits", 0)), wait("WaitsForApproval"))}, "Status Pending Granted=False:WaitsForApproval"},
		"what another manager carries out goes on":       {Look{Server: server(held, foreignRef), Maintenances: one(sm(fresh, theirsRuns), wait("NotAdopted"))}, "Status InMaintenance Granted=False:NotAdopted"},
	} {
		t.Run(name, func(t *testing.T) {
			c.look.Now = noon
			if diff := cmp.Diff(c.want, told(Decide(&c.look))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func pending(m *v1alpha1.ServerMaintenance) { m.Status.State = v1alpha1.ServerMaintenanceStatePending }
func asked(m *v1alpha1.ServerMaintenance) {
	pending(m)
	says("Granted", "m", 0)(m)
	claimed(m)
}
func claimed(m *v1alpha1.ServerMaintenance) {
	m.Status.Asked = &v1alpha1.MaintenanceAsked{ClaimUID: "uid-c", At: metav1.NewTime(noon)}
}
func moved(m *v1alpha1.ServerMaintenance) { m.Spec.ServerRef.Name = "s2" }
func since(m *v1alpha1.ServerMaintenance) {
	m.Status.GrantedAt = &metav1.Time{Time: noon.Add(-time.Hour)}
}
func theirsRuns(m *v1alpha1.ServerMaintenance) {
	m.Status.State = v1alpha1.ServerMaintenanceStateInMaintenance
}
func ignored(m *v1alpha1.ServerMaintenance) {
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.OperationAnnotation, v1alpha1.OperationIgnore)
}
func foreignRef(s *v1alpha1.Server)     { delete(s.Annotations, v1alpha1.MaintenanceUIDAnnotation) }
func decommissioned(s *v1alpha1.Server) { s.Annotations[v1alpha1.DecommissionAnnotation] = "dead fan" }
func failsAfter(a *grant.Grant)         { a.FailsAfter = 10 * time.Minute }

func theirs(c *v1alpha1.ServerClaim) *v1alpha1.ServerClaim {
	metav1.SetMetaDataLabel(&c.ObjectMeta, v1alpha1.MaintenanceNeededLabel, "true")
	return c
}

func next() *v1alpha1.ServerMaintenance {
	return sm(func(m *v1alpha1.ServerMaintenance) { m.Name, m.UID = "b", "uid-b" })
}

func unproven(m *v1alpha1.ServerMaintenance) []Maintenance {
	return []Maintenance{{ServerMaintenance: m, After: &Check{Message: "m", Within: 10 * time.Minute}}}
}

func quiet(m *v1alpha1.ServerMaintenance, a *grant.Grant) []Maintenance {
	return []Maintenance{{ServerMaintenance: m, Answer: a, Quiet: true}}
}

func TestTheApprovalsInEverySpelling(t *testing.T) {
	for _, key := range []string{"metal.ironcore.dev/maintenance-approved", "metal.ironcore.dev/maintenance-approval"} {
		label, annotation := claim(), claim()
		label.Labels, annotation.Annotations = map[string]string{key: ""}, map[string]string{key: "whatever"}
		if !Approved(label) || !Approved(annotation) || Approved(claim(v1alpha1.MaintenanceNeededLabel)) {
			t.Errorf("%s is not told apart", key)
		}
		for _, c := range []*v1alpha1.ServerClaim{label, annotation} {
			Labelled(c)
			Unlabelled(c)
			if len(c.Labels)+len(c.Annotations) > 0 {
				t.Errorf("it is left with %v %v", c.Labels, c.Annotations)
			}
		}
	}
}

func TestWhenTheClockMakesAStepDue(t *testing.T) {
	opens := wait("WindowClosed", func(a *grant.Grant) { a.After = noon.Add(time.Hour) })
	for name, c := range map[string]struct {
		look Look
		want time.Duration
	}{
		"a window opens":         {Look{Server: server(), Maintenances: one(sm(pending, says("Granted", "WindowClosed", 0)), opens)}, time.Hour},
		"a check is late":        {Look{Server: server(), Maintenances: one(sm(pending, says("Granted", "CheckFails", time.Minute)), wait("CheckFails", failsAfter))}, 9 * time.Minute},
		"a server has not moved": {Look{Server: server(held, reserved), Settling: true, Maintenances: one(sm(), nil)}, 2 * time.Second},
		"it will be overdue":     {Look{Server: server(held), Maintenances: []Maintenance{{ServerMaintenance: sm(granted), Expected: time.Hour}}}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			c.look.Now = noon
			if got := Decide(&c.look); got.Kind != None || !got.Again.Equal(noon.Add(c.want)) {
				t.Errorf("%s, again at %s", told(got), got.Again)
			}
		})
	}
}
