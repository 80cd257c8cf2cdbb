// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// untouched expects that a machine and its BMC were asked for nothing but sessions.
func untouched(machines ...*emulator.Machine) {
	GinkgoHelper()
	for _, m := range machines {
		Expect(m.Writes()).To(BeEmpty())
	}
}

// twinOf adds a machine whose BMC shows the same system as another.
func (r *rig) twinOf(m *emulator.Machine, number int) *emulator.Machine {
	GinkgoHelper()
	return r.machine(number, func(s *emulator.MachineSpec) { s.Identity = m.Identity() })
}

func deleteServers(ctx context.Context) {
	GinkgoHelper()
	var list v1alpha1.ServerList
	Expect(admin.List(ctx, &list)).To(Succeed())
	for i := range list.Items {
		Expect(client.IgnoreNotFound(admin.Delete(ctx, &list.Items[i]))).To(Succeed())
	}
}

var _ = Describe("A stranger", func() {
	var r *rig

	BeforeEach(func(ctx SpecContext) {
		r = newRig(ctx)
	})

	It("that is the new BMC of a known system takes its Server over once the former Endpoint is deleted", func(ctx SpecContext) {
		m := r.machine(1, nil)
		replaced := r.twinOf(m, 2)
		r.start(ctx)
		former := createEndpoint(ctx, "e1", m.BMCMAC(), m.Address())
		Eventually(servers(ctx)).Should(ConsistOf(serverLine("e1-system-0", "e1", m, m.Identity().UUID)))
		Expect(m.SetReachability(emulator.Refusing)).To(Succeed())
		Expect(admin.Delete(ctx, former)).To(Succeed())
		createEndpoint(ctx, "e2", replaced.BMCMAC(), replaced.Address())
		Eventually(servers(ctx)).Should(ConsistOf(serverLine("e1-system-0", "e2", replaced, m.Identity().UUID)))
		Eventually(bmcCondition(ctx, "e2", "SystemsAccepted")).Should(Equal("True/SystemsKnown"))
		untouched(m, replaced)
	})

	It("that is a new system behind a known BMC is left alone until it is accepted", func(ctx SpecContext) {
		m := r.machine(1, nil)
		former := m.Identity().UUID
		r.start(ctx)
		createBMC(ctx, "b1", m.Address(), "password", nil)
		Eventually(servers(ctx)).Should(HaveLen(1))
		fresh := "0badcafe-0000-4000-8000-000000000002"
		whileAway(ctx, "b1", m, func() { m.SwapIdentity(emulator.Identity{UUID: fresh}) })
		Eventually(bmcCondition(ctx, "b1", "SystemsAccepted")).WithTimeout(nextIdentityRead).Should(Equal("False/SystemUnaccepted"))
		Expect(conditionMessage(ctx, "b1", "SystemsAccepted")).To(And(ContainSubstring(fresh), ContainSubstring(v1alpha1.AcceptSystemAnnotation)))
		annotate(ctx, "b1", v1alpha1.AcceptSystemAnnotation, "0badcafe-0000-4000-8000-00000000ffff") // not the one that is there
		Consistently(servers(ctx)).Should(ConsistOf(serverLine("b1-system-0", "b1", m, former)))
		untouched(m)
	})

	It("that shows the system of another BMC is refused, and is not touched", func(ctx SpecContext) {
		m := r.machine(1, nil)
		twin := r.twinOf(m, 2)
		r.start(ctx)
		createBMC(ctx, "old", m.Address(), "password", nil)
		Eventually(servers(ctx)).Should(HaveLen(1))
		createBMC(ctx, "new", twin.Address(), "password", nil)
		Eventually(bmcCondition(ctx, "new", "SystemsAccepted")).Should(Equal("False/SystemConflict"))
		Consistently(servers(ctx)).Should(ConsistOf(serverLine("old-system-0", "old", m, m.Identity().UUID)))
		Expect(bmcCondition(ctx, "old", "SystemsAccepted")()).To(Equal("True/SystemsKnown"))
		untouched(m, twin)
	})

	It("is each of two BMCs that show one system without an incumbent, also after a restart, until one is deleted", func(ctx SpecContext) {
		m := r.machine(1, nil)
		twin := r.twinOf(m, 2)
		r.start(ctx)
		createBMC(ctx, "b1", m.Address(), "password", nil)
		Eventually(servers(ctx)).Should(HaveLen(1))
		second := createBMC(ctx, "b2", twin.Address(), "password", nil)
		Eventually(bmcCondition(ctx, "b2", "SystemsAccepted")).Should(Equal("False/SystemConflict"))
		deleteServers(ctx)
		Eventually(bmcCondition(ctx, "b1", "SystemsAccepted")).Should(Equal("False/SystemConflict"))
		Consistently(servers(ctx)).Should(BeEmpty())

		r.restart(ctx)
		Consistently(servers(ctx)).WithTimeout(3 * time.Second).Should(BeEmpty())
		Expect(bmcCondition(ctx, "b1", "SystemsAccepted")()).To(Equal("False/SystemConflict"))
		Expect(bmcCondition(ctx, "b2", "SystemsAccepted")()).To(Equal("False/SystemConflict"))
		untouched(m, twin)

		Expect(admin.Delete(ctx, second)).To(Succeed())
		Eventually(servers(ctx)).Should(ConsistOf(serverLine("b1-system-0", "b1", m, m.Identity().UUID)))
	})

	It("that answers at the address of a BMC since a moment ago is not restarted in its place", func(ctx SpecContext) {
		m, other := r.machine(1, nil), r.machine(2, nil)
		r.bmcOptions.SteadyPoll = time.Hour // what was read before the exchange is all that is known
		r.start(ctx)
		createBMC(ctx, "b1", m.Address(), "password", nil)
		Eventually(servers(ctx)).Should(HaveLen(1))
		r.fleet.SwapAddresses(m, other)
		annotate(ctx, "b1", v1alpha1.OperationAnnotation, v1alpha1.OperationGracefulRestartBMC)
		Eventually(bmcCondition(ctx, "b1", "Reset")).Should(Equal("False/ResetFailed"))
		Expect(conditionMessage(ctx, "b1", "Reset")).To(ContainSubstring("nothing was written"))
		Expect(annotation(ctx, "b1", v1alpha1.OperationAnnotation)()).To(BeEmpty())
		untouched(m, other)
	})
})

