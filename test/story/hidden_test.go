// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/testkit"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// wiping is the default bundle under another version, with other words in its section wipe: pairs of what it says and what is put there.
func wiping(version string, pairs ...string) *bundle.Bundle {
	GinkgoHelper()
	files := shippedFiles()
	text := string(files["bundle.yaml"])
	for i := 0; i < len(pairs); i += 2 {
		Expect(strings.Count(text, pairs[i])).To(Equal(1), "the shipped bundle says %q once", pairs[i])
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	files["bundle.yaml"] = []byte(text)
	testkit.Rename(files, "", version)
	b, found, err := bundle.Compile(files, policies.Vocabulary())
	Expect(err).NotTo(HaveOccurred())
	Expect(found.Err()).NotTo(HaveOccurred())
	return b
}

// former is the default bundle that the build before shipped.
func former() *bundle.Bundle {
	GinkgoHelper()
	all, err := policies.Former()
	Expect(err).NotTo(HaveOccurred())
	b, found, err := bundle.Compile(all["default-1.0.0-9e2d2d5d15"], policies.Vocabulary())
	Expect(err).NotTo(HaveOccurred())
	Expect(found.Err()).NotTo(HaveOccurred())
	return b
}

// withFunction adds a machine that has a storage function without a driver.
func withFunction(ctx context.Context) *emulator.Machine {
	GinkgoHelper()
	return theWorld.machine(ctx, func(s *emulator.MachineSpec) {
		s.Functions = []emulator.FunctionSpec{{Address: "0000:03:00.0", ID: "1000:0014"}}
	})
}

var hiddenFunction = And(HaveField("Source", policyv1alpha1.HiddenByAgent), HaveField("Address", "0000:03:00.0"), HaveField("PCIID", "1000:0014"))

var _ = Describe("A machine with a storage function that has no driver", func() {
	It("is wiped and offered under a former bundle, which names it in the record and in a condition", func(ctx SpecContext) {
		govern(ctx, former())
		m := withFunction(ctx)
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		create(ctx, newClaim("hidden-former", m))
		Eventually(claimCondition(ctx, "hidden-former", "Ready")).Should(Equal("True/Running"))
		deleteClaim(ctx, "hidden-former")
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		Expect(records(ctx, m)).To(ConsistOf(HaveField("Spec", And(HaveField("State", policyv1alpha1.WipeVerified),
			HaveField("HiddenKnown", true), HaveField("BMCStorage", policyv1alpha1.BMCStorageListed), HaveField("Hidden", ConsistOf(hiddenFunction))))))
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionStorageHidden)).Should(Equal("True/NotShown"))
	})

	It("is not offered, and fails its wipe, until a person answers for it", func(ctx SpecContext) {
		By("a blank check that finds it")
		m := withFunction(ctx)
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(HavePrefix("Error/"))
		Expect(getServer(ctx, name).Status.Lifecycle).To(And(HaveField("Rule", "DataOnDisks"), HaveField("Marks", ContainElement("Dirty"))))
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionStorageHidden)).Should(Equal("True/NotShown"))

		By("a wipe that fails for it alone, which no breaker counts")
		operateFor(ctx, name, v1alpha1.OperationSanitize, "bought used", v1alpha1.OperationByAnnotation, "admin")
		Eventually(serverCondition(ctx, name, "Stalled")).Should(Equal("True/WipeFailed"))
		Expect(inventoryOf(ctx, m).Wipe).To(And(HaveField("State", policyv1alpha1.WipeFailed), HaveField("FailedForHidden", true),
			HaveField("Message", ContainSubstring("function 0000:03:00.0 PCI 1000:0014"))))
		history := getServer(ctx, name).Status.Lifecycle.History
		Expect(history[len(history)-1]).To(And(HaveField("To", v1alpha1.StateError), HaveField("Uncounted", true)))

		By("answering for it")
		operateFor(ctx, name, v1alpha1.OperationAttestDisk, "an empty adapter", v1alpha1.OperationByAnnotation, "admin",
			v1alpha1.AttestDiskAnnotation, "0000:03:00.0", v1alpha1.AttestMethodAnnotation, string(policyv1alpha1.AttestRemoved))
		Eventually(operated(ctx, name)).Should(Equal("attest-disk Succeeded"))
		operate(ctx, name, v1alpha1.OperationRetry)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		all := records(ctx, m)
		Expect(all[len(all)-1].Spec).To(And(HaveField("State", policyv1alpha1.WipeVerified),
			HaveField("Hidden", ConsistOf(And(hiddenFunction, HaveField("ExcusedBy", "admin"))))))
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionStorageHidden)).Should(Equal("none"))
	})

	It("is wiped and offered where the policy excuses the function, and the record says so", func(ctx SpecContext) {
		govern(ctx, wiping("2.9.1", "    excused: []\n", "    excused: [\"1000:0014\"]\n"))
		m := withFunction(ctx)
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		create(ctx, newClaim("hidden-excused", m))
		Eventually(claimCondition(ctx, "hidden-excused", "Ready")).Should(Equal("True/Running"))
		deleteClaim(ctx, "hidden-excused")
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		all := records(ctx, m)
		Expect(all[len(all)-1].Spec).To(And(HaveField("State", policyv1alpha1.WipeVerified),
			HaveField("Hidden", ConsistOf(And(hiddenFunction, HaveField("ExcusedBy", "policy"))))))
		Expect(serverCondition(ctx, name, v1alpha1.ConditionStorageHidden)()).To(Equal("none"))
	})
})
