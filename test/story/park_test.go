// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// parkOnce does what a maintenance operator does: it writes its owner annotation and park in one patch, and waits.
func parkOnce(ctx context.Context, server string) {
	GinkgoHelper()
	s := getServer(ctx, server)
	before := s.DeepCopy()
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, "maintenance.metal.ironcore.dev/owner", "firmware-7")
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationAnnotation, v1alpha1.OperationPark)
	Expect(admin.Patch(ctx, s, client.MergeFrom(before))).To(Succeed())
}

// parkWaits waits until the manager has taken the request in and said that it waits.
func parkWaits(ctx context.Context, server string) {
	GinkgoHelper()
	Eventually(eventReasons(ctx, server)).Should(ContainElement(v1alpha1.ReasonParkDeferred))
	Expect(getServer(ctx, server).Annotations).To(HaveKey(v1alpha1.ParkRequestedAnnotation))
	Expect(getServer(ctx, server).Annotations).NotTo(HaveKey(v1alpha1.OperationAnnotation))
}

// isParked waits until the server is parked, and expects that it remembers where it was.
func isParked(ctx context.Context, server, from string) {
	GinkgoHelper()
	Eventually(state(ctx, server)).Should(Equal("Parked/Off"))
	Eventually(func() map[string]string { return getServer(ctx, server).Annotations }).Should(And(
		HaveKeyWithValue(v1alpha1.PreParkStateAnnotation, from), Not(HaveKey(v1alpha1.ParkRequestedAnnotation)),
		HaveKeyWithValue("maintenance.metal.ironcore.dev/owner", "firmware-7")))
}

