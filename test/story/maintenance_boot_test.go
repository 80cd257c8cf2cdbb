// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// served is the condition Served of a maintenance, as "status/reason".
func served(ctx context.Context, m *v1alpha1.ServerMaintenance) func() string {
	return func() string {
		now := &v1alpha1.ServerMaintenance{}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(m), now)).To(Succeed())
		return conditionText(now.Status.Conditions, v1alpha1.ConditionServed)
	}
}

// resetsSince lists what was asked of a machine's power after the first so many requests.
func resetsSince(m *emulator.Machine, former int) func() []emulator.ResetType {
	return func() []emulator.ResetType { return m.Resets()[former:] }
}

// isServed is what a maintenance is told whose machine is as it asks.
const isServed = "True/" + v1alpha1.ReasonServed

var _ = Describe("The machine of a maintenance", func() {
	It("has power and light as that asks, also when it asks anew, and is inspected before it is offered again", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		name := serverOf(m)
		before := theWorld.fleet.LastWrite()
		one := create(ctx, repair("powers", m, power(v1alpha1.PowerOn), func(m *v1alpha1.ServerMaintenance) {
			m.Spec.LocatorLED = v1alpha1.IndicatorLEDBlinking
		}))
		Eventually(state(ctx, name)).Should(Equal("Maintenance/On"))
		Eventually(m.LED).Should(Equal("Blinking"))
		Eventually(served(ctx, one)).Should(Equal(isServed))
		for _, wanted := range []v1alpha1.Power{v1alpha1.PowerOff, v1alpha1.PowerOn, v1alpha1.PowerOff} {
			changeMaintenance(ctx, one, power(wanted))
			Eventually(m.Power).WithTimeout(soon).Should(Equal(emulator.PowerState(wanted)))
			Eventually(state(ctx, name)).Should(Equal("Maintenance/" + string(wanted)))
		}
		Expect(powerOns(m, before)).To(Equal(2), "it was asked for twice")

		By("ending it")
		before = theWorld.fleet.LastWrite()
		finish(ctx, one)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		Eventually(m.LED).Should(Equal("Off"))
		Expect(moves(getServer(ctx, name))).To(HaveSuffixOf("Returned Initial", "ProbeDue Discovery", "ProbeReported Available"))
		Expect(powerOns(m, before)).To(Equal(1), "for its inspection")
		Eventually(traces(ctx, name, one.Name, "")).Should(BeEmpty())
	})

	It("goes back to its claim, which has it on", func(ctx SpecContext) {
		m := claimed(ctx, "handed-back")
		name := serverOf(m)
		before, resets, data := theWorld.fleet.LastWrite(), len(m.Resets()), m.Drives()[0].Contents()
		one := create(ctx, repair("handed-back", m, power(v1alpha1.PowerOff)))
		Eventually(answered(ctx, one)).Should(Equal(waitsForApproval))
		approve(ctx, "handed-back")
		Eventually(state(ctx, name)).Should(Equal("Maintenance/Off"))
		Expect(resetsSince(m, resets)()).To(Equal([]emulator.ResetType{emulator.ResetGracefulShutdown}))
		Consistently(m.Power).Should(Equal(emulator.PowerOff), "though its claim has it on")
		finish(ctx, one)
		Eventually(state(ctx, name)).Should(Equal("Reserved/On"))
		Eventually(claimCondition(ctx, "handed-back", "Ready")).Should(Equal("True/Running"))
		Expect(powerOns(m, before)).To(Equal(1))
		Expect(m.Drives()[0].Contents()).To(Equal(data))
		Expect(getServer(ctx, name).Status.Lifecycle.Marks).To(ContainElement("Dirty"))
	})

	It("boots what that says from a boot configuration of its name, and is shut down, not cut off, at the end", func(ctx SpecContext) {
		history := record(ctx)
		m := theWorld.available(ctx)
		name := serverOf(m)
		before := theWorld.fleet.LastWrite()
		one := create(ctx, repair("boots", m, booting(tools, "")))
		Eventually(theWorld.bootedBy(m)).Should(ContainElement("Live " + tools))
		Eventually(served(ctx, one)).Should(Equal(isServed))
		b := getBoot(ctx, tenants, "boots")
		Expect(metav1.IsControlledBy(b, one)).To(BeTrue())
		Expect(b.Spec).To(And(HaveField("Image", tools), HaveField("ServerRef.Name", name)))
		Expect(getServer(ctx, name).Spec.MaintenanceBootConfigurationRef).
			To(HaveValue(Equal(v1alpha1.ObjectReference{Namespace: tenants, Name: "boots"})))
		ready := first(history(), func(s seen) bool {
			return s.boot != nil && s.boot.Name == "boots" && s.boot.Status.State == v1alpha1.ServerBootConfigurationStateReady
		})
		asked := first(history(), func(s seen) bool {
			return s.server != nil && s.server.Name == name && s.server.Status.State == v1alpha1.StateMaintenance &&
				s.server.Status.Lifecycle.Request != nil && s.server.Status.Lifecycle.Request.Action == v1alpha1.PowerActionOn
		})
		Expect(ready).To(And(BeNumerically(">", 0), BeNumerically("<", asked)))
		Expect(powerOns(m, before)).To(Equal(1))

		By("ending it while its operating system does not shut down")
		resets := len(m.Resets())
		m.IgnoreShutdown(true)
		Expect(admin.Delete(ctx, one)).To(Succeed())
		Eventually(resetsSince(m, resets)).Should(ContainElement(emulator.ResetGracefulShutdown))
		Consistently(state(ctx, name)).WithTimeout(patience).Should(Equal("Maintenance/On"))
		Expect(resetsSince(m, resets)()).NotTo(ContainElement(emulator.ResetForceOff))

		By("its operating system shutting down at last")
		m.OSPowerOff()
		Eventually(answered(ctx, one)).Should(Equal("gone"))
		Expect(resetsSince(m, resets)()).To(HavePrefixOf(emulator.ResetGracefulShutdown))
		Eventually(traces(ctx, name, one.Name, "")).Should(BeEmpty())
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
	})

	It("that was just asked to come on is shut down all the same, and not cut off, when that is deleted", func(ctx SpecContext) {
		m := theWorld.machine(ctx, func(s *emulator.MachineSpec) { s.Delays = emulator.Delays{Power: time.Second, Shutdown: -1} })
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		before, resets := theWorld.fleet.LastWrite(), len(m.Resets())
		one := create(ctx, repair("comes-on", m, booting(tools, "")))
		Eventually(func() int { return powerOns(m, before) }).Should(Equal(1))
		Expect(admin.Delete(ctx, one)).To(Succeed())
		Eventually(answered(ctx, one)).Should(Equal("gone"))
		Expect(resetsSince(m, resets)()).To(HavePrefixOf(emulator.ResetOn, emulator.ResetGracefulShutdown))
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
	})

	It("is not switched on for a boot that the boot operator cannot prepare, and the maintenance fails", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		before := theWorld.fleet.LastWrite()
		one := create(ctx, repair("unprepared", m, booting(tools, "nowhere")))
		Eventually(answered(ctx, one)).Should(HavePrefix("Failed "))
		Expect(served(ctx, one)()).To(Equal("False/" + v1alpha1.ReasonBootFailed))
		Expect(powerOns(m, before)).To(BeZero())
		finish(ctx, one)
		Eventually(traces(ctx, serverOf(m), one.Name, "")).Should(BeEmpty())
		Eventually(state(ctx, serverOf(m))).Should(Equal("Available/Off"))
	})

	It("boots from no boot configuration that somebody else made under its name, and leaves that one as it is", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		before := theWorld.fleet.LastWrite()
		theirs := &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: "theirs-too"}}
		theirs.Spec.ServerRef.Name, theirs.Spec.Image = "another-server", "theirs:1"
		create(ctx, theirs)
		one := create(ctx, repair("theirs-too", m, booting(tools, "")))
		Eventually(answered(ctx, one)).Should(HavePrefix("Failed "))
		Consistently(func() any { return getBoot(ctx, tenants, "theirs-too").Spec }).Should(Equal(theirs.Spec))
		Expect(powerOns(m, before)).To(BeZero())
		finish(ctx, one)
		Expect(getBoot(ctx, tenants, "theirs-too")).To(And(HaveField("UID", theirs.UID), HaveField("Spec", theirs.Spec)))
		Expect(admin.Delete(ctx, theirs)).To(Succeed())
		Eventually(traces(ctx, serverOf(m), one.Name, "")).Should(BeEmpty())
		Eventually(state(ctx, serverOf(m))).Should(Equal("Available/Off"))
	})
})

