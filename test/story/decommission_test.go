// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	sanitization "github.com/metalaw/metalaw/metalprobe/registry/record"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// operateFor asks for an operation with a reason, and with what else it takes.
func operateFor(ctx context.Context, server, operation, reason string, pairs ...string) {
	GinkgoHelper()
	changeServer(ctx, server, func(s *v1alpha1.Server) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationAnnotation, operation)
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationReasonAnnotation, reason)
		for i := 0; i < len(pairs); i += 2 {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, pairs[i], pairs[i+1])
		}
	})
}

// operated is how the last operation of a server ended, as "name state".
func operated(ctx context.Context, server string) func() string {
	return func() string {
		if op := getServer(ctx, server).Status.Operation; op != nil {
			return op.Name + " " + string(op.State)
		}
		return ""
	}
}

// records are the sanitization records of a machine.
func records(ctx context.Context, m *emulator.Machine) []policyv1alpha1.SanitizationRecord {
	GinkgoHelper()
	list := &policyv1alpha1.SanitizationRecordList{}
	Expect(admin.List(ctx, list, client.MatchingLabels{policyv1alpha1.RecordMachineLabel: m.Identity().UUID})).To(Succeed())
	Expect(sanitization.Verify(list.Items)).To(Succeed())
	return list.Items
}

const (
	decommissioned = "Decommissioned/Off"
	lease          = "its lease ends"
)

