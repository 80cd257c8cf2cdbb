// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/engine/maintenance"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// of has a boot configuration be that of an owner, as the owner asks.
func of(namespace, name, image string) func(*v1alpha1.ServerBootConfiguration) {
	return func(b *v1alpha1.ServerBootConfiguration) {
		b.Namespace, b.Name = namespace, name
		b.Spec = v1alpha1.ServerBootConfigurationSpec{Image: image, ServerRef: corev1.LocalObjectReference{Name: "a"}}
	}
}

func TestTheBootOfAClaimIsAsTheClaimAsks(t *testing.T) {
	follows := []string{"permit setting", "recheck setting", "boot shop/web for Claim", "set"}
	bound := claimed(v1alpha1.PowerOn)
	for name, c := range map[string]struct {
		seen Seen
		want want
	}{
		"permitted and rechecked, then named by the server": {seenIn(v1alpha1.StateReserved, bound), want{acts: follows, records: refers("shop", "web")}},
		"also where the boot of an agent stands":            {seenIn(v1alpha1.StateReserved, bound, booting(v1alpha1.BootPurposeProbe)), want{acts: follows, records: refers("shop", "web")}},
		"also where another image stands":                   {seenIn(v1alpha1.StateReserved, bound, booting(v1alpha1.BootPurposeClaim, of("shop", "web", "old"))), want{acts: follows, records: refers("shop", "web")}},
		"also where a change was not handed over": {seenIn(v1alpha1.StateReserved, bound, booting(v1alpha1.BootPurposeClaim, of("shop", "web", "os"),
			func(b *v1alpha1.ServerBootConfiguration) { b.Generation = 2 })), want{acts: follows, records: refers("shop", "web")}},
		"nothing once it stands":                       {seenIn(v1alpha1.StateReserved, bound, booting(v1alpha1.BootPurposeClaim, of("shop", "web", "os"))), want{}},
		"not before the interfaces are known":          {seenIn(v1alpha1.StateReserved, bound, noInterfaces, other), want{then: "waits WaitsForReading"}},
		"nothing for a claim that is to be left alone": {seenIn(v1alpha1.StateReserved, bound, ignoredClaim), want{}},
	} {
		t.Run(name, func(t *testing.T) { check(t, c.seen, effect(policies.EffectBootAsClaimed), c.want) })
	}
}

// serves has the manager have granted the server to the maintenance shop/fans.
func serves(change ...func(*v1alpha1.ServerMaintenance)) func(*Seen) {
	return func(s *Seen) {
		s.Maintenance = &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "fans", UID: "uid-fans", Generation: 2}}
		s.Maintenance.Spec.ServerRef.Name = "a"
		s.Server.Spec.ServerMaintenanceRef = &v1alpha1.ObjectReference{Namespace: "shop", Name: "fans"}
		annotated(v1alpha1.MaintenanceUIDAnnotation, "uid-fans")(s)
		for _, c := range change {
			c(s.Maintenance)
		}
	}
}

func powers(p v1alpha1.Power) func(*v1alpha1.ServerMaintenance) {
	return func(m *v1alpha1.ServerMaintenance) { m.Spec.ServerPower = p }
}

func lights(led v1alpha1.IndicatorLED) func(*v1alpha1.ServerMaintenance) {
	return func(m *v1alpha1.ServerMaintenance) { m.Spec.LocatorLED = led }
}

func template(m *v1alpha1.ServerMaintenance) {
	m.Spec.ServerBootConfigurationTemplate = &v1alpha1.ServerBootConfigurationTemplate{}
	m.Spec.ServerBootConfigurationTemplate.Spec.Image = "diag"
}

func ends(m *v1alpha1.ServerMaintenance) {
	m.DeletionTimestamp = &metav1.Time{Time: noon}
}

