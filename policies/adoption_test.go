// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"testing"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestAMaintenanceIsGrantedForAsLongAsTheServerNamesOne(t *testing.T) {
	handedOver := func(s *v1alpha1.Server) {
		s.Spec.ServerMaintenanceRef = &v1alpha1.ObjectReference{Namespace: "ops", Name: "disks"}
	}
	for name, c := range map[string]struct {
		server *v1alpha1.Server
		want   bool
	}{
		"a server that names one":  {held(handedOver), true},
		"a server that names none": {held(), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Observation{Server: c.server, Now: noon}).Facts().Maintenance.Granted; got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// adopted is every way in which a server of another operator may look that a claim is written on.
func adopted(each func(name string, f *Facts)) {
	for _, power := range []string{"On", "Off", "PoweringOff", unknown} {
		for _, claim := range []ClaimFacts{
			{Bound: true, Power: "On"}, {Bound: true, Power: "Off"}, {Binding: true, Power: none}, {Missing: true, Power: none},
		} {
			for _, consented := range []bool{false, true} {
				f := stranger("Available", func(f *Facts) {
					f.Server.ClaimRefSet, f.Claim, f.Operation.Consented, f.BMC.Power = true, claim, consented, power
					f.Lifecycle.Marks = []string{MarkDirty}
					if power == unknown {
						f.BMC = BMCFacts{Power: unknown, Health: unknown, Identity: IdentityUnknown}
					}
				})
				each(fmt.Sprintf("power %s, claim %+v, consented %t", power, claim, consented), f)
			}
		}
	}
}

func TestAnAdoptedServerThatWasOfferedAndGivenToAClaimIsReserved(t *testing.T) {
	l := defaultLifecycle(t)
	adopted(func(name string, f *Facts) {
		if d := l.Enter(f, "Available"); d.Halt == nil || d.Halt.Rule != "NeverOfferDirty" {
			t.Errorf("%s: it may be offered: %+v", name, d)
		}
		d := l.Start(f)
		if d.Halt != nil || d.To != "Reserved" || d.Rule != "HeldByClaim" || len(d.Effects) > 0 {
			t.Errorf("%s: begins in %s by %q and does %v, halted by %+v", name, d.To, d.Rule, d.Effects, d.Halt)
		}
		f.Lifecycle.State, f.Lifecycle.Age = "Reserved", time.Hour
		if d := l.Decide(f); !f.Claim.Bound && (d.Moves() || doesAndEarns(d) != "") {
			t.Errorf("%s: nobody knows the claim, and it moves by %q and does %q", name, d.Rule, doesAndEarns(d))
		}
	})
}

func TestAnAdoptedServerInMaintenanceStaysThereUntilThatIsOver(t *testing.T) {
	l := defaultLifecycle(t)
	adopted(func(name string, f *Facts) {
		f.Lifecycle.State, f.Maintenance.Granted = "Maintenance", true
		if d := l.Enter(f, "Maintenance"); d.Halt != nil || d.To != "Maintenance" {
			t.Errorf("%s: begins in %s, halted by %+v", name, d.To, d.Halt)
		}
		if d := l.Decide(f); d.Halt != nil || d.Moves() || doesAndEarns(d) != "AsMaintenanceAsks" {
			t.Errorf("%s: moves by %q and does %q, halted by %+v", name, d.Rule, doesAndEarns(d), d.Halt)
		}
		f.Maintenance.Granted = false
		if d := l.Decide(f); d.Rule != "Returned" {
			t.Errorf("%s: once that is over it moves by %q", name, d.Rule)
		}
	})
}