var _ = Describe("A server that names a maintenance", func() {
	It("of another program stays with it, and one whose maintenance was removed by force is taken back", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		name := serverOf(m)
		before := theWorld.fleet.LastWrite()
		changeServer(ctx, name, func(s *v1alpha1.Server) {
			s.Spec.ServerMaintenanceRef = &v1alpha1.ObjectReference{Namespace: tenants, Name: "of-nobody-here"}
		})
		Eventually(state(ctx, name)).Should(Equal("Maintenance/Off"))
		one := create(ctx, repair("behind-theirs", m, power(v1alpha1.PowerOn)))
		Eventually(answered(ctx, one)).Should(Equal(serverHeld))
		theWorld.stopManager()
		theWorld.startManager(ctx)
		Consistently(holder(ctx, name)).WithTimeout(patience).Should(Equal("of-nobody-here"))
		Expect(answered(ctx, one)()).To(Equal(serverHeld))
		Expect(touched(m, before)()).To(BeEmpty())

		By("the other program being done")
		changeServer(ctx, name, func(s *v1alpha1.Server) { s.Spec.ServerMaintenanceRef = nil })
		Eventually(answered(ctx, one)).Should(Equal(inMaintenance))
		Eventually(state(ctx, name)).Should(Equal("Maintenance/On"))

		By("removing the maintenance by force")
		theWorld.stopManager()
		changeMaintenance(ctx, one, func(m *v1alpha1.ServerMaintenance) { m.Finalizers = nil })
		Expect(admin.Delete(ctx, one)).To(Succeed())
		Expect(holder(ctx, name)()).To(Equal("behind-theirs"))
		theWorld.startManager(ctx)
		Eventually(traces(ctx, name, one.Name, "")).Should(BeEmpty())
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
	})

	It("is given back when that is aborted, and the maintenance stays and says so", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		one := create(ctx, repair("aborted", m, booting(tools, "")))
		Eventually(served(ctx, one)).Should(Equal(isServed))
		resets := len(m.Resets())
		changeMaintenance(ctx, one, func(m *v1alpha1.ServerMaintenance) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AbortAnnotation, "the wrong server")
		})
		Eventually(answered(ctx, one)).Should(Equal("Failed False/" + v1alpha1.ReasonAborted))
		Expect(resetsSince(m, resets)()).To(HavePrefixOf(emulator.ResetGracefulShutdown))
		Eventually(state(ctx, serverOf(m))).Should(Equal("Available/Off"))
		Expect(holder(ctx, serverOf(m))()).To(BeEmpty())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(one), one)).To(Succeed())
		Expect(meta.FindStatusCondition(one.Status.Conditions, v1alpha1.ConditionGranted).Message).To(ContainSubstring("the wrong server"))
		finish(ctx, one)
		Eventually(traces(ctx, serverOf(m), one.Name, "")).Should(BeEmpty())
	})
})

// HaveSuffixOf matches a list of texts that ends with these.
func HaveSuffixOf(last ...string) OmegaMatcher {
	return WithTransform(func(all []string) []string { return all[max(0, len(all)-len(last)):] }, Equal(last))
}

// HavePrefixOf matches a list that begins with these.
func HavePrefixOf[T any](first ...T) OmegaMatcher {
	return WithTransform(func(all []T) []T { return all[:min(len(all), len(first))] }, Equal(first))
}