func TestAMaintenanceGetsLightThenBootThenPower(t *testing.T) {
	const state = v1alpha1.StateMaintenance
	nights, err := maintenance.NewWindow(maintenance.Window{Name: "nights", Opens: "0 2 * * *", Zone: "UTC", Lasts: 3 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	closed := func(s *Seen) { s.Settings.Maintenance = &maintenance.Policy{Windows: []maintenance.Window{nights}} }
	stops := []string{"permit shutdown and maintenance", "set", "remember", "set",
		"ask " + downID + " call.Reset{Action:GracefulShutdown} as shutdown and maintenance, once it is stored, shows later"}
	switches := func(ways, rest string) []string {
		return []string{"permit power-on and maintenance", "set", "remember", "remember", "set", askOn(ways, rest, "power-on and maintenance")}
	}
	prepared := booting(v1alpha1.BootPurposeMaintenance, of("shop", "fans", "diag"))
	requested := requests(v1alpha1.PowerActionOn, []fleet.Action{fleet.PowerOn})
	for name, c := range map[string]struct {
		seen Seen
		want want
	}{
		"nothing without a wish":                    {seenIn(state, serves()), want{}},
		"nothing under another program's reference": {seenIn(state, serves(powers("On")), annotated(v1alpha1.MaintenanceUIDAnnotation, "other")), want{}},
		"nothing in another state":                  {seenIn(v1alpha1.StateAvailable, serves(powers("On"))), want{}},
		"nothing of one that is to be left alone": {seenIn(state, serves(powers("On"), func(m *v1alpha1.ServerMaintenance) {
			m.Annotations = map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationIgnore}
		})), want{}},
		"its light is on record first": {seenIn(state, serves(lights("Lit"), powers("On")), shines(redfish.LEDOff)), want{
			acts: []string{"permit setting", "set"}, then: "waits MarkStored 1ms",
			records: func(s *v1alpha1.Server) { s.Status.Lifecycle.Marks = []string{policies.MarkLocated} }}},
		"then asked for, by its generation": {seenIn(state, serves(lights("Lit")), shines(redfish.LEDOff), marks(policies.MarkLocated)), want{
			acts: []string{"permit setting", "ask 7/led-uid-fans/2-Lit call.Light{LED:Lit} as setting"}}},
		"a light that a person asks for has no mark": {seenIn(state, serves(lights("Lit")), shines(redfish.LEDOff), wantsLight("Off")), want{
			acts: []string{"permit setting", "ask 7/led-uid-fans/2-Lit call.Light{LED:Lit} as setting"}}},
		"what was prepared for an agent goes before the power": {seenIn(state, serves(powers("On")), names("metalaw-system", "a-wipe"), inserted), want{
			acts: []string{"permit setting", "drop a, named false", "drop a-wipe, named true", "set", "permit setting",
				"ask 7/eject-media call.Eject{Service:} as setting", "poll 0s"}, then: "waits WaitsForEject 15s",
			records: func(s *v1alpha1.Server) { s.Spec.BootConfigurationRef = nil }}},
		"its boot is prepared before the power": {seenIn(state, serves(template, powers("On"))), want{
			acts: []string{"permit setting and maintenance", "recheck setting and maintenance", "boot shop/fans for Maintenance", "set"},
			then: "waits WaitsForBoot", records: func(s *v1alpha1.Server) {
				s.Spec.MaintenanceBootConfigurationRef = &v1alpha1.ObjectReference{Namespace: "shop", Name: "fans"}
			}}},
		"what it prepared is booted": {seenIn(state, serves(template, powers("On")), prepared), want{
			acts: switches(network, " Inserted:false Overridden:false"), then: "waits WaitsForPower", records: requested, recalls: recallsOn}},
		"without a template it boots by itself": {seenIn(state, serves(powers("On")), overridden), want{
			acts: switches("{Target: Media:}", " Inserted:false Overridden:true"), then: "waits WaitsForPower", records: requested, recalls: recallsOn}},
		"the reference of a former one goes": {seenIn(state, serves(), func(s *Seen) { s.Server.Spec.MaintenanceBootConfigurationRef = &v1alpha1.ObjectReference{} }), want{
			acts: []string{"set"}, records: func(s *v1alpha1.Server) { s.Spec.MaintenanceBootConfigurationRef = nil }}},
		"off waits for no boot": {seenIn(state, serves(template, powers("Off")), on), want{
			acts: stops, then: "waits WaitsForPower", records: requests(v1alpha1.PowerActionGracefulShutdown, nil), recalls: recallsAsked}},
		"off waits for a window":               {seenIn(state, serves(powers("Off")), on, closed), want{then: "waits WindowClosed 14h0m0s"}},
		"a machine that is off waits for none": {seenIn(state, serves(powers("Off")), closed), want{}},
		"nor does one whose maintenance ends": {seenIn(state, serves(template, powers("On"), ends), on, closed, prepared), want{
			acts: stops, then: "waits WaitsForPower", records: requests(v1alpha1.PowerActionGracefulShutdown, nil), recalls: recallsAsked}},
		"one that ends without a template keeps its power": {seenIn(state, serves(powers("Off"), ends), on), want{}},
		"one that failed asks for nothing": {seenIn(state, serves(powers("Off"), func(m *v1alpha1.ServerMaintenance) {
			m.Status.State = v1alpha1.ServerMaintenanceStateFailed
		}), on), want{}},
	} {
		t.Run(name, func(t *testing.T) { check(t, c.seen, effect(policies.EffectMaintain), c.want) })
	}
}
