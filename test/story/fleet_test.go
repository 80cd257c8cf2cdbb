// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// control puts a FleetControl in force for the rest of a spec.
func control(ctx context.Context, change func(*policyv1alpha1.FleetControlSpec)) {
	GinkgoHelper()
	c := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName}}
	Expect(client.IgnoreAlreadyExists(admin.Create(ctx, c))).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(admin.Delete(ctx, c))).To(Succeed()) })
	recontrol(ctx, change)
}

// recontrol changes the FleetControl in force.
func recontrol(ctx context.Context, change func(*policyv1alpha1.FleetControlSpec)) {
	GinkgoHelper()
	Eventually(func() error {
		c := getControl(ctx)
		change(&c.Spec)
		return admin.Update(ctx, c)
	}).Should(Succeed())
}

func getControl(ctx context.Context) *policyv1alpha1.FleetControl {
	GinkgoHelper()
	c := &policyv1alpha1.FleetControl{}
	Expect(admin.Get(ctx, types.NamespacedName{Name: policyv1alpha1.FleetControlName}, c)).To(Succeed())
	return c
}

func controlCondition(ctx context.Context, kind string) func() string {
	return func() string { return conditionText(getControl(ctx).Status.Conditions, kind) }
}

func only(machines ...*emulator.Machine) *metav1.LabelSelector {
	var names []string
	for _, m := range machines {
		names = append(names, m.Name())
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "machine", Operator: metav1.LabelSelectorOpIn, Values: names}}}
}

func frozen(level policyv1alpha1.FreezeLevel, m ...*emulator.Machine) func(*policyv1alpha1.FleetControlSpec) {
	return func(s *policyv1alpha1.FleetControlSpec) {
		s.Freezes = []policyv1alpha1.Freeze{{Name: "spec", Level: level, Selector: only(m...), Reason: "a spec", By: "its author"}}
	}
}

func thawed(s *policyv1alpha1.FleetControlSpec) { s.Freezes, s.Budgets = nil, nil }

var _ = Describe("Safety rule 8: freeze", func() {
	It("holds back a power-off and a wipe at level Destructive, says so, and goes on once it is lifted", func(ctx SpecContext) {
		m := claimed(ctx, "frozen")
		name := serverOf(m)
		data := m.Drives()[0].Contents()
		control(ctx, frozen(policyv1alpha1.FreezeDestructive, m))
		Eventually(controlCondition(ctx, policyv1alpha1.ConditionFrozen)).Should(Equal("True/Destructive"))
		before := theWorld.fleet.LastWrite()
		deleteClaim(ctx, "frozen")
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionWithheld)).Should(Equal("True/Frozen"))
		Consistently(touched(m, before)).Should(BeEmpty())
		Expect(state(ctx, name)()).To(Equal("Reserved/On"))

		By("lifting it")
		recontrol(ctx, thawed)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionWithheld)).Should(Equal("none"))
		Expect(data).NotTo(BeEmpty())
		Expect(m.Drives()[0].Contents()).To(BeEmpty())
	})

	It("holds back a power-on at level All and not at level Destructive", func(ctx SpecContext) {
		m, n := theWorld.available(ctx), theWorld.available(ctx)
		control(ctx, func(s *policyv1alpha1.FleetControlSpec) {
			s.Freezes = []policyv1alpha1.Freeze{{Name: "all", Level: policyv1alpha1.FreezeAll, Selector: only(m)},
				{Name: "some", Level: policyv1alpha1.FreezeDestructive, Selector: only(n)}}
		})
		Eventually(controlCondition(ctx, policyv1alpha1.ConditionFrozen)).Should(Equal("True/All"))
		before := theWorld.fleet.LastWrite()
		create(ctx, newClaim("under-all", m))
		create(ctx, newClaim("under-destructive", n))
		Eventually(claimCondition(ctx, "under-destructive", "Ready")).Should(Equal("True/Running"))
		Eventually(serverCondition(ctx, serverOf(m), v1alpha1.ConditionWithheld)).Should(Equal("True/Frozen"))
		Eventually(claimCondition(ctx, "under-all", "Bound")).Should(Equal("False/Reserving"))
		Expect(touched(m, before)()).To(BeEmpty())
		Eventually(eventReasons(ctx, "under-destructive")).Should(ContainElement(v1alpha1.ReasonBound))
		Expect(eventReasons(ctx, "under-all")()).NotTo(ContainElement(v1alpha1.ReasonBound))
		recontrol(ctx, thawed)
		Eventually(claimCondition(ctx, "under-all", "Ready")).Should(Equal("True/Running"))
		Eventually(eventReasons(ctx, "under-all")).Should(ContainElement(v1alpha1.ReasonBound))
		Eventually(eventReasons(ctx, serverOf(m))).Should(ContainElement(v1alpha1.ReasonBound))
	})

	It("ends by itself", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		until := metav1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second))
		ends := func(s *policyv1alpha1.FleetControlSpec) {
			frozen(policyv1alpha1.FreezeAll, m)(s)
			s.Freezes[0].Until = &until
		}
		control(ctx, ends)
		create(ctx, newClaim("until", m))
		Eventually(serverCondition(ctx, serverOf(m), v1alpha1.ConditionWithheld)).Should(Equal("True/Frozen"))
		until = metav1.NewTime(time.Now().Add(3 * time.Second).Truncate(time.Second))
		recontrol(ctx, ends)
		Eventually(claimCondition(ctx, "until", "Ready")).Should(Equal("True/Running"))
		Expect(time.Now()).To(BeTemporally(">=", until.Time))
		Eventually(controlCondition(ctx, policyv1alpha1.ConditionFrozen)).Should(Equal("False/NotFrozen"))
	})

	It("does not let an agent begin a disk while frozen, and lets it go on afterwards", func(ctx SpecContext) {
		m := theWorld.machine(ctx, func(s *emulator.MachineSpec) {
			for i := range metalprobe.DefaultParallel + 1 { // the last waits for another to end
				s.Drives = append(s.Drives, emulator.DriveSpec{Name: fmt.Sprintf("nvme%dn1", i), SizeBytes: 1e9})
			}
			s.Delays = emulator.Delays{Erase: 5 * time.Second} // the freeze has to be in force before it ends
		})
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		create(ctx, newClaim("frozen-wipe", m))
		Eventually(claimCondition(ctx, "frozen-wipe", "Ready")).Should(Equal("True/Running"))
		last := m.Drives()[metalprobe.DefaultParallel]
		last.Write("the tenant's last disk")
		deleteClaim(ctx, "frozen-wipe")
		Eventually(theWorld.begunToErase(m, "nvme0n1")).Should(BeTrue())
		control(ctx, frozen(policyv1alpha1.FreezeDestructive, m))
		Eventually(m.Drives()[0].Contents).Should(BeEmpty(), "a disk under erase is erased to its end")
		Consistently(last.Contents, 4*time.Second).Should(Equal("the tenant's last disk"))
		recontrol(ctx, thawed)
		Eventually(state(ctx, name)).WithTimeout(time.Minute).Should(Equal("Available/Off"))
		Expect(last.Contents()).To(BeEmpty())
	})
})

