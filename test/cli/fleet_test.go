// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

var _ = Describe("Freezes, the breaker and the status of the fleet", func() {
	fleet := func(ctx SpecContext) *policyv1alpha1.FleetControl {
		GinkgoHelper()
		c := &policyv1alpha1.FleetControl{}
		Expect(admin.Get(ctx, types.NamespacedName{Name: "fleet"}, c)).To(Succeed())
		return c
	}
	names := func(ctx SpecContext) []string {
		GinkgoHelper()
		all := []string{}
		for _, f := range fleet(ctx).Spec.Freezes {
			all = append(all, f.Name)
		}
		return all
	}
	// Each spec begins without a FleetControl, or with what it has stored by control.
	control := func(ctx SpecContext, spec policyv1alpha1.FleetControlSpec) {
		GinkgoHelper()
		Expect(admin.Create(ctx, &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}, Spec: spec})).To(Succeed())
	}
	BeforeEach(func(ctx SpecContext) {
		Expect(controlPlane.RemoveWebhooks(ctx)).To(Succeed())
		Expect(client.IgnoreNotFound(admin.Delete(ctx, &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}}))).To(Succeed())
	})
	// frozen is a server that a freeze covers.
	frozen := func(ctx SpecContext) *v1alpha1.Server {
		GinkgoHelper()
		s := newServer(ctx, "frozen", map[string]string{"rack": "frozen"}, v1alpha1.StateAvailable)
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, s)).To(Succeed()) })
		return s
	}
	upgrade := policyv1alpha1.Freeze{Name: "switch-upgrade-rack-1", Level: policyv1alpha1.FreezeDestructive, By: "olga",
		Reason: "Switch upgrade, rack 1", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "frozen"}}}
	incident := policyv1alpha1.Freeze{Name: "inc-7", Level: policyv1alpha1.FreezeAll, By: "olga", Reason: "wrong bundle"}
	wipes := policyv1alpha1.Budget{Name: "wipes", Action: policyv1alpha1.ActionWipe, Max: new(int32(2))}

	It("say that nothing is held back where there is no FleetControl", func(ctx SpecContext) {
		got := viewer.says(ctx, "fleet", "status")
		Expect(got.code).To(BeZero())
		Expect(got.out).To(HavePrefix("Freezes:   none\n\nBudgets:   none\n\nBreaker:   none\n\nWithheld:  from no server\n"))
		Expect(operator.says(ctx, "unfreeze", "--all")).To(Equal(said{out: "lifted nothing: nothing was held back that way\n"}))
		Expect(admin.Get(ctx, types.NamespacedName{Name: "fleet"}, &policyv1alpha1.FleetControl{})).NotTo(Succeed(), "it is not made by looking")
	})

	It("freeze some servers for a while, in the name of whoever asks", func(ctx SpecContext) {
		frozen(ctx)
		got := operator.says(ctx, "freeze", "-l", "rack=frozen", "--for", "2h", "--reason", "Switch upgrade, rack 1", "--timeout", "0")
		Expect(got.code).To(BeZero(), got.err)
		Expect(got.out).To(And(HavePrefix(`freeze "switch-upgrade-rack-1" (Destructive) by olga: Switch upgrade, rack 1, until `),
			ContainSubstring("; it covers 1 of ")))
		f := fleet(ctx).Spec.Freezes[0]
		Expect(f.Until.Time).To(BeTemporally("~", time.Now().Add(2*time.Hour), time.Minute))
		f.Until = nil
		Expect(f).To(Equal(upgrade))
		Expect(fleet(ctx).ManagedFields).To(ContainElement(HaveField("Manager", "metalaw-cli")))
	})

	It("wait for the manager to acknowledge a freeze, and say where it does not", func(ctx SpecContext) {
		got := operator.says(ctx, "freeze", "--name", "alone", "--reason", "no manager runs", "--timeout", "1s")
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(HavePrefix(`freeze "alone" (Destructive) by olga: no manager runs; it covers `))
		Expect(got.err).To(HavePrefix("metalaw: the freeze is stored, but no manager has acknowledged it yet"))
		Expect(names(ctx)).To(Equal([]string{"alone"}))
		Expect(viewer.says(ctx, "fleet", "status").out).To(HavePrefix("Not acknowledged: "))

		c := fleet(ctx)
		before := c.DeepCopy()
		c.Status.ObservedGeneration = c.Generation + 1
		Expect(admin.Status().Patch(ctx, c, client.MergeFrom(before))).To(Succeed())
		got = operator.says(ctx, "freeze", "--name", "seen", "--reason", "a manager runs")
		Expect(got.code).To(BeZero(), got.err)
		Expect(got.out).To(HaveSuffix("; the manager has acknowledged it\n"))
		Expect(viewer.says(ctx, "fleet", "status").out).To(HavePrefix("Freezes:"))
	})

	It("freeze the fleet besides, and never twice under one name", func(ctx SpecContext) {
		control(ctx, policyv1alpha1.FleetControlSpec{Freezes: []policyv1alpha1.Freeze{upgrade}})
		Expect(operator.says(ctx, "freeze", "--level", "All", "--reason", "wrong bundle", "--name", "inc-7", "--timeout", "0", "-o", "json").out).To(MatchJSON(
			`{"name":"inc-7","level":"All","reason":"wrong bundle","by":"olga","acknowledged":false,"inFlight":[]}`))
		got := operator.says(ctx, "freeze", "--reason", "again", "--name", "inc-7")
		Expect(got.code).To(Equal(1))
		Expect(got.err).To(ContainSubstring(`freeze "inc-7" (All) by olga: wrong bundle stands already`))
		Expect(names(ctx)).To(Equal([]string{"switch-upgrade-rack-1", "inc-7"}))
	})

	It("show what is held back, how far budgets are used, and from whom something is withheld", func(ctx SpecContext) {
		control(ctx, policyv1alpha1.FleetControlSpec{Freezes: []policyv1alpha1.Freeze{upgrade, incident}, Budgets: []policyv1alpha1.Budget{wipes}})
		s := frozen(ctx)
		was := s.DeepCopy()
		s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionWithheld, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonFrozen,
			Message: "freeze inc-7", LastTransitionTime: metav1.Now()}}
		Expect(admin.Status().Patch(ctx, s, client.MergeFrom(was))).To(Succeed())

		got := viewer.says(ctx, "fleet", "status", "-o", "json")
		Expect(got.code).To(BeZero(), got.err)
		var status struct {
			Freezes []struct{ Name, Level, By string }
			Budgets []struct {
				Name      string
				Used, Max int
			}
			Withheld []struct{ Name, Reason, Message string }
		}
		Expect(json.Unmarshal([]byte(got.out), &status)).To(Succeed())
		Expect(status.Freezes).To(HaveLen(2))
		Expect(status.Budgets).To(ConsistOf(HaveField("Max", 2)))
		Expect(status.Withheld).To(ConsistOf(And(HaveField("Name", "frozen"), HaveField("Reason", "Frozen"), HaveField("Message", "freeze inc-7"))))
		Expect(viewer.says(ctx, "fleet", "status").out).To(MatchRegexp(`(?m)^  frozen +Available +Frozen +\d+s +freeze inc-7$`))
	})

	It("lift by name, and complete the names", func(ctx SpecContext) {
		control(ctx, policyv1alpha1.FleetControlSpec{Freezes: []policyv1alpha1.Freeze{upgrade, incident}})
		Expect(viewer.says(ctx, "__complete", "unfreeze", "--name", "in").out).To(HavePrefix("inc-7\twrong bundle\n"))
		Expect(operator.says(ctx, "unfreeze", "--name", "inc-8").err).To(Equal(
			"metalaw: there is no freeze \"inc-8\"; there are: switch-upgrade-rack-1, inc-7\n"))
		Expect(operator.says(ctx, "unfreeze", "--name", "inc-7").out).To(Equal("lifted freeze \"inc-7\" (All) by olga: wrong bundle\n"))
		Expect(names(ctx)).To(Equal([]string{"switch-upgrade-rack-1"}))
	})

	It("lift all only for whoever has seen which, and no other", func(ctx SpecContext) {
		control(ctx, policyv1alpha1.FleetControlSpec{Freezes: []policyv1alpha1.Freeze{upgrade}, Budgets: []policyv1alpha1.Budget{wipes}})
		Expect(operator.says(ctx, "unfreeze", "--all")).To(Equal(said{code: 2, err: "metalaw: unfreeze of 1 freeze needs a confirmation, " +
			"and no user is at this terminal to give it: add --yes, or look with metalaw fleet status\n"}))
		Expect(names(ctx)).To(Equal([]string{"switch-upgrade-rack-1"}))

		person := operator.talks(ctx, "unfreeze", "--all")
		person.awaits("unfreeze: 1 freeze? [y/N] ")
		Expect(person.heard()).To(MatchRegexp(`(?s)NAME +LEVEL +BY +REASON\s+switch-upgrade-rack-1 +Destructive +olga +Switch upgrade, rack 1\s`))
		person.answers("n")
		Expect(person.ends()).To(Equal(1))
		Expect(person.heard()).To(ContainSubstring("nothing was changed"))
		Expect(names(ctx)).To(Equal([]string{"switch-upgrade-rack-1"}))

		By("a freeze that somebody adds while the question stands")
		person = operator.talks(ctx, "unfreeze", "--all")
		person.awaits("unfreeze: 1 freeze? [y/N] ")
		Expect(operator.says(ctx, "freeze", "--reason", "meanwhile", "--timeout", "0").code).To(BeZero())
		person.answers("y")
		Expect(person.ends()).To(Equal(1))
		Expect(person.heard()).To(And(ContainSubstring("lifted freeze \"switch-upgrade-rack-1\" (Destructive) by olga"),
			ContainSubstring("added or changed meanwhile and stay; look at them again: freeze \"meanwhile\" (Destructive) by olga")))
		Expect(names(ctx)).To(Equal([]string{"meanwhile"}))

		Expect(operator.says(ctx, "unfreeze", "--all", "--yes")).To(Equal(said{out: "lifted freeze \"meanwhile\" (Destructive) by olga: meanwhile\n"}))
		Expect(names(ctx)).To(BeEmpty())
		Expect(fleet(ctx).Spec.Budgets).To(HaveLen(1), "the rest stays")
	})

	It("close the breaker", func(ctx SpecContext) {
		control(ctx, policyv1alpha1.FleetControlSpec{Breaker: &policyv1alpha1.Breaker{MaxPercent: 10}})
		Expect(operator.says(ctx, "unfreeze", "--breaker").out).To(Equal("lifted nothing: nothing was held back that way\n"))
		c := fleet(ctx)
		before := c.DeepCopy()
		c.Status.Trip = &policyv1alpha1.BreakerTrip{At: metav1.NewMicroTime(time.Now().Add(time.Minute)), Servers: 6, Of: 40}
		Expect(admin.Status().Patch(ctx, c, client.MergeFrom(before))).To(Succeed())
		Expect(viewer.says(ctx, "fleet", "status").out).To(ContainSubstring("Breaker:   tripped at "))
		got := operator.says(ctx, "unfreeze", "--breaker")
		Expect(got.code).To(BeZero(), got.err)
		Expect(got.out).To(HaveSuffix("over 6 of 40 servers\n"))
		Expect(viewer.says(ctx, "fleet", "status").out).To(ContainSubstring("Breaker:   closed; it trips when more than 10%"))
	})

	It("lose none of many freezes that come at once", func(ctx SpecContext) {
		done := make(chan said, 4)
		for range cap(done) {
			go func() {
				defer GinkgoRecover()
				done <- operator.says(ctx, "freeze", "--reason", "at once", "--timeout", "0")
			}()
		}
		for range cap(done) {
			got := <-done
			Expect(got.code).To(BeZero(), got.err)
		}
		Expect(names(ctx)).To(ConsistOf("at-once", "at-once-2", "at-once-3", "at-once-4"))
	})

	It("explain which right is missing", func(ctx SpecContext) {
		Expect(viewer.says(ctx, "freeze", "--reason", "r").err).To(ContainSubstring(`it takes the verb "create" on fleetcontrols.policy.metalaw.dev; `))
		control(ctx, policyv1alpha1.FleetControlSpec{})
		got := viewer.says(ctx, "freeze", "--reason", "r")
		Expect(got.code).To(Equal(1))
		Expect(strings.TrimSpace(got.err)).To(HaveSuffix(
			`it takes the verb "patch" on fleetcontrols.policy.metalaw.dev; the ClusterRole metalaw-fleet-operator has it`))
		Expect(nobody.says(ctx, "fleet", "status").err).To(ContainSubstring("the ClusterRole metalaw-fleet-viewer has it"))
	})
})
