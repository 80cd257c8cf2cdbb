// SPDX-License-Identifier: Apache-2.0

package story

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	sanitization "github.com/metalaw/metalaw/metalprobe/registry/record"
)

var _ = Describe("The whole way", func() {
	It("goes from a BMC to a claimed, released, cleaned and offered server", func(ctx SpecContext) {
		m := theWorld.machine(ctx, nil)
		name := serverOf(m)
		By("being inspected and offered, powered off")
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		s := getServer(ctx, name)
		Expect(s.Status.NetworkInterfaces).NotTo(BeEmpty())
		Expect(s.Status.Processors).NotTo(BeEmpty())
		Eventually(serverCondition(ctx, name, "Ready")).Should(Equal("True/Stable"))
		inventory := &policyv1alpha1.ServerInventory{}
		Expect(admin.Get(ctx, types.NamespacedName{Name: s.Spec.SystemUUID}, inventory)).To(Succeed())
		Expect(inventory.Report).NotTo(BeNil())

		By("being claimed and booted as the claim asks")
		create(ctx, newClaim("whole-way", m))
		Eventually(claimCondition(ctx, "whole-way", "Ready")).Should(Equal("True/Running"))
		Expect(state(ctx, name)()).To(Equal("Reserved/On"))
		Expect(running(m)()).To(Equal("Pxe"))
		for _, d := range m.Drives() {
			Expect(d.Contents()).NotTo(BeEmpty(), "the claim's operating system writes to the disks")
		}

		By("being released, erased and offered again")
		deleteClaim(ctx, "whole-way")
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		for _, d := range m.Drives() {
			Expect(d.Contents()).To(BeEmpty())
			Expect(d.Erased()).To(BeTrue())
		}
		records := &policyv1alpha1.SanitizationRecordList{}
		Expect(admin.List(ctx, records, client.MatchingLabels{policyv1alpha1.RecordMachineLabel: s.Spec.SystemUUID})).To(Succeed())
		Expect(records.Items).To(HaveLen(1), "the wipe is recorded before the server is offered")
		Expect(sanitization.Verify(records.Items)).To(Succeed())
		Expect(records.Items[0].Spec.Media).To(HaveLen(len(m.Drives())))
		Expect(records.Items[0].Spec.Holder.Name).To(Equal("whole-way"))
		Expect(records.Items[0].Spec.PolicyDigest).NotTo(BeEmpty())
		Expect(records.Items[0].Spec.AgentImage).NotTo(BeEmpty())
		s = getServer(ctx, name)
		Expect(s.Status.Lifecycle.Marks).To(Equal([]string{"Managed"}))
		Eventually(func() map[string]string { return getServer(ctx, name).Annotations }).ShouldNot(HaveKey(v1alpha1.ClaimUIDAnnotation))
		var rules []string
		for _, move := range s.Status.Lifecycle.History {
			rules = append(rules, move.Rule)
		}
		Expect(rules).To(Equal([]string{"ProbeDue", "ProbeReported", "Claimed", "ClaimEnded", "Wiped"}))
	})
})
