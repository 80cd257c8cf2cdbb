// SPDX-License-Identifier: Apache-2.0

package story

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

var _ = Describe("Safety rule 4: never change what a running machine boots", func() {
	It("carries a new image into the boot configuration and leaves the running machine alone", func(ctx SpecContext) {
		m := claimed(ctx, "new-image")
		before := theWorld.fleet.LastWrite()
		changeClaim(ctx, "new-image", func(c *v1alpha1.ServerClaim) { c.Spec.Image = "os:2" })
		Eventually(func() string { return getBoot(ctx, tenants, "new-image").Spec.Image }).Should(Equal("os:2"))
		Consistently(touched(m, before)).Should(BeEmpty())

		By("letting the workload reboot by itself")
		m.OSReboot()
		Eventually(running(m)).Should(Equal("Hdd"))
	})

	It("asserts the override while off, right before power-on, and clears one that outlives its boot", func(ctx SpecContext) {
		m := theWorld.machine(ctx, func(s *emulator.MachineSpec) { s.Tweak = func(p *emulator.Profile) { p.OverrideNeverClears = true } })
		Eventually(state(ctx, serverOf(m))).Should(Equal("Available/Off"))
		create(ctx, newClaim("sticky", m))
		Eventually(claimCondition(ctx, "sticky", "Ready")).Should(Equal("True/Running"))
		Eventually(func() string { enabled, _ := m.Override(); return enabled }).Should(Equal("Disabled"))
		for _, w := range theWorld.fleet.Writes(emulator.Filter{Machine: m.Name(), Method: "PATCH"}) {
			if strings.Contains(w.Body, `"Once"`) {
				Expect(w.Power).To(Equal(emulator.PowerOff), "%+v", w)
			}
		}
	})
})

var _ = Describe("Safety rule 5: a machine found running is not ours to stop", func() {
	It("observes it, also after a power cycle of its own, until somebody consents", func(ctx SpecContext) {
		before := theWorld.fleet.LastWrite()
		m := theWorld.machine(ctx, func(s *emulator.MachineSpec) { s.Power = emulator.PowerOn })
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(Equal("Observing/On"))
		changeServer(ctx, name, func(s *v1alpha1.Server) { s.Spec.IndicatorLED = v1alpha1.IndicatorLEDLit })
		m.PowerBehindBack(false)
		Eventually(state(ctx, name)).Should(Equal("Observing/Off"))
		m.PowerBehindBack(true)
		Eventually(state(ctx, name)).Should(Equal("Observing/On"))
		Expect(touched(m, before)()).To(BeEmpty())

		By("consenting")
		changeServer(ctx, name, func(s *v1alpha1.Server) {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ConsentAnnotation, v1alpha1.ConsentTakeOver)
		})
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		Expect(getServer(ctx, name).Annotations).NotTo(HaveKey(v1alpha1.ConsentAnnotation), "it is used up")
	})

	It("takes a reference that no claim agrees with for no consent, nor that the reference goes again", func(ctx SpecContext) {
		before := theWorld.fleet.LastWrite()
		m := theWorld.machine(ctx, func(s *emulator.MachineSpec) { s.Power = emulator.PowerOn })
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(Equal("Observing/On"))
		changeServer(ctx, name, func(s *v1alpha1.Server) {
			s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: tenants, Name: "nobody-made-this"}
		})
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionClaimMissing)).Should(Equal("True/ClaimNotFound"))
		Consistently(state(ctx, name)).Should(Equal("Observing/On"))
		changeServer(ctx, name, func(s *v1alpha1.Server) { s.Spec.ServerClaimRef = nil })
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionClaimMissing)).Should(Equal("none"))
		Consistently(state(ctx, name)).Should(Equal("Observing/On"))
		Expect(getServer(ctx, name).Status.Lifecycle.Marks).To(Equal([]string{"Stranger"}))
		Expect(touched(m, before)()).To(BeEmpty())
	})

	It("makes a machine ours with the record of our own power-on, and not before", func(ctx SpecContext) {
		history := record(ctx)
		m := theWorld.available(ctx)
		mine := func(s seen) bool {
			return s.server != nil && s.server.Name == serverOf(m) && s.server.Status.Lifecycle != nil
		}
		inspected := first(history(), func(s seen) bool { return mine(s) && s.server.Status.State == v1alpha1.StateDiscovery })
		asked := first(history(), func(s seen) bool { return mine(s) && s.server.Status.Lifecycle.Request != nil })
		managed := first(history(), func(s seen) bool { return mine(s) && slices.Contains(s.server.Status.Lifecycle.Marks, "Managed") })
		Expect(inspected).To(And(BeNumerically(">", 0), BeNumerically("<", managed)))
		Expect(managed).To(Equal(asked), "one write stores both")
	})

	It("takes a machine that runs when it is claimed for nobody's boot but ours, and boots it anew for the claim", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		name := serverOf(m)
		theWorld.stopManager()
		c := create(ctx, newClaim("found-on", m, func(c *v1alpha1.ServerClaim) {
			c.Spec.ServerSelector = nil
			c.Spec.ServerRef = &corev1.LocalObjectReference{Name: name}
		}))
		changeServer(ctx, name, func(s *v1alpha1.Server) {
			s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: tenants, Name: c.Name}
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ClaimUIDAnnotation, string(c.UID))
		})
		m.PowerBehindBack(true)
		boots, resets := m.Boots(), len(m.Resets())
		theWorld.startManager(ctx)
		Eventually(claimCondition(ctx, "found-on", "Ready")).Should(Equal("True/Running"))
		Expect(running(m)()).To(Equal("Pxe"))
		Expect(m.Boots()).To(Equal(boots + 1))
		Expect(m.Resets()[resets:]).To(Equal([]emulator.ResetType{"ForceOff", "On"}))
	})
})

