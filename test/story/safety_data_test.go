// SPDX-License-Identifier: Apache-2.0

package story

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

var _ = Describe("Safety rule 1: absence is not evidence", func() {
	It("keeps a server whose claim vanished without a release, and says so, until somebody releases it by hand", func(ctx SpecContext) {
		m := claimed(ctx, "vanished")
		name := serverOf(m)
		before := theWorld.fleet.LastWrite()
		vanish(ctx, "vanished")
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionClaimMissing)).Should(Equal("True/ClaimNotFound"))
		Consistently(state(ctx, name)).Should(Equal("Reserved/On"))
		Expect(touched(m, before)()).To(BeEmpty())

		By("releasing it by hand")
		operate(ctx, name, v1alpha1.OperationRelease)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		Expect(m.Drives()[0].Contents()).To(BeEmpty())
	})

	It("refuses a release by hand while the claim exists", func(ctx SpecContext) {
		m := claimed(ctx, "still-there")
		before := theWorld.fleet.LastWrite()
		operate(ctx, serverOf(m), v1alpha1.OperationRelease)
		Eventually(eventReasons(ctx, serverOf(m))).Should(ContainElement("OperationRefused"))
		Consistently(state(ctx, serverOf(m))).Should(Equal("Reserved/On"))
		Expect(touched(m, before)()).To(BeEmpty())
		Expect(getServer(ctx, serverOf(m)).Annotations).NotTo(HaveKey(v1alpha1.ReleasedClaimAnnotation))
	})

	It("gives a claim that is made again under the same name nothing of the former one's", func(ctx SpecContext) {
		m := claimed(ctx, "twin")
		name := serverOf(m)
		vanish(ctx, "twin")
		before := theWorld.fleet.LastWrite()
		create(ctx, newClaim("twin", m))
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionClaimMissing)).Should(Equal("True/ClaimUIDMismatch"))
		Eventually(claimCondition(ctx, "twin", "Bound")).Should(HavePrefix("False/"))
		Consistently(claimCondition(ctx, "twin", "Bound")).Should(HavePrefix("False/"))
		Expect(touched(m, before)()).To(BeEmpty())
	})
})

var _ = Describe("Safety rule 2: never wipe while claimed or retained", func() {
	It("keeps the data of a retained server until its reference is cleared, and then wipes it", func(ctx SpecContext) {
		m := claimed(ctx, "retained")
		name := serverOf(m)
		changeServer(ctx, name, func(s *v1alpha1.Server) { s.Spec.ReclaimPolicy = v1alpha1.ReclaimPolicyRetain })
		data := m.Drives()[0].Contents()
		deleteClaim(ctx, "retained")
		Eventually(state(ctx, name)).Should(Equal("Released/Off"))
		Consistently(state(ctx, name)).Should(Equal("Released/Off"))
		Expect(m.Drives()[0].Contents()).To(Equal(data))

		By("clearing the reference")
		changeServer(ctx, name, func(s *v1alpha1.Server) { s.Spec.ServerClaimRef = nil })
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		Expect(m.Drives()[0].Contents()).To(BeEmpty())
	})

	It("stops a wipe before the next disk when it is no longer current", func(ctx SpecContext) {
		m := theWorld.machine(ctx, func(s *emulator.MachineSpec) {
			s.Drives = []emulator.DriveSpec{{Name: "nvme0n1", SizeBytes: 1e9}, {Name: "nvme1n1", SizeBytes: 1e9}}
			s.Delays = emulator.Delays{Erase: 5 * time.Second} // what revokes it has to be stored before it ends
		})
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		create(ctx, newClaim("revoked", m))
		Eventually(claimCondition(ctx, "revoked", "Ready")).Should(Equal("True/Running"))
		m.Drives()[1].Write("the tenant's second disk")
		deleteClaim(ctx, "revoked")
		Eventually(func() policyv1alpha1.WipeState { return wipeState(ctx, name) }).Should(Equal(policyv1alpha1.WipeRunning))
		before := theWorld.fleet.LastWrite()

		By("taking the release record back while the first disk is being erased")
		changeServer(ctx, name, func(s *v1alpha1.Server) { delete(s.Annotations, v1alpha1.ReleasedClaimAnnotation) })
		Eventually(state(ctx, name)).Should(HavePrefix("Error/"))
		Consistently(func() string { return m.Drives()[1].Contents() }, 7*time.Second).Should(Equal("the tenant's second disk"))
		Expect(touched(m, before)()).NotTo(ContainElement(ContainSubstring("Reset")), "power is not cut in the middle of an erase")
		Expect(serverCondition(ctx, name, "Stalled")()).To(Equal("True/WipeRevoked"))
	})
})

