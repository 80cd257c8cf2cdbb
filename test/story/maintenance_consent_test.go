// SPDX-License-Identifier: Apache-2.0

package story

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

var _ = Describe("The holder of a claimed server", func() {
	It("is asked for it, loses nothing but the server while the maintenance lasts, and is asked anew for the next", func(ctx SpecContext) {
		m := claimed(ctx, "approves")
		name := serverOf(m)
		before, boots := theWorld.fleet.LastWrite(), m.Boots()
		one := create(ctx, repair("approves-1", m))
		Eventually(answered(ctx, one)).Should(Equal(waitsForApproval))
		Eventually(asked(ctx, "approves")).Should(Equal([]string{"(needed)", "needed"}))
		Expect(getClaim(ctx, "approves").Labels).To(HaveKeyWithValue(v1alpha1.MaintenanceNeededLabel, "true"))
		Consistently(touched(m, before)).Should(BeEmpty())
		Expect(state(ctx, name)()).To(Equal("Reserved/On"))

		By("approving of it with any value")
		approve(ctx, "approves")
		Eventually(answered(ctx, one)).WithTimeout(soon).Should(Equal(inMaintenance))
		Eventually(state(ctx, name)).WithTimeout(soon).Should(Equal("Maintenance/On"))
		s, claim := getServer(ctx, name), getClaim(ctx, "approves")
		Expect(s.Spec.ServerMaintenanceRef).To(HaveValue(Equal(v1alpha1.ObjectReference{Namespace: tenants, Name: "approves-1"})))
		Expect(s.Annotations).To(And(HaveKeyWithValue(v1alpha1.MaintenanceUIDAnnotation, string(one.UID)),
			HaveKeyWithValue(v1alpha1.MaintenanceClaimAnnotation, string(claim.UID))))
		Expect(s.Spec.ServerClaimRef).To(HaveField("Name", "approves"))
		Expect(claim.Status.Phase).To(Equal(v1alpha1.PhaseBound))

		By("the next maintenance, which that approval does not cover")
		two := create(ctx, repair("approves-2", m))
		Eventually(answered(ctx, two)).Should(Equal(serverHeld))
		finish(ctx, one)
		Eventually(state(ctx, name)).Should(Equal("Reserved/On"))
		Eventually(answered(ctx, two)).Should(Equal("Pending False/" + v1alpha1.ReasonApprovalOlder))
		Consistently(asked(ctx, "approves")).Should(Equal([]string{"(needed)", "approved", "needed"}), "neither goes while another waits")

		By("approving anew")
		withdraw(ctx, "approves")
		Eventually(answered(ctx, two)).Should(Equal(waitsForApproval))
		approve(ctx, "approves")
		Eventually(answered(ctx, two)).Should(Equal(inMaintenance))
		finish(ctx, two)
		Eventually(traces(ctx, name, two.Name, "approves")).Should(BeEmpty())
		Eventually(state(ctx, name)).Should(Equal("Reserved/On"))
		Expect(touched(m, before)()).To(BeEmpty(), "neither maintenance asked for power, boot or light")
		Expect(m.Boots()).To(Equal(boots))
	})

	It("is told of an enforced maintenance, which waits for the notice alone, and cannot withdraw from what began", func(ctx SpecContext) {
		m := claimed(ctx, "told")
		one := create(ctx, repair("told-1", m, enforced))
		Eventually(answered(ctx, one)).Should(Equal("Pending False/" + v1alpha1.ReasonWaitsForNotice))
		Eventually(asked(ctx, "told")).Should(ContainElement("needed"))
		Eventually(answered(ctx, one)).Should(Equal(inMaintenance))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(one), one)).To(Succeed())
		Expect(one.Status.GrantedAt.Sub(one.Status.Asked.At.Time)).To(BeNumerically(">=", 2*time.Second))
		approve(ctx, "told")
		withdraw(ctx, "told")
		Consistently(answered(ctx, one)).Should(Equal(inMaintenance))
		finish(ctx, one)
		Eventually(traces(ctx, serverOf(m), one.Name, "told")).Should(BeEmpty())
	})

	It("that has its workload drained has no enforced maintenance before, and may approve in the old spelling", func(ctx SpecContext) {
		m := claimed(ctx, "drains", func(c *v1alpha1.ServerClaim) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.DrainRequiredAnnotation, "true")
		})
		one := create(ctx, repair("drains-1", m, enforced))
		Eventually(answered(ctx, one)).Should(Equal("Pending False/" + v1alpha1.ReasonWaitsForDrain))
		Consistently(answered(ctx, one)).WithTimeout(3 * time.Second).Should(HavePrefix("Pending "))
		changeClaim(ctx, "drains", func(c *v1alpha1.ServerClaim) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.MaintenanceApprovalLabel, "")
		})
		Eventually(answered(ctx, one)).Should(Equal(inMaintenance))
		approve(ctx, "drains")
		finish(ctx, one)
		Eventually(traces(ctx, serverOf(m), one.Name, "drains")).Should(BeEmpty(), "in whatever spelling")
	})
})