var _ = Describe("A server that goes out of service", func() {
	It("is never claimed and never touched, whatever happens to it, until it is taken back", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		name := serverOf(m)
		operateFor(ctx, name, v1alpha1.OperationDecommission, lease)
		Eventually(state(ctx, name)).Should(Equal(decommissioned))
		s := getServer(ctx, name)
		Expect(s.Annotations).To(HaveKeyWithValue(v1alpha1.DecommissionAnnotation, lease))
		Expect(s.Spec.Unclaimable).To(BeTrue())
		Expect(operated(ctx, name)()).To(Equal("decommission Succeeded"))
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionDecommission)).Should(HavePrefix("True/"))

		By("asking for it, and switching it on by hand")
		before := theWorld.fleet.LastWrite()
		changeServer(ctx, name, func(s *v1alpha1.Server) { s.Spec.Unclaimable, s.Spec.IndicatorLED = false, v1alpha1.IndicatorLEDLit })
		create(ctx, newClaim("too-late", m))
		one := create(ctx, repair("too-late", m, power(v1alpha1.PowerOn)))
		Eventually(claimCondition(ctx, "too-late", "Bound")).Should(Equal("False/NoneClaimable"))
		Consistently(claimCondition(ctx, "too-late", "Bound")).Should(Equal("False/NoneClaimable"))
		m.PowerBehindBack(true)
		Eventually(state(ctx, name)).Should(Equal("Decommissioned/On"))
		m.PowerBehindBack(false)
		Eventually(state(ctx, name)).Should(Equal(decommissioned))
		Expect(answered(ctx, one)()).To(HavePrefix("Pending "))
		finish(ctx, one)
		Expect(touched(m, before)()).To(BeEmpty())
		Expect(admin.Delete(ctx, getClaim(ctx, "too-late"))).To(Succeed())

		By("restoring it from a backup, which proves of no disk that it is clean")
		theWorld.stopManager()
		create(ctx, lost(ctx, getServer(ctx, name)))
		theWorld.startManager(ctx)
		Eventually(state(ctx, name)).Should(Equal("Error/Off"))
		operateFor(ctx, name, v1alpha1.OperationSanitize, "its status was lost")
		Eventually(state(ctx, name)).Should(Equal(decommissioned))

		By("taking it back")
		operateFor(ctx, name, v1alpha1.OperationRecommission, "it is needed")
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		Expect(getServer(ctx, name).Annotations).NotTo(HaveKey(v1alpha1.DecommissionAnnotation))
	})

	It("keeps its claim until that ends, is erased with proof, and needs nothing more to be deleted", func(ctx SpecContext) {
		m := claimed(ctx, "last-tenant")
		name := serverOf(m)
		before := theWorld.fleet.LastWrite()
		operateFor(ctx, name, v1alpha1.OperationDecommission, lease)
		Eventually(operated(ctx, name)).Should(Equal("decommission Succeeded"))
		Eventually(asked(ctx, "last-tenant")).Should(ContainElement("needed"))
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionDecommission)).Should(HavePrefix("False/"))
		Consistently(state(ctx, name)).Should(Equal("Reserved/On"))
		Expect(touched(m, before)()).To(BeEmpty())

		By("the claim ending")
		deleteClaim(ctx, "last-tenant")
		Eventually(state(ctx, name)).Should(Equal(decommissioned))
		Expect(m.Drives()[0].Contents()).To(BeEmpty())
		Expect(records(ctx, m)).To(HaveLen(1))
		Expect(getServer(ctx, name).Status.Lifecycle.Marks).NotTo(ContainElement("Dirty"))

		By("deleting it")
		Expect(admin.Delete(ctx, &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: m.Name()}})).To(Succeed())
		Expect(client.IgnoreNotFound(admin.Delete(ctx, getServer(ctx, name)))).To(Succeed())
		Eventually(state(ctx, name)).Should(Equal("NotFound"))
		Expect(records(ctx, m)).To(HaveLen(1), "the proof stays")
	})

	It("may be kept after all, while it still waits for its claim's end", func(ctx SpecContext) {
		m := claimed(ctx, "stays")
		name := serverOf(m)
		operateFor(ctx, name, v1alpha1.OperationDecommission, lease)
		Eventually(asked(ctx, "stays")).Should(ContainElement("needed"))
		operateFor(ctx, name, v1alpha1.OperationRecommission, "it is needed")
		Eventually(operated(ctx, name)).Should(Equal("recommission Succeeded"))
		Eventually(asked(ctx, "stays")).Should(BeEmpty())
		Expect(getServer(ctx, name).Annotations).NotTo(HaveKey(v1alpha1.DecommissionAnnotation))
		Expect(state(ctx, name)()).To(Equal("Reserved/On"))
		deleteClaim(ctx, "stays")
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
	})

	It("goes with a disk that cannot be erased once somebody answers for that disk, and not before", func(ctx SpecContext) {
		m := theWorld.machine(ctx, func(s *emulator.MachineSpec) {
			s.Drives = []emulator.DriveSpec{{Name: "nvme0n1", SizeBytes: 1e9}, {Name: "nvme1n1", SizeBytes: 1e9}}
		})
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		create(ctx, newClaim("dead-disk", m))
		Eventually(claimCondition(ctx, "dead-disk", "Ready")).Should(Equal("True/Running"))
		dead := m.Drives()[1]
		dead.FailErase("dead")
		operateFor(ctx, name, v1alpha1.OperationDecommission, "a disk is dead")
		Eventually(operated(ctx, name)).Should(Equal("decommission Succeeded"))
		deleteClaim(ctx, "dead-disk")
		Eventually(serverCondition(ctx, name, "Stalled")).Should(Equal("True/WipeFailed"))
		Consistently(state(ctx, name)).Should(HavePrefix("Error/"))
		Expect(m.Drives()[0].Contents()).To(BeEmpty())

		By("answering for the disk")
		inventory := &policyv1alpha1.ServerInventory{}
		Expect(admin.Get(ctx, types.NamespacedName{Name: m.Identity().UUID}, inventory)).To(Succeed())
		operateFor(ctx, name, v1alpha1.OperationAttestDisk, "shredded", v1alpha1.OperationByAnnotation, "admin",
			v1alpha1.AttestDiskAnnotation, "nvme1n1", v1alpha1.AttestMethodAnnotation, string(policyv1alpha1.AttestDestroy))
		Eventually(func() []policyv1alpha1.AttestedDisk {
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(inventory), inventory)).To(Succeed())
			return inventory.Custody.Attested
		}).Should(HaveLen(1))
		Expect(inventory.Custody.Attested[0]).To(And(HaveField("Method", policyv1alpha1.AttestDestroy), HaveField("Reason", "shredded")))

		By("taking the disk out, so that the wipe does not see it, and trying again")
		dead.TakeOut()
		operate(ctx, name, v1alpha1.OperationRetry)
		Eventually(state(ctx, name)).Should(Equal(decommissioned))
		all := records(ctx, m)
		Expect(all[len(all)-1].Spec.Attested).To(HaveLen(1))
	})
})
