// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// nextIdentityRead is long enough for a BMC that changed its systems to be read.
const nextIdentityRead = 20 * time.Second

// expectNothingMade checks that the rig's controllers made no object since they began.
func (r *rig) expectNothingMade(ctx context.Context) {
	GinkgoHelper()
	for key, object := range present(ctx) {
		if _, given := object.(*v1alpha1.Endpoint); !given {
			Expect(r.before).To(HaveKey(key))
		}
	}
}

// change patches a cluster-scoped object as a user does.
func change[T client.Object](ctx context.Context, object T, name string, edit func(T)) {
	GinkgoHelper()
	Expect(admin.Get(ctx, types.NamespacedName{Name: name}, object)).To(Succeed())
	base, ok := object.DeepCopyObject().(client.Object)
	Expect(ok).To(BeTrue())
	edit(object)
	Expect(admin.Patch(ctx, object, client.MergeFrom(base))).To(Succeed())
}

func annotate(ctx context.Context, bmc, key, value string) {
	GinkgoHelper()
	change(ctx, &v1alpha1.BMC{}, bmc, func(b *v1alpha1.BMC) {
		if b.Annotations == nil {
			b.Annotations = map[string]string{}
		}
		b.Annotations[key] = value
	})
}

func annotation(ctx context.Context, bmc, key string) func() string {
	return func() string {
		var b v1alpha1.BMC
		Expect(admin.Get(ctx, types.NamespacedName{Name: bmc}, &b)).To(Succeed())
		return b.Annotations[key]
	}
}

// whileAway exchanges hardware as somebody at the rack does: the BMC is without power meanwhile, and that is seen.
func whileAway(ctx context.Context, bmc string, m *emulator.Machine, exchange func()) {
	GinkgoHelper()
	Expect(m.SetReachability(emulator.Refusing)).To(Succeed())
	Eventually(bmcCondition(ctx, bmc, "Ready")).Should(Equal("False/ConnectionFailed"))
	exchange()
	Expect(m.SetReachability(emulator.Reachable)).To(Succeed())
}