var _ = Describe("Safety rule 8: budgets", func() {
	It("lets no more machines be wiped at a time than the budget allows, and all in the end", func(ctx SpecContext) {
		var machines []*emulator.Machine
		for range 3 {
			m := theWorld.machine(ctx, func(s *emulator.MachineSpec) { s.Delays = emulator.Delays{Erase: 500 * time.Millisecond} })
			Eventually(state(ctx, serverOf(m))).Should(Equal("Available/Off"))
			create(ctx, newClaim("budget-"+m.Name(), m))
			machines = append(machines, m)
		}
		for _, m := range machines {
			Eventually(claimCondition(ctx, "budget-"+m.Name(), "Ready")).Should(Equal("True/Running"))
		}
		control(ctx, func(s *policyv1alpha1.FleetControlSpec) {
			s.Budgets = []policyv1alpha1.Budget{{Name: "one-wipe", Action: policyv1alpha1.ActionWipe, Max: ptr.To[int32](1), Selector: only(machines...)}}
		})
		before := theWorld.fleet.LastWrite()
		for _, m := range machines {
			deleteClaim(ctx, "budget-"+m.Name())
		}
		most, waited := 0, false
		Eventually(func() int {
			wiping, done := 0, 0
			for _, m := range machines {
				s := getServer(ctx, serverOf(m))
				if l := s.Status.Lifecycle; l.Credential != nil && l.Credential.Purpose == v1alpha1.ProbePurposeWipe {
					wiping++
				}
				waited = waited || conditionText(s.Status.Conditions, v1alpha1.ConditionWithheld) == "True/BudgetExhausted"
				if s.Status.State == v1alpha1.StateAvailable {
					done++
				}
			}
			most = max(most, wiping)
			return done
		}).WithTimeout(90 * time.Second).Should(Equal(3))
		Expect(most).To(Equal(1))
		Expect(waited).To(BeTrue(), "a machine that waits says so")
		for _, m := range machines {
			Expect(m.Drives()[0].Contents()).To(BeEmpty())
			Expect(powerOns(m, before)).To(Equal(1))
		}
	}, NodeTimeout(3*time.Minute))
})

// powerOns counts how often a BMC was asked to switch its machine on since a mark.
func powerOns(m *emulator.Machine, since int) int {
	count := 0
	for _, w := range touched(m, since)() {
		if strings.Contains(w, `"On"`) {
			count++
		}
	}
	return count
}

