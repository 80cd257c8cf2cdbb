// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// lost takes an object out of the cluster as the loss of the cluster does: no finalizer is heard. It returns the object as
// a backup keeps it: without identity and without status.
func lost[T client.Object](ctx context.Context, object T) T {
	GinkgoHelper()
	kept := object.DeepCopyObject().(T)
	object.SetFinalizers(nil)
	Expect(admin.Update(ctx, object)).To(Succeed())
	Expect(admin.Delete(ctx, object)).To(Succeed())
	kept.SetUID("")
	kept.SetResourceVersion("")
	kept.SetGeneration(0)
	kept.SetCreationTimestamp(metav1.Time{})
	kept.SetManagedFields(nil)
	return kept
}

func lostInventory(ctx context.Context, systemUUID string) *policyv1alpha1.ServerInventory {
	GinkgoHelper()
	inventory := &policyv1alpha1.ServerInventory{}
	Expect(admin.Get(ctx, types.NamespacedName{Name: systemUUID}, inventory)).To(Succeed())
	return lost(ctx, inventory)
}

var _ = Describe("A cluster that is restored from a backup", func() {
	DescribeTable("leaves the machines of servers that come before their claims alone, and gives the claims their servers back",
		func(ctx SpecContext, claim string, withInventory bool) {
			m := claimed(ctx, claim)
			name := serverOf(m)
			boots, before := m.Boots(), theWorld.fleet.LastWrite()
			theWorld.stopManager()
			inventory := lostInventory(ctx, m.Identity().UUID)
			former := getClaim(ctx, claim).UID
			theClaim, theServer := lost(ctx, getClaim(ctx, claim)), lost(ctx, getServer(ctx, name))
			if withInventory {
				create(ctx, inventory)
			}
			create(ctx, theServer)
			theWorld.startManager(ctx)
			Eventually(serverCondition(ctx, name, v1alpha1.ConditionClaimMissing)).Should(Equal("True/ClaimNotFound"))
			Eventually(state(ctx, name)).Should(Equal("Reserved/On"))
			Consistently(touched(m, before)).Should(BeEmpty())

			By("restoring the claim")
			create(ctx, theClaim)
			Eventually(claimCondition(ctx, claim, "Ready")).Should(Equal("True/Running"))
			s := getServer(ctx, name)
			Expect(s.Annotations[v1alpha1.ClaimUIDAnnotation]).To(And(Equal(string(getClaim(ctx, claim).UID)), Not(Equal(string(former)))))
			Expect(s.Status.Lifecycle.Marks).To(ContainElements("Dirty", "Managed"))
			Eventually(serverCondition(ctx, name, v1alpha1.ConditionClaimMissing)).Should(Equal("none"))
			Consistently(touched(m, before)).Should(BeEmpty())
			Expect(m.Boots()).To(Equal(boots))

			By("releasing it as any other")
			deleteClaim(ctx, claim)
			Eventually(state(ctx, name)).Should(Equal("Available/Off"))
			Expect(m.Drives()[0].Erased()).To(BeTrue())
		},
		Entry("with their inventories", "restored", true),
		Entry("without anything but themselves", "restored-bare", false),
	)

	It("leaves a machine alone whose Server is not restored, and takes the restored Server for it later", func(ctx SpecContext) {
		m := claimed(ctx, "restored-late")
		name := serverOf(m)
		before := theWorld.fleet.LastWrite()
		theWorld.stopManager()
		lostInventory(ctx, m.Identity().UUID)
		theClaim, theServer := lost(ctx, getClaim(ctx, "restored-late")), lost(ctx, getServer(ctx, name))
		theWorld.startManager(ctx)
		Eventually(state(ctx, name)).Should(Equal("Observing/On"))

		By("restoring the claim, which keeps the name of its server")
		create(ctx, theClaim)
		Eventually(claimCondition(ctx, "restored-late", "Bound")).Should(HavePrefix("False/"))
		Consistently(touched(m, before)).Should(BeEmpty())

		By("restoring the Server in the place of the one that was found")
		theWorld.stopManager()
		lost(ctx, getServer(ctx, name))
		create(ctx, theServer)
		theWorld.startManager(ctx)
		Eventually(claimCondition(ctx, "restored-late", "Ready")).Should(Equal("True/Running"))
		Consistently(touched(m, before)).Should(BeEmpty())
	})
})

var _ = Describe("A namespace of claims that is deleted", func() {
	It("releases each claim in it: what is to be retained is, and the rest is wiped and offered", func(ctx SpecContext) {
		namespace := create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
		wiped, retained := theWorld.available(ctx), theWorld.available(ctx)
		in := func(c *v1alpha1.ServerClaim) { c.Namespace = namespace.Name }
		create(ctx, newClaim("team-wiped", wiped, in))
		create(ctx, newClaim("team-retained", retained, in))
		for _, name := range []string{serverOf(wiped), serverOf(retained)} {
			Eventually(state(ctx, name)).Should(Equal("Reserved/On"))
		}
		changeServer(ctx, serverOf(retained), func(s *v1alpha1.Server) { s.Spec.ReclaimPolicy = v1alpha1.ReclaimPolicyRetain })
		Eventually(retained.Drives()[0].Contents).ShouldNot(BeEmpty())
		data := retained.Drives()[0].Contents()

		Expect(admin.Delete(ctx, namespace)).To(Succeed())
		Eventually(state(ctx, serverOf(wiped))).Should(Equal("Available/Off"))
		Expect(wiped.Drives()[0].Erased()).To(BeTrue())
		Eventually(state(ctx, serverOf(retained))).Should(Equal("Released/Off"))
		Expect(retained.Drives()[0].Contents()).To(Equal(data))
		Eventually(func() bool {
			return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(namespace), namespace))
		}).Should(BeTrue(), "nothing that we make keeps a namespace from going")
	})
})
