// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
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
