// SPDX-License-Identifier: Apache-2.0

package restored

import (
	"context"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	storewatch "github.com/metalaw/metalaw/controllers/restored"
	"github.com/metalaw/metalaw/internal/restored"
	"github.com/metalaw/metalaw/redfish/emulator"
)

func save(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(controlPlane.SaveEtcd(ctx, name)).To(Succeed())
}

// leftAsItIs says that nothing is asked of a BMC any more, and that not a byte of the disk changes.
func leftAsItIs(m *emulator.Machine, since int, data string) {
	GinkgoHelper()
	Consistently(func(g Gomega) {
		g.Expect(theWorld.touched(m, since)()).To(BeEmpty())
		g.Expect(m.Drives()[0].Contents()).To(Equal(data))
		g.Expect(m.Power()).To(Equal(emulator.PowerOn))
	}).Should(Succeed())
}

var _ = Describe("An etcd that is restored from a snapshot", Ordered, func() {
	It("from before a claim: its machine is not offered, and read first; a blank one is offered after that", func(ctx SpecContext) {
		m, blank := theWorld.available(ctx), theWorld.available(ctx)
		save(ctx, "before-claim")
		data := tenant(ctx, "unknown-to-it", m)
		restore(ctx, "before-claim", m, blank)
		Expect(claimed(ctx, "unknown-to-it")()).To(Equal("NotFound"))
		since := theWorld.fleet.LastWrite()

		By("claiming both machines")
		claim(ctx, "newcomer", m)
		claim(ctx, "newcomer-blank", blank)
		leftAsItIs(m, since, data)
		Expect(theWorld.touched(blank, since)()).To(BeEmpty())
		Expect(getServer(ctx, m).Spec.ServerClaimRef).To(BeNil())
		Expect(getServer(ctx, blank).Spec.ServerClaimRef).To(BeNil())

		By("confirming both: the one that is off is read and offered, and the one that runs is left alone")
		mark(ctx, restored.Confirmed, m, blank)
		Eventually(claimed(ctx, "newcomer-blank")).Should(Equal("True/Running"))
		Expect(restored.Marked(getServer(ctx, blank))).To(BeFalse())
		Expect(getServer(ctx, blank).Status.Lifecycle.History).To(ContainElement(HaveField("Rule", v1alpha1.RuleRestored)))
		Eventually(doubt(ctx, m)).Should(Equal(v1alpha1.ReasonInspects))
		leftAsItIs(m, since, data)

		By("switching the machine off by hand")
		m.PowerBehindBack(false)
		Eventually(state(ctx, m)).Should(HavePrefix("Error/"))
		Expect(getServer(ctx, m).Status.Lifecycle.Marks).To(ContainElement("Dirty"))
		Expect(m.Drives()[0].Contents()).To(Equal(data))
		Expect(getServer(ctx, m).Spec.ServerClaimRef).To(BeNil())
		deleteClaim(ctx, "newcomer")
	})

	It("from between a release and its wipe: the next tenant's disk stays", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		tenant(ctx, "released", m)
		freezes(ctx, policyv1alpha1.FreezeDestructive)
		deleteClaim(ctx, "released")
		Eventually(claimed(ctx, "released")).Should(Equal("NotFound"))
		Eventually(func() bool { return v1alpha1.ReleaseRecorded(getServer(ctx, m)) }).Should(BeTrue())
		save(ctx, "released")
		freezes(ctx)
		Eventually(state(ctx, m)).Should(Equal("Available/Off"))
		data := tenant(ctx, "after-release", m)

		restore(ctx, "released", m)
		since := theWorld.fleet.LastWrite()
		leftAsItIs(m, since, data)
		Expect(state(ctx, m)()).To(Equal("Reserved/On"))
	})

	It("from during a wipe: the next tenant's disk stays", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		tenant(ctx, "wiped", m)
		deleteClaim(ctx, "wiped")
		Eventually(func() bool { _, begun := theWorld.erasing.Load(m.Name()); return begun }).Should(BeTrue())
		save(ctx, "wipe")
		Eventually(state(ctx, m)).Should(Equal("Available/Off"))
		data := tenant(ctx, "after-wipe", m)

		restore(ctx, "wipe", m)
		Expect(state(ctx, m)()).To(HavePrefix("Cleanup/"))
		since := theWorld.fleet.LastWrite()
		leftAsItIs(m, since, data)
	})

	It("from before a release after which another tenant got the machine: the end of the former claim waits", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		tenant(ctx, "former", m)
		save(ctx, "former")
		deleteClaim(ctx, "former")
		Eventually(state(ctx, m)).Should(Equal("Available/Off"))
		data := tenant(ctx, "latter", m)

		restore(ctx, "former", m)
		Expect(claimed(ctx, "former")()).To(HavePrefix("True/"))
		since := theWorld.fleet.LastWrite()
		By("deleting the former claim, which the store says has the machine")
		deleteClaim(ctx, "former")
		Eventually(claimed(ctx, "former")).Should(Equal("False/" + v1alpha1.ReasonServerInDoubt))
		leftAsItIs(m, since, data)
		Expect(v1alpha1.ReleaseRecorded(getServer(ctx, m))).To(BeFalse())

		By("confirming it, once the latter tenant has left the machine")
		mark(ctx, restored.Confirmed, m)
		Eventually(claimed(ctx, "former")).Should(Equal("NotFound"))
		Eventually(state(ctx, m)).Should(Equal("Available/Off"))
		Expect(m.Drives()[0].Erased()).To(BeTrue())
	})

	It("under a manager that runs on: it notices, and freezes the fleet", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		save(ctx, "noticed")
		data := tenant(ctx, "unnoticed", m)
		busy := create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: "busy"}})
		for i := range 1000 { // a cluster writes more between a snapshot and a restore than a manager does right after
			busy.Data = map[string]string{"i": strconv.Itoa(i)}
			Expect(admin.Update(ctx, busy)).To(Succeed())
		}
		Expect(controlPlane.RestoreEtcd(ctx, "noticed")).To(Succeed())
		Eventually(func() []policyv1alpha1.Freeze {
			control := &policyv1alpha1.FleetControl{}
			if admin.Get(ctx, types.NamespacedName{Name: policyv1alpha1.FleetControlName}, control) != nil {
				return nil
			}
			return control.Spec.Freezes
		}).Should(ContainElement(And(HaveField("Name", storewatch.FreezeName), HaveField("Level", policyv1alpha1.FreezeAll),
			HaveField("Reason", ContainSubstring("it was restored")))))
		Expect(m.Drives()[0].Contents()).To(Equal(data))
	})
})
