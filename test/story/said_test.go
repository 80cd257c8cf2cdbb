// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// deleteServer deletes a server while its BMC stays, and waits until the machine is back as another object.
func deleteServer(ctx context.Context, name string) *v1alpha1.Server {
	GinkgoHelper()
	former := getServer(ctx, name)
	Expect(admin.Delete(ctx, former.DeepCopy())).To(Succeed())
	s := &v1alpha1.Server{}
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, types.NamespacedName{Name: name}, s)).To(Succeed())
		g.Expect(s.UID).NotTo(Equal(former.UID))
		g.Expect(s.Status.State).NotTo(BeEmpty())
	}).Should(Succeed())
	return s
}

func keptOf(ctx context.Context, m *emulator.Machine) func() string {
	return func() string {
		i := &policyv1alpha1.ServerInventory{}
		if err := admin.Get(ctx, types.NamespacedName{Name: m.Identity().UUID}, i); err != nil {
			return err.Error()
		}
		return i.Annotations[v1alpha1.KeptAnnotation]
	}
}

var _ = Describe("What a user said of a machine", func() {
	It("outlives its object, until the user takes it back", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		name := serverOf(m)
		broken := v1alpha1.Taint{Key: "example.com/broken", Effect: v1alpha1.TaintEffectNoBind}
		changeServer(ctx, name, func(s *v1alpha1.Server) { s.Spec.Unclaimable, s.Spec.Taints = true, []v1alpha1.Taint{broken} })
		s := deleteServer(ctx, name)
		Expect(s.Spec.Unclaimable).To(BeTrue())
		Expect(s.Spec.Taints).To(Equal([]v1alpha1.Taint{broken}))
		create(ctx, newClaim("for-a-cordoned", m))
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		Eventually(claimCondition(ctx, "for-a-cordoned", "Bound")).Should(HavePrefix("False/"))
		Consistently(claimCondition(ctx, "for-a-cordoned", "Bound")).Should(HavePrefix("False/"))

		By("decommissioning it")
		changeServer(ctx, name, func(s *v1alpha1.Server) { s.Spec.Taints = nil })
		operateFor(ctx, name, v1alpha1.OperationDecommission, lease)
		Eventually(state(ctx, name)).Should(Equal(decommissioned))
		s = deleteServer(ctx, name)
		Expect(s.Spec.Taints).To(BeEmpty())
		Expect(s.Annotations).To(HaveKeyWithValue(v1alpha1.DecommissionAnnotation, lease))
		Eventually(state(ctx, name)).Should(Equal(decommissioned))
		Expect(claimCondition(ctx, "for-a-cordoned", "Bound")()).To(HavePrefix("False/"))

		By("taking both back")
		operateFor(ctx, name, v1alpha1.OperationRecommission, "its lease goes on")
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		changeServer(ctx, name, func(s *v1alpha1.Server) { s.Spec.Unclaimable = false })
		Eventually(claimCondition(ctx, "for-a-cordoned", "Ready")).Should(Equal("True/Running"))
		deleteClaim(ctx, "for-a-cordoned")
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		Expect(keptOf(ctx, m)()).To(BeEmpty())
		Expect(deleteServer(ctx, name).Spec.Unclaimable).To(BeFalse())
	})
})
