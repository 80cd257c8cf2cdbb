// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

func TestWhatCriticalHealthStops(t *testing.T) {
	memory, harmless := []string{"Memory"}, []string{}
	for name, c := range map[string]struct {
		health string
		faulty []string
		stops  string
		fact   string // what the lifecycle sees
		reason string // of the condition Healthy
		asks   string // what the selection sees
	}{
		"critical memory stops inspection by default":       {"Critical", memory, bundle.StopsInspection, "Critical", "HealthCritical", "Critical"},
		"it stops only offering where the bundle says so":   {"Critical", memory, bundle.StopsOffering, "Warning", "HealthCritical", "Critical"},
		"it stops nothing where the bundle says so":         {"Critical", memory, bundle.StopsNothing, "Warning", "HealthTolerated", "Warning"},
		"critical for what is no hardware stops nothing":    {"Critical", harmless, bundle.StopsInspection, "Warning", "HealthTolerated", "Warning"},
		"critical for what nobody names stops inspection":   {"Critical", nil, bundle.StopsInspection, "Critical", "HealthCritical", "Critical"},
		"it stops only offering where the bundle is so set": {"Critical", nil, bundle.StopsOffering, "Warning", "HealthCritical", "Critical"},
		"and nothing where the bundle is so set":            {"Critical", nil, bundle.StopsNothing, "Warning", "HealthTolerated", "Warning"},
		"a warning is a warning":                            {"Warning", nil, bundle.StopsInspection, "Warning", "HealthWarning", "Warning"},
		"nothing is said":                                   {"", nil, bundle.StopsInspection, "Unknown", "", "Unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observation{Server: &v1alpha1.Server{}, Settings: bundle.Settings{Health: bundle.Health{CriticalStops: c.stops}},
				System: SystemReading{Reachable: true, Identity: IdentitySame, Power: "Off", Health: c.health, Faulty: c.faulty,
					Harmless: c.faulty != nil && len(c.faulty) == 0}}
			reason, _ := HealthReason(o.System, c.stops)
			s := &v1alpha1.Server{}
			if reason != "" {
				s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionHealthy, Reason: reason}}
			}
			if got := o.Facts().BMC.Health; got != c.fact || reason != c.reason || HealthOf(s) != c.asks {
				t.Errorf("the lifecycle sees %s, the condition says %s, the selection sees %s", got, reason, HealthOf(s))
			}
		})
	}
}

func TestAWipeFailsWhereTheMachineCannotBeBootedIntoIt(t *testing.T) {
	boot := func(purpose string) *v1alpha1.ServerBootConfiguration {
		b := &v1alpha1.ServerBootConfiguration{}
		b.Annotations = map[string]string{v1alpha1.BootPurposeAnnotation: purpose}
		return b
	}
	missing := SystemReading{Reachable: true, Identity: IdentitySame, Power: "Off", NoOverride: true}
	shown, on, other := missing, missing, missing
	shown.NoOverride, on.Power, other.Identity = false, "On", IdentityOther
	verified := &policyv1alpha1.ServerInventory{Wipe: &policyv1alpha1.WipeReport{Entry: 7, State: policyv1alpha1.WipeVerified}}
	former := &policyv1alpha1.ServerInventory{Wipe: &policyv1alpha1.WipeReport{Entry: 5, State: policyv1alpha1.WipeVerified}}
	for name, c := range map[string]struct {
		system    SystemReading
		boot      *v1alpha1.ServerBootConfiguration
		inventory *policyv1alpha1.ServerInventory
		fails     bool
	}{
		"no override is shown":                  {missing, boot(v1alpha1.BootPurposeWipe), nil, true},
		"an override is shown":                  {shown, boot(v1alpha1.BootPurposeWipe), nil, false},
		"the machine is on":                     {on, boot(v1alpha1.BootPurposeWipe), nil, false},
		"another machine answers":               {other, boot(v1alpha1.BootPurposeWipe), nil, false},
		"it boots for its claim":                {missing, boot(v1alpha1.BootPurposeClaim), nil, false},
		"nothing is to boot":                    {missing, nil, nil, false},
		"the wipe of this entry was verified":   {missing, boot(v1alpha1.BootPurposeWipe), verified, false},
		"a wipe of a former entry says nothing": {missing, boot(v1alpha1.BootPurposeWipe), former, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.Server{}
			s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 7}
			f := Observation{Server: s, System: c.system, Boot: c.boot, Inventory: c.inventory}.Facts().Wipe
			if got := f.Entry == 7 && f.Failed && !f.Verified; got != c.fails {
				t.Errorf("got %+v", f)
			}
		})
	}
}