var _ = Describe("A BMC", func() {
	var r *rig

	BeforeEach(func(ctx SpecContext) {
		r = newRig(ctx)
	})

	It("that becomes unreachable says so, keeps its Servers, and is Ready again when it answers", func(ctx SpecContext) {
		m := r.machine(1, nil)
		r.start(ctx)
		createBMC(ctx, "b1", m.Address(), "password", nil)
		Eventually(bmcCondition(ctx, "b1", "Ready")).Should(Equal("True/Connected"))
		Eventually(servers(ctx)).Should(HaveLen(1))
		Expect(m.SetReachability(emulator.Refusing)).To(Succeed())
		Eventually(bmcCondition(ctx, "b1", "Ready")).Should(Equal("False/ConnectionFailed"))
		Expect(servers(ctx)()).To(HaveLen(1))
		Expect(m.SetReachability(emulator.Reachable)).To(Succeed())
		Eventually(bmcCondition(ctx, "b1", "Ready")).WithTimeout(40 * time.Second).Should(Equal("True/Connected"))
	})

	It("with a wrong password does not try it again, and takes the right one at once", func(ctx SpecContext) {
		m := r.machine(1, nil)
		r.start(ctx)
		createBMC(ctx, "b1", m.Address(), "wrong", nil)
		Eventually(bmcCondition(ctx, "b1", "Ready")).Should(Equal("False/AuthenticationFailed"))
		offered := m.FailedLogins()
		Consistently(m.FailedLogins).WithTimeout(3 * time.Second).Should(Equal(offered))
		change(ctx, &v1alpha1.BMCSecret{}, "b1", func(s *v1alpha1.BMCSecret) { s.Data["password"] = []byte("password") })
		Eventually(bmcCondition(ctx, "b1", "Ready")).WithTimeout(5 * time.Second).Should(Equal("True/Connected"))
		Expect(m.FailedLogins()).To(Equal(offered))
	})

	It("without its secret says so, and is read as soon as there is one", func(ctx SpecContext) {
		m := r.machine(1, nil)
		r.start(ctx)
		b := createBMC(ctx, "b1", m.Address(), "password", nil)
		Eventually(bmcCondition(ctx, "b1", "Ready")).Should(Equal("True/Connected"))
		Expect(admin.Delete(ctx, &v1alpha1.BMCSecret{ObjectMeta: b.ObjectMeta}, client.Preconditions{})).To(Succeed())
		Eventually(bmcCondition(ctx, "b1", "Ready")).Should(Equal("False/SecretMissing"))
		createSecret(ctx, "b1", "password")
		Eventually(bmcCondition(ctx, "b1", "Ready")).Should(Equal("True/Connected"))
	})

	It("hands its labels to its Servers, and changes of them, and leaves the Servers' own alone", func(ctx SpecContext) {
		m := r.machine(1, nil)
		r.start(ctx)
		createBMC(ctx, "b1", m.Address(), "password", map[string]string{"rack": "r1", "row": "w1"})
		Eventually(servers(ctx)).Should(HaveLen(1))
		change(ctx, &v1alpha1.Server{}, "b1-system-0", func(s *v1alpha1.Server) { s.Labels["own"] = "x" })
		change(ctx, &v1alpha1.BMC{}, "b1", func(b *v1alpha1.BMC) { b.Labels = map[string]string{"rack": "r2"} })
		Eventually(func() map[string]string {
			var s v1alpha1.Server
			Expect(admin.Get(ctx, types.NamespacedName{Name: "b1-system-0"}, &s)).To(Succeed())
			return s.Labels
		}).Should(Equal(map[string]string{"rack": "r2", "own": "x"}))
	})

	It("whose systems change places keeps the names of their Servers", func(ctx SpecContext) {
		m := r.machine(1, nil)
		n := r.machine(2, func(s *emulator.MachineSpec) { s.Behind = m })
		first, second := m.Identity(), n.Identity()
		r.start(ctx)
		createBMC(ctx, "b1", m.Address(), "password", nil)
		Eventually(servers(ctx)).Should(ConsistOf(serverLine("b1-system-0", "b1", m, first.UUID), serverLine("b1-system-1", "b1", n, second.UUID)))
		whileAway(ctx, "b1", m, func() {
			m.SwapIdentity(second)
			n.SwapIdentity(first)
		})
		Eventually(servers(ctx)).WithTimeout(nextIdentityRead).Should(ConsistOf(
			serverLine("b1-system-0", "b1", n, first.UUID), serverLine("b1-system-1", "b1", m, second.UUID)))
	})

	It("behind which another system appears in the place of one asks before it is managed", func(ctx SpecContext) {
		m := r.machine(1, nil)
		former := m.Identity().UUID
		r.start(ctx)
		createBMC(ctx, "b1", m.Address(), "password", nil)
		Eventually(servers(ctx)).Should(HaveLen(1))
		fresh := "0badcafe-0000-4000-8000-000000000001"
		whileAway(ctx, "b1", m, func() { m.SwapIdentity(emulator.Identity{UUID: fresh}) })
		Eventually(bmcCondition(ctx, "b1", "SystemsAccepted")).WithTimeout(nextIdentityRead).Should(Equal("False/SystemUnaccepted"))
		Expect(servers(ctx)()).To(HaveLen(1))
		annotate(ctx, "b1", v1alpha1.AcceptSystemAnnotation, fresh)
		Eventually(servers(ctx)).Should(ConsistOf(serverLine("b1-system-0", "b1", m, former), serverLine("b1-system-1", "b1", m, fresh)))
		Eventually(annotation(ctx, "b1", v1alpha1.AcceptSystemAnnotation)).Should(BeEmpty())
	})

	It("that replaces a deleted one takes over its Server, which keeps its name", func(ctx SpecContext) {
		m := r.machine(1, nil)
		r.start(ctx)
		old := createBMC(ctx, "old", m.Address(), "password", nil)
		Eventually(servers(ctx)).Should(HaveLen(1))
		Expect(admin.Delete(ctx, old)).To(Succeed())
		Eventually(bmcCondition(ctx, "old", "Ready")).Should(Equal("NotFound"))
		Expect(servers(ctx)()).To(HaveLen(1))
		createBMC(ctx, "new", m.Address(), "password", nil)
		Eventually(servers(ctx)).Should(ConsistOf(serverLine("old-system-0", "new", m, m.Identity().UUID)))
	})

	It("that shows the system of another is refused while that one answers, and takes it over when it is lost", func(ctx SpecContext) {
		m := r.machine(1, nil)
		twin := r.machine(2, func(s *emulator.MachineSpec) { s.Identity = m.Identity() })
		r.start(ctx)
		createBMC(ctx, "old", m.Address(), "password", nil)
		Eventually(servers(ctx)).Should(HaveLen(1))
		createBMC(ctx, "new", twin.Address(), "password", nil)
		Eventually(bmcCondition(ctx, "new", "SystemsAccepted")).Should(Equal("False/SystemConflict"))
		Expect(bmcCondition(ctx, "new", "Ready")()).To(Equal("True/Connected"))
		Consistently(servers(ctx)).Should(ConsistOf(serverLine("old-system-0", "old", m, m.Identity().UUID)))
		Expect(m.SetReachability(emulator.Refusing)).To(Succeed())
		Eventually(servers(ctx)).Should(ConsistOf(serverLine("old-system-0", "new", twin, m.Identity().UUID)))
		Eventually(bmcCondition(ctx, "new", "SystemsAccepted")).Should(Equal("True/SystemsKnown"))
	})

	It("that shows the UUID of another machine never takes its Server over", func(ctx SpecContext) {
		m := r.machine(1, nil)
		twin := r.machine(2, func(s *emulator.MachineSpec) {
			s.Identity = emulator.Identity{UUID: m.Identity().UUID, SerialNumber: "ANOTHER"}
		})
		r.start(ctx)
		createBMC(ctx, "old", m.Address(), "password", nil)
		Eventually(servers(ctx)).Should(HaveLen(1))
		var s v1alpha1.Server
		Expect(admin.Get(ctx, types.NamespacedName{Name: "old-system-0"}, &s)).To(Succeed())
		s.Status.SerialNumber = m.Identity().SerialNumber
		Expect(admin.Status().Update(ctx, &s)).To(Succeed())
		Expect(m.SetReachability(emulator.Refusing)).To(Succeed())
		Eventually(bmcCondition(ctx, "old", "Ready")).Should(Equal("False/ConnectionFailed"))
		createBMC(ctx, "new", twin.Address(), "password", nil)
		Eventually(bmcCondition(ctx, "new", "SystemsAccepted")).Should(Equal("False/SystemConflict"))
		Consistently(servers(ctx)).WithTimeout(4 * time.Second).Should(ConsistOf(serverLine("old-system-0", "old", m, m.Identity().UUID)))
	})

	It("is restarted once when that is asked for", func(ctx SpecContext) {
		m := r.machine(1, nil)
		r.start(ctx)
		createBMC(ctx, "b1", m.Address(), "password", nil)
		Eventually(servers(ctx)).Should(HaveLen(1))
		annotate(ctx, "b1", v1alpha1.OperationAnnotation, v1alpha1.OperationGracefulRestartBMC)
		Eventually(bmcCondition(ctx, "b1", "Reset")).Should(Equal("False/ResetComplete"))
		Expect(annotation(ctx, "b1", v1alpha1.OperationAnnotation)()).To(BeEmpty())
		Expect(r.fleet.Writes(emulator.Filter{Path: "**/Manager.Reset"})).To(HaveLen(1))
		Eventually(bmcCondition(ctx, "b1", "Ready")).Should(Equal("True/Connected"))
	})

	It("takes an operation away that it cannot act upon", func(ctx SpecContext) {
		m := r.machine(1, nil)
		r.start(ctx)
		createBMC(ctx, "b1", m.Address(), "password", nil)
		for _, operation := range []string{"dance", v1alpha1.OperationRotateCredentials} {
			annotate(ctx, "b1", v1alpha1.OperationAnnotation, operation)
			Eventually(annotation(ctx, "b1", v1alpha1.OperationAnnotation)).Should(BeEmpty())
		}
	})

	It("that is to be ignored is left alone", func(ctx SpecContext) {
		m := r.machine(1, nil)
		r.start(ctx)
		createBMC(ctx, "b1", m.Address(), "password", nil)
		Eventually(bmcCondition(ctx, "b1", "Ready")).Should(Equal("True/Connected"))
		annotate(ctx, "b1", v1alpha1.OperationAnnotation, v1alpha1.OperationIgnore)
		Expect(m.SetReachability(emulator.Refusing)).To(Succeed())
		Consistently(bmcCondition(ctx, "b1", "Ready")).WithTimeout(2 * time.Second).Should(Equal("True/Connected"))
		change(ctx, &v1alpha1.BMC{}, "b1", func(b *v1alpha1.BMC) { delete(b.Annotations, v1alpha1.OperationAnnotation) })
		Eventually(bmcCondition(ctx, "b1", "Ready")).Should(Equal("False/ConnectionFailed"))
	})

	It("that is to be ignored with its children holds its Servers until it no longer is", func(ctx SpecContext) {
		m := r.machine(1, nil)
		r.start(ctx)
		createBMC(ctx, "b1", m.Address(), "password", nil)
		Eventually(bmcCondition(ctx, "b1", "Ready")).Should(Equal("True/Connected"))
		held := func() string {
			s := &v1alpha1.Server{}
			Expect(client.IgnoreNotFound(admin.Get(ctx, client.ObjectKey{Name: "b1-system-0"}, s))).To(Succeed())
			return s.Annotations[v1alpha1.HeldByBMCAnnotation]
		}
		Eventually(func() error {
			return admin.Get(ctx, client.ObjectKey{Name: "b1-system-0"}, &v1alpha1.Server{})
		}).Should(Succeed())
		for _, operation := range []string{"ignore-child", "ignore-child-and-self-reconciliation"} {
			annotate(ctx, "b1", v1alpha1.OperationAnnotation, operation)
			Eventually(held).Should(Equal("b1"))
			Consistently(annotation(ctx, "b1", v1alpha1.OperationAnnotation)).WithTimeout(time.Second).Should(Equal(operation))
			annotate(ctx, "b1", v1alpha1.OperationAnnotation, "ignore-for-audit")
			Eventually(held).Should(BeEmpty())
			Consistently(annotation(ctx, "b1", v1alpha1.OperationAnnotation)).WithTimeout(time.Second).
				Should(Equal("ignore-for-audit"), "a word that nobody knows protects too")
		}
		change(ctx, &v1alpha1.BMC{}, "b1", func(b *v1alpha1.BMC) { delete(b.Annotations, v1alpha1.OperationAnnotation) })
	})
})
