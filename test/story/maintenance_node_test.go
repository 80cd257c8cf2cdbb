// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/test/cloud"
)

// startCloud runs the stand-in of the cloud controller for the rest of a spec.
func startCloud(ctx context.Context) {
	GinkgoHelper()
	mgr, err := ctrl.NewManager(controlPlane.Config, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	Expect(err).NotTo(HaveOccurred())
	Expect(cloud.Setup(mgr)).To(Succeed())
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	DeferCleanup(func() {
		cancel()
		Expect(<-ended).To(Succeed())
	})
}

func getNode(ctx context.Context, name string) *corev1.Node {
	GinkgoHelper()
	n := &corev1.Node{}
	Expect(admin.Get(ctx, types.NamespacedName{Name: name}, n)).To(Succeed())
	return n
}

// labelNode gives a Node a label with the value "true", or takes it off.
func labelNode(ctx context.Context, name, key string, on bool) {
	GinkgoHelper()
	Eventually(func() error {
		n := getNode(ctx, name)
		if delete(n.Labels, key); on {
			metav1.SetMetaDataLabel(&n.ObjectMeta, key, "true")
		}
		return admin.Update(ctx, n)
	}).Should(Succeed())
}

var _ = Describe("The cloud controller of a cluster whose Nodes run on claimed servers", func() {
	It("asks for a maintenance by a label of the Node, hands its approval on, and ends it", func(ctx SpecContext) {
		m := claimed(ctx, "node")
		name := serverOf(m)
		startCloud(ctx)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Spec: corev1.NodeSpec{ProviderID: "metal://" + tenants + "/node"}}
		create(ctx, node)
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(admin.Delete(ctx, node))).To(Succeed()) })
		one := &v1alpha1.ServerMaintenance{}
		found := func() error { return admin.Get(ctx, types.NamespacedName{Namespace: tenants, Name: "node"}, one) }

		By("requesting it")
		labelNode(ctx, "node", v1alpha1.MaintenanceRequestedLabel, true)
		Eventually(found).Should(Succeed())
		Expect(one.Spec).To(And(HaveField("Priority", int32(100)), HaveField("Policy", v1alpha1.ServerMaintenancePolicyOwnerApproval),
			HaveField("ServerRef.Name", name)))
		Eventually(answered(ctx, one)).Should(Equal(waitsForApproval))
		Eventually(func() map[string]string { return getNode(ctx, "node").Labels }).
			Should(HaveKeyWithValue(v1alpha1.MaintenanceNeededLabel, "true"))

		By("approving it")
		labelNode(ctx, "node", v1alpha1.MaintenanceApprovedLabel, true)
		Eventually(state(ctx, name)).Should(Equal("Maintenance/On"))
		Eventually(answered(ctx, one)).Should(Equal(inMaintenance))

		By("taking the request back")
		labelNode(ctx, "node", v1alpha1.MaintenanceRequestedLabel, false)
		Eventually(answered(ctx, one)).Should(Equal("gone"))
		Eventually(traces(ctx, name, "node", "node")).Should(ConsistOf(tenants+"/node"), "the claim's own boot configuration has that name")
		Eventually(state(ctx, name)).Should(Equal("Reserved/On"))
		Eventually(func() []string { return getNode(ctx, "node").Finalizers }).Should(BeEmpty())
		Eventually(func() map[string]string { return getNode(ctx, "node").Labels }).ShouldNot(HaveKey(v1alpha1.MaintenanceNeededLabel))
	})

	It("ends it when the Node is deleted", func(ctx SpecContext) {
		m := claimed(ctx, "node-goes")
		startCloud(ctx)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-goes", Labels: map[string]string{
			v1alpha1.MaintenanceRequestedLabel: "true", v1alpha1.MaintenanceApprovedLabel: "true"}}}
		node.Spec.ProviderID = "metal://" + tenants + "/node-goes"
		create(ctx, node)
		Eventually(holder(ctx, serverOf(m))).Should(Equal("node-goes"))
		Expect(admin.Delete(ctx, node)).To(Succeed())
		Eventually(func() error { return admin.Get(ctx, client.ObjectKeyFromObject(node), node) }).Should(MatchError(ContainSubstring("not found")))
		Eventually(holder(ctx, serverOf(m))).Should(BeEmpty())
		Eventually(asked(ctx, "node-goes")).Should(BeEmpty())
		Eventually(claimCondition(ctx, "node-goes", "Ready")).Should(Equal("True/Running"))
	})
})