var _ = Describe("Safety rule 2: an erase that must not be cut", func() {
	It("keeps power while a disk is being erased, though somebody asks to cut it", func(ctx SpecContext) {
		m := theWorld.machine(ctx, func(s *emulator.MachineSpec) { s.Delays = emulator.Delays{Erase: 10 * time.Second} })
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		create(ctx, newClaim("cut", m))
		Eventually(claimCondition(ctx, "cut", "Ready")).Should(Equal("True/Running"))
		deleteClaim(ctx, "cut")
		Eventually(func() policyv1alpha1.WipeState { return wipeState(ctx, name) }).Should(Equal(policyv1alpha1.WipeRunning))
		changeServer(ctx, name, func(s *v1alpha1.Server) { delete(s.Annotations, v1alpha1.ReleasedClaimAnnotation) })
		Eventually(state(ctx, name)).Should(Equal("Error/On"))
		before := theWorld.fleet.LastWrite()
		operate(ctx, name, v1alpha1.OperationForceOffServer)
		Eventually(func() map[string]string { return getServer(ctx, name).Annotations }).ShouldNot(HaveKey(v1alpha1.OperationAnnotation))
		Consistently(touched(m, before)).ShouldNot(ContainElement(ContainSubstring("Reset")))
		Expect(getServer(ctx, name).Status.Operation).To(HaveField("State", v1alpha1.OperationPending))
	})
})