var _ = Describe("A restart of a BMC that a former manager recorded", func() {
	It("is not asked for again, and says that nobody knows what became of it", func(ctx SpecContext) {
		r := newRig(ctx)
		m := r.machine(1, nil)
		r.start(ctx)
		createBMC(ctx, "b1", m.Address(), "password", nil)
		Eventually(servers(ctx)).Should(HaveLen(1))
		r.stop()
		Expect(r.pool.Close(ctx)).To(Succeed())
		annotate(ctx, "b1", v1alpha1.OperationAnnotation, v1alpha1.OperationGracefulRestartBMC)
		var b v1alpha1.BMC
		Expect(admin.Get(ctx, types.NamespacedName{Name: "b1"}, &b)).To(Succeed())
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReset, Status: metav1.ConditionTrue,
			Reason: v1alpha1.ReasonUserRequested, Message: "recorded", ObservedGeneration: b.Generation})
		Expect(admin.Status().Update(ctx, &b)).To(Succeed())
		r.start(ctx)
		Eventually(bmcCondition(ctx, "b1", "Reset")).Should(Equal("False/Interrupted"))
		Expect(annotation(ctx, "b1", v1alpha1.OperationAnnotation)()).To(BeEmpty())
		untouched(m)
	})
})

func conditionMessage(ctx context.Context, bmc, kind string) string {
	GinkgoHelper()
	var b v1alpha1.BMC
	Expect(admin.Get(ctx, types.NamespacedName{Name: bmc}, &b)).To(Succeed())
	c := meta.FindStatusCondition(b.Status.Conditions, kind)
	Expect(c).NotTo(BeNil())
	return c.Message
}
