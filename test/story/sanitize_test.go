// SPDX-License-Identifier: Apache-2.0

package story

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

var _ = Describe("A machine that is seen for the first time, with data on its disks", func() {
	It("is not offered, rests in Error with the disk's name, and is offered once a user had it sanitized", func(ctx SpecContext) {
		m := theWorld.machine(ctx, func(s *emulator.MachineSpec) {
			s.Drives = []emulator.DriveSpec{{Name: "nvme0n1", SizeBytes: 1e9, Contents: "the former owner's books"}, {Name: "nvme1n1", SizeBytes: 1e9}}
		})
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(HavePrefix("Error/"))
		s := getServer(ctx, name)
		Expect(s.Status.Lifecycle).To(And(HaveField("Rule", "DataOnDisks"), HaveField("Marks", ContainElement("Dirty"))))
		Eventually(func() string {
			return meta.FindStatusCondition(getServer(ctx, name).Status.Conditions, v1alpha1.ConditionReady).Message
		}).Should(HaveSuffix("Found: /dev/nvme0n1 (data at byte 0)."))
		inventory := &policyv1alpha1.ServerInventory{}
		Expect(admin.Get(ctx, types.NamespacedName{Name: s.Spec.SystemUUID}, inventory)).To(Succeed())
		Expect(inventory.Custody).To(And(HaveField("Marks", ContainElement("Dirty")), HaveField("DataFound.Disks", HaveLen(1))))

		By("a retry that changes nothing")
		changeServer(ctx, name, func(s *v1alpha1.Server) {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationAnnotation, v1alpha1.OperationRetry)
		})
		Eventually(func() string { return getServer(ctx, name).Status.Lifecycle.Rule }).Should(Equal("DataUnreleased"))
		Expect(m.Drives()[0].Contents()).To(Equal("the former owner's books"))

		By("a sanitize")
		changeServer(ctx, name, func(s *v1alpha1.Server) {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationAnnotation, v1alpha1.OperationSanitize)
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationReasonAnnotation, "bought used")
		})
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		Expect(m.Drives()[0].Contents()).To(BeEmpty())
		Expect(getServer(ctx, name).Status.Lifecycle.Marks).NotTo(ContainElement("Dirty"))
		Eventually(func() *policyv1alpha1.Custody {
			Expect(admin.Get(ctx, types.NamespacedName{Name: s.Spec.SystemUUID}, inventory)).To(Succeed())
			return inventory.Custody
		}).Should(And(HaveField("DataFound", BeNil()), HaveField("Clean.Cause", policyv1alpha1.CleanWiped)))
	})
})