var _ = Describe("Safety rule 3: never offer while Dirty", func() {
	It("does not offer a server whose wipe failed", func(ctx SpecContext) {
		m := claimed(ctx, "bad-disk")
		m.Drives()[0].FailErase("medium error")
		deleteClaim(ctx, "bad-disk")
		Eventually(state(ctx, serverOf(m))).Should(Equal("Error/Off"))
		s := getServer(ctx, serverOf(m))
		Expect(s.Status.Lifecycle.Marks).To(ContainElement("Dirty"))
		Expect(s.Status.Lifecycle.Rule).To(Equal("WipeFailed"))

		By("mending the disk and acknowledging the error")
		m.Drives()[0].FailErase("")
		operate(ctx, serverOf(m), v1alpha1.OperationRetry)
		Eventually(state(ctx, serverOf(m))).Should(Equal("Available/Off"))
		Expect(m.Drives()[0].Erased()).To(BeTrue())
	})

	It("remembers the data of a server that was deleted and found again", func(ctx SpecContext) {
		m := claimed(ctx, "rediscovered")
		name := serverOf(m)
		before := theWorld.fleet.LastWrite()
		changeServer(ctx, name, func(s *v1alpha1.Server) {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.DeleteDataAnnotation, "true")
		})
		uid := getServer(ctx, name).UID
		Expect(admin.Delete(ctx, getServer(ctx, name))).To(Succeed())
		Eventually(func() types.UID {
			s := &v1alpha1.Server{}
			if admin.Get(ctx, types.NamespacedName{Name: name}, s) != nil || s.Status.Lifecycle == nil {
				return uid
			}
			return s.UID
		}).ShouldNot(Equal(uid))
		Consistently(state(ctx, name)).ShouldNot(Or(HavePrefix("Discovery/"), HavePrefix("Available/"), HavePrefix("Cleanup/")))
		Expect(getServer(ctx, name).Status.Lifecycle.Marks).To(ContainElement("Dirty"))
		Expect(touched(m, before)()).To(BeEmpty())
	})

	It("takes a server that came without a status, and whose holder nobody knows, for one that holds data", func(ctx SpecContext) {
		m := theWorld.fleet.Add(emulator.MachineSpec{Name: "orphan", Username: "admin", Password: "password"})
		Expect(m.Err()).NotTo(HaveOccurred())
		name := heldServer(ctx, m, "not-in-this-cluster", "00000000-0000-4000-8000-000000000000")
		theWorld.announce(ctx, m, nil)
		Eventually(state(ctx, name)).Should(Equal("Reserved/Off"))
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionClaimMissing)).Should(Equal("True/ClaimNotFound"))

		By("clearing the reference without a release")
		changeServer(ctx, name, func(s *v1alpha1.Server) { s.Spec.ServerClaimRef = nil })
		Eventually(state(ctx, name)).Should(Equal("Error/Off"))
		Consistently(state(ctx, name)).Should(Equal("Error/Off"))
		Expect(getServer(ctx, name).Status.Lifecycle).To(And(HaveField("Rule", "DataUnreleased"), HaveField("Marks", ContainElement("Dirty"))))
	})

	It("remembers the data of a server whose finalizer was taken away by force", func(ctx SpecContext) {
		m := claimed(ctx, "forced")
		name := serverOf(m)
		before := theWorld.fleet.LastWrite()
		theWorld.stopManager()
		changeServer(ctx, name, func(s *v1alpha1.Server) { s.Finalizers = nil })
		Expect(admin.Delete(ctx, getServer(ctx, name))).To(Succeed())
		theWorld.startManager(ctx)
		Eventually(state(ctx, name)).Should(Equal("Observing/On"))
		Expect(getServer(ctx, name).Status.Lifecycle.Marks).To(ContainElement("Dirty"))
		Expect(touched(m, before)()).To(BeEmpty())
	})

	It("keeps a held server Reserved when its status is lost", func(ctx SpecContext) {
		m := claimed(ctx, "lost-status")
		name := serverOf(m)
		before := theWorld.fleet.LastWrite()
		theWorld.stopManager()
		s := getServer(ctx, name)
		s.Status = v1alpha1.ServerStatus{}
		Expect(admin.Status().Update(ctx, s)).To(Succeed())
		theWorld.startManager(ctx)
		Eventually(state(ctx, name)).Should(Equal("Reserved/On"))
		Expect(getServer(ctx, name).Status.Lifecycle.Marks).To(ContainElement("Dirty"))
		Consistently(touched(m, before)).Should(BeEmpty())
	})
})

var _ = Describe("A machine's inventory and a lifecycle that begins anew", func() {
	It("never takes an old wipe for a new one", func(ctx SpecContext) {
		m := claimed(ctx, "wiped-before")
		name := serverOf(m)
		deleteClaim(ctx, "wiped-before")
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		inventory := &policyv1alpha1.ServerInventory{}
		Expect(admin.Get(ctx, types.NamespacedName{Name: getServer(ctx, name).Spec.SystemUUID}, inventory)).To(Succeed())
		Expect(inventory.Wipe.State).To(Equal(policyv1alpha1.WipeVerified))
		theWorld.stopManager()
		s := getServer(ctx, name)
		s.Status = v1alpha1.ServerStatus{}
		Expect(admin.Status().Update(ctx, s)).To(Succeed())
		theWorld.startManager(ctx)
		Eventually(func() int64 {
			if l := getServer(ctx, name).Status.Lifecycle; l != nil {
				return l.Entry
			}
			return 0
		}).Should(BeNumerically(">", inventory.Wipe.Entry))

		By("taking a lost status for data that nobody can rule out")
		Eventually(state(ctx, name)).Should(Equal("Error/Off"))
		Expect(getServer(ctx, name).Status.Lifecycle).To(And(HaveField("Rule", "DataUnreleased"), HaveField("Marks", ContainElement("Dirty"))))
		Consistently(state(ctx, name)).Should(Equal("Error/Off"))
	})
})
