// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/bmcsystems"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

func TestAnAssignmentProvesAHeldMachineByItsRecordedHardware(t *testing.T) {
	const mac, otherMAC = "00:40:a6:00:00:01", "00:40:a6:00:00:02"
	recorded := bmcsystems.Record{SerialNumbers: []string{"S"}, MACs: []string{mac}}
	for name, c := range map[string]struct {
		assigned bmcsystems.Assignment
		recorded bmcsystems.Record
		holds    bool
		want     bmcsystems.Assignment
	}{
		"its own hardware":                        {bmcsystems.Assignment{SerialNumber: "S", MAC: mac}, recorded, true, bmcsystems.Assignment{SerialNumber: "S", MAC: mac}},
		"other hardware proves nothing":           {bmcsystems.Assignment{SerialNumber: "T", MAC: otherMAC}, recorded, true, bmcsystems.Assignment{}},
		"other hardware of a clean machine":       {bmcsystems.Assignment{SerialNumber: "T", MAC: otherMAC}, recorded, false, bmcsystems.Assignment{SerialNumber: "T", MAC: otherMAC}},
		"an exchanged card":                       {bmcsystems.Assignment{SerialNumber: "S", MAC: otherMAC}, recorded, true, bmcsystems.Assignment{SerialNumber: "S", MAC: otherMAC}},
		"a MAC address that only the BMC reports": {bmcsystems.Assignment{MAC: otherMAC}, recorded, true, bmcsystems.Assignment{SerialNumber: "S", MAC: otherMAC}},
		"nothing is recorded":                     {bmcsystems.Assignment{SerialNumber: "T"}, bmcsystems.Record{}, true, bmcsystems.Assignment{SerialNumber: "T"}},
	} {
		if got := provenBy(c.assigned, c.recorded, c.holds); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestADirtyServerWantsNoOtherMachine(t *testing.T) {
	const id = "0a000000-0000-4000-8000-00000000000a"
	s := &v1alpha1.Server{Spec: v1alpha1.ServerSpec{SystemUUID: id}, Status: v1alpha1.ServerStatus{SerialNumber: "S",
		Lifecycle: &v1alpha1.LifecycleStatus{Marks: []string{"Dirty"}}}}
	v := Seen{Observation: policies.Observation{Server: s}}
	v.BMC.Stated.Assigned = bmcsystems.Assignment{UUID: id, SerialNumber: "T"}
	if other := (redfish.SystemSnapshot{Identity: redfish.Identity{SerialNumber: "T"}}); redfish.Shows(v.Want(), other) {
		t.Error("another machine is taken for it")
	}
	v.BMC.Stated.Assigned.SerialNumber = "S"
	if own := (redfish.SystemSnapshot{Identity: redfish.Identity{SerialNumber: "S"}}); !redfish.Shows(v.Want(), own) {
		t.Error("its own machine is not known")
	}
}

func TestALightIsByTheStateWhereItAsksForOne(t *testing.T) {
	for word, want := range map[string]bool{"": false, "Off": false, "Lit": true, "Blinking": true} {
		effect := engine.Effect{Name: policies.EffectLocate, Params: []engine.Param{{Name: "unlessAsked", Value: engine.StringValue(word)}}}
		if _, byState := (&Seen{Observation: policies.Observation{Server: &v1alpha1.Server{}}}).wantedLight(effect); byState != want {
			t.Errorf("%q: the light is by the state: %t", word, byState)
		}
	}
}

func TestTheFirstWordIsAsThePolicySaysForTheModel(t *testing.T) {
	for name, c := range map[string]struct {
		grace time.Duration
		model string
		want  time.Duration
	}{
		"of any model":                         {0, "Other", 20 * time.Minute},
		"of a model that takes longer":         {0, "SYS-821GE-TNHR", 45 * time.Minute},
		"where the process has one of its own": {time.Second, "SYS-821GE-TNHR", time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			settings := bundle.Settings{Boot: bundle.Boot{BootOf: bundle.BootOf{FirstWord: 20 * time.Minute},
				Models: []bundle.BootModel{{Model: "sys-821ge*", BootOf: bundle.BootOf{FirstWord: 45 * time.Minute}}}}}
			v := Seen{Config: Config{BootGrace: c.grace}, Observation: policies.Observation{Server: &v1alpha1.Server{}, Settings: settings}}
			v.Server.Status.Model = c.model
			if got := v.FirstWord(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestAReadingIsFreshIfItCanTellOfTheLastRequest(t *testing.T) {
	for name, c := range map[string]struct {
		seen  Seen
		fresh bool
	}{
		"a second ago":                           {seenIn(v1alpha1.StateAvailable), true},
		"a minute ago":                           {seenIn(v1alpha1.StateAvailable, stale), false},
		"a minute ago, as a decision waited for": {seenIn(v1alpha1.StateAvailable, stale, func(s *Seen) { s.Memory.Waits = noon.Add(-time.Minute) }), true},
		"begun before a decision waited for one": {seenIn(v1alpha1.StateAvailable, stale, func(s *Seen) { s.Memory.Waits = noon.Add(-59 * time.Second) }), false},
		"of another machine":                     {seenIn(v1alpha1.StateAvailable, other), false},
		"that failed":                            {seenIn(v1alpha1.StateAvailable, silent), false},
		"before the first one":                   {seenIn(v1alpha1.StateAvailable, func(s *Seen) { s.BMC = BMC{} }), false},
		"begun before a call ended":              {seenIn(v1alpha1.StateAvailable, job("x", power.Job{EndedAt: noon.Add(-time.Second)})), false},
		"begun before a request lapsed":          {seenIn(v1alpha1.StateAvailable, asked(v1alpha1.PowerActionForceOff, 61*time.Second)), false},
		"begun after a request lapsed":           {seenIn(v1alpha1.StateAvailable, asked(v1alpha1.PowerActionForceOff, 63*time.Second)), true},
		"of before this entry":                   {seenIn(v1alpha1.StateAvailable, lifecycle(func(l *v1alpha1.LifecycleStatus) { l.EnteredAt = micro(0) })), true},
	} {
		if fresh := c.seen.Fresh(); fresh != c.fresh {
			t.Errorf("a reading %s is fresh: %t", name, fresh)
		}
	}
}

func TestABMCIsReadAgainSoonerTheLaterItWasAsked(t *testing.T) {
	enters := func(ago time.Duration) func(*Seen) {
		return lifecycle(func(l *v1alpha1.LifecycleStatus) { l.EnteredAt = micro(ago) })
	}
	for name, c := range map[string]struct {
		seen Seen
		in   time.Duration
	}{
		"a third of the time since it entered": {seenIn(v1alpha1.StateDiscovery, enters(30*time.Second)), 10 * time.Second},
		"a third of the time since a call":     {seenIn(v1alpha1.StateDiscovery, job("x", power.Job{EndedAt: noon.Add(-3 * time.Second)})), time.Second},
		"at most so often":                     {seenIn(v1alpha1.StateDiscovery, enters(0)), FastestPoll},
		"at least so often":                    {seenIn(v1alpha1.StateDiscovery), SlowestPoll},
		"slowly by the clock of another":       {seenIn(v1alpha1.StateDiscovery, enters(-time.Second)), SlowestPoll},
		"slowly while a call runs":             {seenIn(v1alpha1.StateDiscovery, enters(0), func(s *Seen) { s.BMC.LastJob = noon.Add(1) }), SlowestPoll},
		"since it was made if it has no state": {seenIn("", unborn, func(s *Seen) { s.Server.CreationTimestamp.Time = noon.Add(-6 * time.Second) }), 2 * time.Second},
	} {
		if in := c.seen.Shortly(); in != c.in {
			t.Errorf("%s: %s, want %s", name, in, c.in)
		}
	}
}

func TestWhatMustAnswerBeforeAWrite(t *testing.T) {
	assigned := func(a bmcsystems.Assignment) func(*Seen) { return func(s *Seen) { s.BMC.Stated.Assigned = a } }
	for name, c := range map[string]struct {
		seen Seen
		want redfish.Identity
	}{
		"the UUID": {seenIn(v1alpha1.StateAvailable), redfish.Identity{UUID: machineUUID}},
		"and the serial number that is known": {seenIn(v1alpha1.StateAvailable, func(s *Seen) { s.Server.Status.SerialNumber = "S" }),
			redfish.Identity{UUID: machineUUID, SerialNumber: "S"}},
		"what proves a UUID that was assigned": {seenIn(v1alpha1.StateAvailable, assigned(bmcsystems.Assignment{UUID: machineUUID, SerialNumber: "S", MAC: "m"})),
			redfish.Identity{UUID: machineUUID, SerialNumber: "S", MAC: "m", Assigned: true}},
		"not what proves another UUID": {seenIn(v1alpha1.StateAvailable, assigned(bmcsystems.Assignment{UUID: "other", SerialNumber: "S"})),
			redfish.Identity{UUID: machineUUID}},
	} {
		if got := c.seen.Want(); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestADraftSeesWhatItPlans(t *testing.T) {
	s := seenIn(v1alpha1.StateAvailable, job("old", power.Job{EndedAt: noon.Add(-time.Hour)}))
	d := &draft{Seen: s}
	d.set(func(s *v1alpha1.Server) { s.Name = "b" })
	d.remember(func(m *Memory) { m.Asked = noon })
	d.ask(Ask{ID: "new"})
	d.forget("old")
	d.forget("new") // a call that runs is not forgotten
	d.try(func(d *draft) loop.Progress {
		d.set(func(s *v1alpha1.Server) { s.Name += "c" })
		return loop.Holds()
	})
	if d.Server.Name != "bc" || s.Server.Name != "a" {
		t.Errorf("the server is %s in the draft, and %s", d.Server.Name, s.Server.Name)
	}
	if !d.Memory.Asked.Equal(noon) || !s.Memory.Asked.IsZero() {
		t.Error("what is remembered is not that of the draft alone")
	}
	if !d.BMC.Busy() || d.BMC.Jobs["old"].Known || !s.BMC.Jobs["old"].Known || s.BMC.Busy() {
		t.Errorf("jobs of the draft: %+v, and of what is seen: %+v", d.BMC.Jobs, s.BMC.Jobs)
	}
	if d.Fresh() {
		t.Error("a reading tells of a call that is planned")
	}
	d = &draft{Seen: s}
	if d.ask(Ask{ID: "new", Stored: true}); d.BMC.Busy() {
		t.Error("the BMC works on what is not stored")
	}
}

func TestMemoryIsOfOneObjectAndOneEntry(t *testing.T) {
	s := seenIn(v1alpha1.StateDiscovery).Server
	var m Memory
	m.Waits = noon
	m.Enter(s, noon)
	m.Mint(s, *token(v1alpha1.ProbePurposeProbe, 7))
	if !m.EnteredAt(s).Equal(noon) || !m.Waits.IsZero() || m.Credential(s, v1alpha1.ProbePurposeProbe) == nil {
		t.Errorf("%+v", m)
	}
	if m.Credential(s, v1alpha1.ProbePurposeWipe) != nil {
		t.Error("a token of another purpose")
	}
	for name, change := range map[string]func(*v1alpha1.Server){
		"of another entry":  func(s *v1alpha1.Server) { s.Status.Lifecycle.Entry++ },
		"of another object": func(s *v1alpha1.Server) { s.UID = "b" },
	} {
		other := s.DeepCopy()
		change(other)
		if !m.EnteredAt(other).IsZero() || m.Credential(other, v1alpha1.ProbePurposeProbe) != nil {
			t.Errorf("what is remembered is taken for that %s", name)
		}
	}
	if m.Asked = noon; !m.AskedAt(noon).Equal(noon) || !m.AskedAt(noon.Add(1)).IsZero() {
		t.Error("a request of another process is taken for one of this")
	}
}