var _ = Describe("Safety rule 8: breaker", func() {
	It("freezes the fleet by itself when too many servers fail, until somebody acknowledges it", func(ctx SpecContext) {
		m, n, bystander := claimed(ctx, "trips"), claimed(ctx, "trips-too"), claimed(ctx, "bystander")
		earlier := metav1.NowMicro() // what other specs parked does not count
		control(ctx, func(s *policyv1alpha1.FleetControlSpec) {
			s.Breaker = &policyv1alpha1.Breaker{MaxPercent: 1, MinServers: ptr.To[int32](2), States: []string{"Parked"}, AcknowledgedAt: &earlier}
		})
		operate(ctx, serverOf(m), v1alpha1.OperationPark)
		Eventually(state(ctx, serverOf(m))).Should(Equal("Parked/Off"))
		operate(ctx, serverOf(n), v1alpha1.OperationPark)
		Eventually(state(ctx, serverOf(n))).Should(HavePrefix("Parked"))
		Eventually(controlCondition(ctx, policyv1alpha1.ConditionBreakerTripped)).Should(Equal("True/Tripped"))
		before := theWorld.fleet.LastWrite()
		deleteClaim(ctx, "bystander")
		Eventually(serverCondition(ctx, serverOf(bystander), v1alpha1.ConditionWithheld)).Should(Equal("True/BreakerTripped"))
		Consistently(touched(bystander, before)).Should(BeEmpty())

		By("acknowledging it")
		now := metav1.NowMicro()
		recontrol(ctx, func(s *policyv1alpha1.FleetControlSpec) { s.Breaker.AcknowledgedAt = &now })
		Eventually(state(ctx, serverOf(bystander))).Should(Equal("Available/Off"))
		Expect(controlCondition(ctx, policyv1alpha1.ConditionBreakerTripped)()).To(Equal("False/Closed"))
	})
})

// force asks for a server to be forced into a state.
func force(ctx context.Context, server string, to v1alpha1.ServerState, override bool) {
	GinkgoHelper()
	changeServer(ctx, server, func(s *v1alpha1.Server) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationAnnotation, v1alpha1.OperationForce)
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ForceToAnnotation, string(to))
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationReasonAnnotation, "a spec")
		if override {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ForceOverrideAnnotation, "true")
		}
	})
	Eventually(func() map[string]string { return getServer(ctx, server).Annotations }).ShouldNot(HaveKey(v1alpha1.OperationAnnotation))
}

var _ = Describe("A server forced into a state", func() {
	It("goes there past the rules of the policy, and the move says who and why", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		name := serverOf(m)
		force(ctx, name, v1alpha1.StateError, false)
		Eventually(state(ctx, name)).Should(Equal("Error/Off"))
		history := getServer(ctx, name).Status.Lifecycle.History
		last := history[len(history)-1]
		Expect(last.Rule).To(Equal(v1alpha1.RuleForced))
		Expect(last.Reason).To(Equal("a spec"))
		Expect(last.Overrides).To(BeEmpty())
		operate(ctx, name, v1alpha1.OperationRetry)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
	})

	It("is not wiped while claimed, nor offered while Dirty, unless that is asked for as well, and then it is recorded", func(ctx SpecContext) {
		m := claimed(ctx, "not-forced")
		name := serverOf(m)
		before := theWorld.fleet.LastWrite()
		for _, to := range []v1alpha1.ServerState{v1alpha1.StateCleanup, v1alpha1.StateAvailable} {
			force(ctx, name, to, false)
			Consistently(state(ctx, name)).Should(Equal("Reserved/On"))
		}
		Expect(eventReasons(ctx, name)()).To(ContainElement("OperationRefused"))
		Expect(touched(m, before)()).To(BeEmpty())
		Expect(m.Drives()[0].Contents()).NotTo(BeEmpty())

		By("asking for it while it runs")
		force(ctx, name, v1alpha1.StateCleanup, true)
		Consistently(state(ctx, name)).Should(Equal("Reserved/On"))

		By("asking for it once it is off")
		changeClaim(ctx, "not-forced", func(c *v1alpha1.ServerClaim) { c.Spec.Power = v1alpha1.PowerOff })
		Eventually(state(ctx, name)).Should(Equal("Reserved/Off"))
		force(ctx, name, v1alpha1.StateCleanup, true)
		Eventually(func() []string {
			if op := getServer(ctx, name).Status.Operation; op != nil {
				return op.Overrides
			}
			return nil
		}).Should(ConsistOf("AbsenceIsNotEvidence", "NeverWipeClaimed"))
		Eventually(m.Drives()[0].Contents).Should(BeEmpty())
		Eventually(func() []string { // the claim, which still names the server, may have got it again since
			var rules []string
			for _, move := range getServer(ctx, name).Status.Lifecycle.History {
				rules = append(rules, move.Rule)
			}
			return rules
		}).Should(ContainElements(v1alpha1.RuleForced, "Wiped"))
	})
})
