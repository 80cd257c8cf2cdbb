// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// bootsNamed matches the boot configurations of a name, for a policy of the cluster.
func bootsNamed(name string) (*admissionv1.MatchResources, []admissionv1.MatchCondition) {
	return &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule: admissionv1.Rule{APIGroups: []string{v1alpha1.GroupVersion.Group}, APIVersions: []string{"*"},
			Resources: []string{"serverbootconfigurations"}},
	}}}}, []admissionv1.MatchCondition{{Name: "named", Expression: fmt.Sprintf("object.metadata.name == %q", name)}}
}

// refuseBoots has a policy of the cluster refuse the boot configurations of a name, and returns what ends that.
func refuseBoots(ctx SpecContext, name string) (end func(context.Context)) {
	GinkgoHelper()
	resources, conditions := bootsNamed(name)
	policy := create(ctx, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{MatchConstraints: resources, MatchConditions: conditions,
			Validations: []admissionv1.Validation{{Expression: "false", Message: "no boot of this name"}}}})
	binding := create(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}})
	Eventually(func() error { return tryBoot(ctx, name) }).Should(MatchError(ContainSubstring("no boot of this name")))
	return func(ctx context.Context) {
		Expect(client.IgnoreNotFound(admin.Delete(ctx, binding))).To(Succeed())
		Expect(client.IgnoreNotFound(admin.Delete(ctx, policy))).To(Succeed())
	}
}

// changeBoots has a policy of the cluster write another image into the boot configurations of a name.
func changeBoots(ctx SpecContext, name, image string) {
	GinkgoHelper()
	resources, conditions := bootsNamed(name)
	create(ctx, &admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.MutatingAdmissionPolicySpec{MatchConstraints: resources, MatchConditions: conditions,
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: fmt.Sprintf("Object{spec: Object.spec{image: %q}}", image)}}}}})
	create(ctx, &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name}})
	Eventually(func(g Gomega) {
		boot := triedBoot(name)
		g.Expect(admin.Create(ctx, boot, client.DryRunAll)).To(Succeed())
		g.Expect(boot.Spec.Image).To(Equal(image))
	}).Should(Succeed())
}

func triedBoot(name string) *v1alpha1.ServerBootConfiguration {
	boot := &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: name}}
	boot.Spec.ServerRef.Name, boot.Spec.Image = "none", "os:1"
	return boot
}

func tryBoot(ctx SpecContext, name string) error {
	return admin.Create(ctx, triedBoot(name), client.DryRunAll)
}

// claimSays is the message of a condition of a claim.
func claimSays(ctx SpecContext, name, kind string) string {
	GinkgoHelper()
	c := meta.FindStatusCondition(getClaim(ctx, name).Status.Conditions, kind)
	Expect(c).NotTo(BeNil())
	return c.Message
}

var _ = Describe("A claim that does not go on", func() {
	It("quotes the API server that refuses its boot configuration, and goes on once it is let through", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		name := serverOf(m)
		end := refuseBoots(ctx, "refused-boot")
		DeferCleanup(end)
		create(ctx, newClaim("refused-boot", m))
		Eventually(claimCondition(ctx, "refused-boot", "Ready")).WithTimeout(soon).Should(Equal("False/BootConfigurationRefused"))
		Expect(claimCondition(ctx, "refused-boot", "Stalled")()).To(Equal("True/BootConfigurationRefused"))
		Expect(claimSays(ctx, "refused-boot", "Ready")).To(And(
			ContainSubstring("ServerBootConfiguration "+tenants+"/refused-boot"), ContainSubstring("no boot of this name")))
		Expect(serverCondition(ctx, name, "Stalled")()).To(Equal("True/BootConfigurationRefused"))
		Eventually(eventReasons(ctx, name)).Should(ContainElement(v1alpha1.ReasonBootConfigurationRefused))
		end(ctx)
		Eventually(claimCondition(ctx, "refused-boot", "Ready")).WithTimeout(2 * time.Minute).Should(Equal("True/Running"))
		Expect(claimCondition(ctx, "refused-boot", "Stalled")()).To(Equal("none"))
		Eventually(serverCondition(ctx, name, "Stalled")).Should(Equal("none"))
	})

	It("names the field that a policy of the cluster changes in its boot configuration", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		changeBoots(ctx, "changed-boot", "mirror/os:1")
		create(ctx, newClaim("changed-boot", m))
		Eventually(claimCondition(ctx, "changed-boot", "Ready")).Should(Equal("False/BootConfigurationChanged"))
		Expect(claimCondition(ctx, "changed-boot", "Stalled")()).To(Equal("True/BootConfigurationChanged"))
		Expect(claimSays(ctx, "changed-boot", "Ready")).To(ContainSubstring("changes spec.image of ServerBootConfiguration"))
		Eventually(running(m)).Should(Equal("Pxe"), "the machine boots what stands there")

		By("asking for the same as the policy")
		changeClaim(ctx, "changed-boot", func(c *v1alpha1.ServerClaim) { c.Spec.Image = "mirror/os:1" })
		Eventually(claimCondition(ctx, "changed-boot", "Ready")).Should(Equal("True/Running"))
	})

	It("is in progress for tools that follow kstatus before it has a status", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		theWorld.stopManager()
		create(ctx, newClaim("no-status", m))
		c := &unstructured.Unstructured{}
		c.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ServerClaim"))
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: tenants, Name: "no-status"}, c)).To(Succeed())
		observed, _, err := unstructured.NestedInt64(c.Object, "status", "observedGeneration")
		Expect(err).NotTo(HaveOccurred())
		Expect(observed).To(Equal(int64(-1)))
		theWorld.startManager(ctx)
		Eventually(claimCondition(ctx, "no-status", "Ready")).Should(Equal("True/Running"))
		Expect(getClaim(ctx, "no-status").Status.ObservedGeneration).To(Equal(getClaim(ctx, "no-status").Generation))
	})
})