var _ = Describe("A client that writes its owner and park once", func() {
	It("gets a server in Discovery before the claim that waits for it", func(ctx SpecContext) {
		m := theWorld.machine(ctx, nil)
		trouble := m.Inject(emulator.ResetConflict()) // it is tried again at once
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(Equal("Discovery/Off"))
		parkOnce(ctx, name)
		parkWaits(ctx, name)
		create(ctx, newClaim("waits-for-parked", m))
		trouble.Remove()
		isParked(ctx, name, "Available")
		Expect(moves(getServer(ctx, name))).To(HaveExactElements(HaveSuffix("Discovery"), "ProbeReported Available", "ParkedAvailable Parked"))
		Eventually(claimCondition(ctx, "waits-for-parked", "Bound")).Should(Equal("False/NoneClaimable"))

		By("what is asked of it meanwhile being dropped")
		operate(ctx, name, v1alpha1.OperationHardRestartServer)
		Eventually(eventReasons(ctx, name)).Should(ContainElement(v1alpha1.ReasonParkedOperationDropped))
		m.PowerBehindBack(true)
		Eventually(state(ctx, name), 15*time.Second).Should(Equal("Parked/On"))
		m.PowerBehindBack(false)
		Eventually(state(ctx, name), 15*time.Second).Should(Equal("Parked/Off"))

		operate(ctx, name, v1alpha1.OperationUnpark)
		Eventually(claimCondition(ctx, "waits-for-parked", "Ready")).Should(Equal("True/Running"))
	})

	It("gets a server in Cleanup once it is erased", func(ctx SpecContext) {
		m := claimed(ctx, "parked-in-cleanup")
		name := serverOf(m)
		changeClaim(ctx, "parked-in-cleanup", func(c *v1alpha1.ServerClaim) { c.Spec.Power = v1alpha1.PowerOff })
		Eventually(state(ctx, name)).Should(Equal("Reserved/Off"))
		trouble := m.Inject(emulator.ResetConflict()) // it is tried again at once
		deleteClaim(ctx, "parked-in-cleanup")
		Eventually(state(ctx, name)).Should(Equal("Cleanup/Off"))
		parkOnce(ctx, name)
		parkWaits(ctx, name)
		trouble.Remove()
		isParked(ctx, name, "Available")
		for _, d := range m.Drives() {
			Expect(d.Contents()).To(BeEmpty())
		}
	})

	It("gets a claimed server although its claim ends meanwhile", func(ctx SpecContext) {
		m := claimed(ctx, "parked-at-its-end")
		name := serverOf(m)
		trouble := m.Inject(emulator.ResetConflict()) // it is tried again at once
		parkOnce(ctx, name)
		Eventually(operated(ctx, name)).Should(Equal("park Pending"))
		deleteClaim(ctx, "parked-at-its-end")
		trouble.Remove()
		isParked(ctx, name, "Available")
		Expect(getServer(ctx, name).Status.Lifecycle.Marks).NotTo(ContainElement("Dirty"))
	})

	It("gets a server whose data is retained, which is there again afterwards", func(ctx SpecContext) {
		m := claimed(ctx, "parked-retained")
		name := serverOf(m)
		changeServer(ctx, name, func(s *v1alpha1.Server) { s.Spec.ReclaimPolicy = v1alpha1.ReclaimPolicyRetain })
		deleteClaim(ctx, "parked-retained")
		Eventually(state(ctx, name)).Should(Equal("Released/Off"))
		parkOnce(ctx, name)
		isParked(ctx, name, "Released")
		operate(ctx, name, v1alpha1.OperationUnpark)
		Eventually(state(ctx, name)).Should(Equal("Released/Off"))
		Eventually(func() map[string]string { return getServer(ctx, name).Annotations }).Should(And(
			Not(HaveKey(v1alpha1.PreParkStateAnnotation)), Not(HaveKey(v1alpha1.ParkedAnnotation))))
		Expect(getServer(ctx, name).Status.Lifecycle.Marks).To(ContainElement("Dirty"))
	})

	It("gets a broken server, which is stopped again afterwards", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		name := serverOf(m)
		operateFor(ctx, name, v1alpha1.OperationForce, "broken", v1alpha1.ForceToAnnotation, "Error")
		Eventually(state(ctx, name)).Should(Equal("Error/Off"))
		parkOnce(ctx, name)
		isParked(ctx, name, "Error")
		operate(ctx, name, v1alpha1.OperationUnpark)
		Eventually(state(ctx, name)).Should(Equal("Error/Off"))
		Expect(getServer(ctx, name).Status.Lifecycle.Rule).To(Equal("UnparkedToError"))
		operate(ctx, name, v1alpha1.OperationRetry)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
	})

	It("waits for a server in Error under a bundle of the former build, and a retry does not erase the request", func(ctx SpecContext) {
		govern(ctx, formerDefault())
		m := theWorld.available(ctx)
		name := serverOf(m)
		operateFor(ctx, name, v1alpha1.OperationForce, "broken", v1alpha1.ForceToAnnotation, "Error")
		Eventually(state(ctx, name)).Should(Equal("Error/Off"))
		parkOnce(ctx, name)
		parkWaits(ctx, name)
		Consistently(state(ctx, name)).Should(Equal("Error/Off"))
		operate(ctx, name, v1alpha1.OperationRetry)
		isParked(ctx, name, "Available")
	})

	It("gets a server in maintenance after its end", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		name := serverOf(m)
		sm := create(ctx, repair("before-park", m, enforced))
		Eventually(answered(ctx, sm)).Should(Equal(inMaintenance))
		Eventually(state(ctx, name)).Should(Equal("Maintenance/Off"))
		parkOnce(ctx, name)
		parkWaits(ctx, name)
		finish(ctx, sm)
		isParked(ctx, name, "Available")
	})

	It("is refused for a machine that was found running, and for one out of service", func(ctx SpecContext) {
		stranger := theWorld.machine(ctx, nil, func(m *emulator.Machine) { m.PowerBehindBack(true) })
		Eventually(state(ctx, serverOf(stranger))).Should(Equal("Observing/On"))
		gone := theWorld.available(ctx)
		operateFor(ctx, serverOf(gone), v1alpha1.OperationDecommission, "old")
		Eventually(state(ctx, serverOf(gone))).Should(Equal("Decommissioned/Off"))
		for _, m := range []*emulator.Machine{stranger, gone} {
			parkOnce(ctx, serverOf(m))
			Eventually(eventReasons(ctx, serverOf(m))).Should(ContainElement(v1alpha1.ReasonOperationRefused))
			Expect(getServer(ctx, serverOf(m)).Annotations).NotTo(HaveKey(v1alpha1.ParkRequestedAnnotation))
		}
	})

	It("loses the request to a claim that both references join by hand, which says so", func(ctx SpecContext) {
		m := theWorld.machine(ctx, nil)
		trouble := m.Inject(emulator.ResetConflict()) // it is tried again at once
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(Equal("Discovery/Off"))
		parkOnce(ctx, name)
		parkWaits(ctx, name)
		create(ctx, newClaim("by-hand", m, func(c *v1alpha1.ServerClaim) { c.Spec.ServerRef = &corev1.LocalObjectReference{Name: name} }))
		var claim v1alpha1.ServerClaim
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: tenants, Name: "by-hand"}, &claim)).To(Succeed())
		Eventually(claimCondition(ctx, "by-hand", "Bound")).Should(HavePrefix("False/"))
		// Without the UID the claim has the server once the scheduler adopts it, and the park may be served before.
		changeServer(ctx, name, func(s *v1alpha1.Server) {
			s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: tenants, Name: "by-hand"}
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ClaimUIDAnnotation, string(claim.UID))
		})
		Eventually(eventReasons(ctx, name)).Should(ContainElement(v1alpha1.ReasonParkRequestDropped))
		trouble.Remove()
		Eventually(claimCondition(ctx, "by-hand", "Ready")).Should(Equal("True/Running"))
	})
})
