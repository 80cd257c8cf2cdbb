// SPDX-License-Identifier: Apache-2.0

package story

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/test/env"
)

var _ = Describe("A claim that is deleted with --cascade=orphan", func() {
	It("leaves no boot configuration behind, and one that a former build left does not stop the next claim", func(ctx SpecContext) {
		const name = "orphaned"
		create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: "olga-edit"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "olga"}}})
		rights, err := controlPlane.ConfigFor(env.User{Name: "olga"})
		Expect(err).NotTo(HaveOccurred())
		olga, err := client.New(rights, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		m := claimed(ctx, name)
		left := getBoot(ctx, tenants, name)

		By("deleting it as a tenant, while the garbage collector is faster than the manager")
		theWorld.stopManager()
		Eventually(func() error {
			return olga.Delete(ctx, getClaim(ctx, name), client.PropagationPolicy(metav1.DeletePropagationOrphan))
		}).Should(Succeed())
		Eventually(func() int { return len(getBoot(ctx, tenants, name).OwnerReferences) }).Should(BeZero())
		theWorld.startManager(ctx)
		Eventually(claimCondition(ctx, name, "Bound")).Should(Equal("NotFound"))
		Eventually(func() bool {
			return apierrors.IsNotFound(admin.Get(ctx, types.NamespacedName{Namespace: tenants, Name: name}, &v1alpha1.ServerBootConfiguration{}))
		}).Should(BeTrue())
		Eventually(state(ctx, serverOf(m))).Should(Equal("Available/Off"))

		By("claiming under the name again, where a former build left the boot configuration of another server")
		again := &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: name, Annotations: left.Annotations},
			Spec: left.Spec}
		again.Spec.ServerRef.Name, again.Spec.Image = "another-server", "former:1"
		create(ctx, again)
		// IronCore's boot operator compares names alone, so that one of the same name elsewhere would do as well.
		elsewhere := &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: managerNamespace, Name: name,
			Annotations: left.Annotations}, Spec: left.Spec}
		create(ctx, elsewhere)
		create(ctx, newClaim(name, m))
		Eventually(claimCondition(ctx, name, "Ready")).Should(Equal("True/Running"))
		now := getBoot(ctx, tenants, name)
		Expect(now.UID).NotTo(Equal(again.UID))
		Expect(now.Spec.ServerRef.Name + " " + now.Spec.Image).To(Equal(serverOf(m) + " os:1"))
		Expect(metav1.IsControlledBy(now, getClaim(ctx, name))).To(BeTrue())
		Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(elsewhere), elsewhere))).To(BeTrue(), "it named the machine")
		deleteClaim(ctx, name)
	})
})