var _ = Describe("Safety rule 6: hands off", func() {
	It("touches nothing while a server is parked", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		name := serverOf(m)
		operate(ctx, name, v1alpha1.OperationPark)
		Eventually(state(ctx, name)).Should(Equal("Parked/Off"))
		Eventually(func() map[string]string { return getServer(ctx, name).Annotations }).Should(HaveKey(v1alpha1.ParkedAnnotation))
		before := theWorld.fleet.LastWrite()
		m.PowerBehindBack(true)
		changeServer(ctx, name, func(s *v1alpha1.Server) { s.Spec.IndicatorLED = v1alpha1.IndicatorLEDLit })
		Eventually(state(ctx, name)).Should(Equal("Parked/On"))
		Consistently(touched(m, before)).Should(BeEmpty())

		By("unparking")
		m.PowerBehindBack(false)
		Eventually(state(ctx, name)).Should(Equal("Parked/Off"))
		operate(ctx, name, v1alpha1.OperationUnpark)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		Eventually(func() map[string]string { return getServer(ctx, name).Annotations }).ShouldNot(HaveKey(v1alpha1.ParkedAnnotation))
	})

	It("keeps a parked server parked when its status is lost", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		name := serverOf(m)
		operate(ctx, name, v1alpha1.OperationPark)
		Eventually(func() map[string]string { return getServer(ctx, name).Annotations }).Should(HaveKey(v1alpha1.ParkedAnnotation))
		before := theWorld.fleet.LastWrite()
		theWorld.stopManager()
		s := getServer(ctx, name)
		s.Status = v1alpha1.ServerStatus{}
		Expect(admin.Status().Update(ctx, s)).To(Succeed())
		theWorld.startManager(ctx)
		Eventually(state(ctx, name)).Should(Equal("Parked/Off"))
		Expect(touched(m, before)()).To(BeEmpty())
	})

	It("touches nothing while a server is ignored, not even for its claim", func(ctx SpecContext) {
		m := claimed(ctx, "ignored")
		name := serverOf(m)
		operate(ctx, name, v1alpha1.OperationIgnore)
		before := theWorld.fleet.LastWrite()
		changeClaim(ctx, "ignored", func(c *v1alpha1.ServerClaim) { c.Spec.Power = v1alpha1.PowerOff })
		Consistently(touched(m, before)).Should(BeEmpty())

		By("ending it")
		changeServer(ctx, name, func(s *v1alpha1.Server) { delete(s.Annotations, v1alpha1.OperationAnnotation) })
		Eventually(state(ctx, name)).Should(Equal("Reserved/Off"))
	})
})

var _ = Describe("Safety rule 7: identity first", func() {
	It("writes nothing to a machine that answers in another's place, and says so", func(ctx SpecContext) {
		m := claimed(ctx, "swapped")
		name := serverOf(m)
		former := m.SwapIdentity(emulator.Identity{UUID: "99999999-aaaa-4bbb-8ccc-dddddddddddd", SerialNumber: "OTHER"})
		before := theWorld.fleet.LastWrite()
		changeClaim(ctx, "swapped", func(c *v1alpha1.ServerClaim) { c.Spec.Power = v1alpha1.PowerOff })
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionIdentityMismatch)).Should(Equal("True/OtherSystem"))
		Consistently(touched(m, before)).Should(BeEmpty())
		Expect(serverCondition(ctx, name, v1alpha1.ConditionPolicyHalted)()).To(Equal("True/SafetyRule"))

		By("the right machine coming back")
		m.SwapIdentity(former)
		Eventually(state(ctx, name)).Should(Equal("Reserved/Off"))
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionPolicyHalted)).Should(Equal("none"))
	})
})
