// SPDX-License-Identifier: Apache-2.0

package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

var _ = Describe("An Endpoint", func() {
	var r *rig

	BeforeEach(func(ctx SpecContext) {
		r = newRig(ctx)
	})

	It("becomes a BMC with its secret and its Server", func(ctx SpecContext) {
		m := r.machine(1, nil)
		r.start(ctx)
		createEndpoint(ctx, "e1", m.BMCMAC(), m.Address())
		Eventually(endpointCondition(ctx, "e1", "Ready")).Should(Equal("True/BMCCreated"))
		Eventually(bmcCondition(ctx, "e1", "Ready")).Should(Equal("True/Connected"))
		Eventually(servers(ctx)).Should(ConsistOf(serverLine("e1-system-0", "e1", m, m.Identity().UUID)))

		var bmc v1alpha1.BMC
		Expect(admin.Get(ctx, types.NamespacedName{Name: "e1"}, &bmc)).To(Succeed())
		Expect(bmc.Spec.ConsoleProtocol).To(HaveValue(Equal(v1alpha1.ConsoleProtocol{Name: "SSH", Port: 22})))
		Expect(bmc.Status.State).To(Equal(v1alpha1.BMCStateEnabled))
		Expect(bmc.Status.IP).To(Equal(m.Address()))
		Expect(bmc.Status.MACAddress).To(Equal(m.BMCMAC()))
		Expect(bmc.Status.Manufacturer).NotTo(BeEmpty())
		Expect(bmc.Finalizers).To(ConsistOf(v1alpha1.FinalizerBMC))
		var secret v1alpha1.BMCSecret
		Expect(admin.Get(ctx, types.NamespacedName{Name: "e1"}, &secret)).To(Succeed())
		Expect(secret.Data).To(Equal(map[string][]byte{"username": []byte("admin"), "password": []byte("password")}))
		Expect(m.FailedLogins()).To(BeNumerically("<=", 2), "the outdated account is offered once, as a session and as Basic")
	})

	It("is discovered with few writes", func(ctx SpecContext) {
		m := r.machine(1, nil)
		r.start(ctx)
		writes := countWrites(ctx)
		createEndpoint(ctx, "e1", m.BMCMAC(), m.Address())
		Eventually(servers(ctx)).Should(HaveLen(1))
		Eventually(bmcCondition(ctx, "e1", "Ready")).Should(Equal("True/Connected"))
		Consistently(writes).Should(And(
			HaveKeyWithValue("Endpoint", BeNumerically("<=", 3)), // the user's, the finalizer, the status
			HaveKeyWithValue("BMC", BeNumerically("<=", 2)),      // made with its finalizer, the status
			HaveKeyWithValue("Server", 1), HaveKeyWithValue("BMCSecret", 1)))
	})

	It("with a malformed MAC address is refused by the API server", func(ctx SpecContext) {
		e := &v1alpha1.Endpoint{ObjectMeta: metav1.ObjectMeta{Name: "e"}, Spec: v1alpha1.EndpointSpec{MACAddress: "b0:7b:25", IP: "127.66.0.1"}}
		Expect(apierrors.IsInvalid(admin.Create(ctx, e))).To(BeTrue())
	})

	It("with the MAC address of no port says so, and nothing else changes", func(ctx SpecContext) {
		r.start(ctx)
		createEndpoint(ctx, "e1", "01:00:5e:00:00:01", "127.66.0.1")
		Eventually(endpointCondition(ctx, "e1", "Matched")).Should(Equal("False/InvalidMAC"))
		r.expectNothingMade(ctx)
	})

	It("with an unknown prefix says so, and nothing else changes", func(ctx SpecContext) {
		r.start(ctx)
		createEndpoint(ctx, "e1", "b0:7b:25:00:00:01", "127.66.0.1")
		Eventually(endpointCondition(ctx, "e1", "Matched")).Should(Equal("False/UnknownPrefix"))
		Expect(endpointCondition(ctx, "e1", "Ready")()).To(Equal("False/UnknownPrefix"))
		r.expectNothingMade(ctx)
	})

	It("that does not answer says so, and is a BMC when it does", func(ctx SpecContext) {
		m := r.machine(1, nil)
		Expect(m.SetReachability(emulator.Refusing)).To(Succeed())
		r.start(ctx)
		createEndpoint(ctx, "e1", m.BMCMAC(), m.Address())
		Eventually(endpointCondition(ctx, "e1", "Ready")).Should(Equal("False/ConnectionFailed"))
		Expect(endpointCondition(ctx, "e1", "Matched")()).To(Equal("True/PrefixFound"))
		r.expectNothingMade(ctx)
		Expect(m.SetReachability(emulator.Reachable)).To(Succeed())
		Eventually(endpointCondition(ctx, "e1", "Ready")).Should(Equal("True/BMCCreated"))
	})

	It("whose factory accounts are refused offers each once, also when the manager restarts, and takes a secret made by hand", func(ctx SpecContext) {
		m := r.machine(1, func(s *emulator.MachineSpec) { s.Password = "changed" })
		r.start(ctx)
		createEndpoint(ctx, "e1", m.BMCMAC(), m.Address())
		Eventually(endpointCondition(ctx, "e1", "Ready")).Should(Equal("False/CredentialsRefused"))
		offered := m.FailedLogins()
		Expect(offered).To(BeNumerically("<=", 4), "two accounts, each as a session and as Basic")
		r.expectNothingMade(ctx)

		r.restart(ctx)
		Consistently(m.FailedLogins).Should(Equal(offered))
		createSecret(ctx, "e1", "changed")
		Eventually(bmcCondition(ctx, "e1", "Ready")).Should(Equal("True/Connected"))
		Expect(m.FailedLogins()).To(Equal(offered))
	})

	It("whose row names no account asks for a secret, and never overwrites one", func(ctx SpecContext) {
		m := r.machine(1, func(s *emulator.MachineSpec) { s.BMCMAC, s.Password = "02:4d:4d:00:00:01", "rotated" })
		r.start(ctx)
		createEndpoint(ctx, "e1", m.BMCMAC(), m.Address())
		Eventually(endpointCondition(ctx, "e1", "Ready")).Should(Equal("False/NoCredentials"))
		secret := createSecret(ctx, "e1", "rotated")
		Eventually(bmcCondition(ctx, "e1", "Ready")).Should(Equal("True/Connected"))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
		Expect(string(secret.Data["password"])).To(Equal("rotated"))
	})

	It("whose name another BMC has says so, and leaves that one alone", func(ctx SpecContext) {
		m := r.machine(1, nil)
		r.start(ctx)
		createBMC(ctx, "e1", "127.66.0.99", "x", nil)
		createEndpoint(ctx, "e1", m.BMCMAC(), m.Address())
		Eventually(endpointCondition(ctx, "e1", "Ready")).Should(Equal("False/NameTaken"))
	})

	It("that gets another address is followed, and what answers at the old one is not taken for it", func(ctx SpecContext) {
		m, other := r.machine(1, nil), r.machine(2, nil)
		r.start(ctx)
		e := createEndpoint(ctx, "e1", m.BMCMAC(), m.Address())
		Eventually(servers(ctx)).Should(ConsistOf(serverLine("e1-system-0", "e1", m, m.Identity().UUID)))
		r.fleet.SwapAddresses(m, other)
		Eventually(bmcCondition(ctx, "e1", "SystemsAccepted")).WithTimeout(nextIdentityRead).Should(Equal("False/SystemUnaccepted"))
		patch := client.MergeFrom(e.DeepCopy())
		e.Spec.IP = m.Address()
		Expect(admin.Patch(ctx, e, patch)).To(Succeed())
		Eventually(func() string {
			var bmc v1alpha1.BMC
			Expect(admin.Get(ctx, types.NamespacedName{Name: "e1"}, &bmc)).To(Succeed())
			return bmc.Status.IP
		}).Should(Equal(m.Address()))
		Eventually(bmcCondition(ctx, "e1", "SystemsAccepted")).Should(Equal("True/SystemsKnown"))
		Expect(servers(ctx)()).To(ConsistOf(serverLine("e1-system-0", "e1", m, m.Identity().UUID)))
	})

	It("takes its BMC and the factory account along when it is deleted, and leaves the Server", func(ctx SpecContext) {
		m := r.machine(1, nil)
		r.start(ctx)
		e := createEndpoint(ctx, "e1", m.BMCMAC(), m.Address())
		Eventually(servers(ctx)).Should(HaveLen(1))
		Expect(admin.Delete(ctx, e)).To(Succeed())
		Eventually(bmcCondition(ctx, "e1", "Ready")).Should(Equal("NotFound"))
		Eventually(endpointCondition(ctx, "e1", "Ready")).Should(Equal("NotFound"))
		Eventually(m.Sessions).Should(BeEmpty())
		Expect(servers(ctx)()).To(HaveLen(1))
		Expect(apierrors.IsNotFound(admin.Get(ctx, types.NamespacedName{Name: "e1"}, &v1alpha1.BMCSecret{}))).To(BeTrue())
	})

	It("leaves a secret that was changed since it was made when it is deleted", func(ctx SpecContext) {
		m := r.machine(1, nil)
		r.start(ctx)
		e := createEndpoint(ctx, "e1", m.BMCMAC(), m.Address())
		Eventually(servers(ctx)).Should(HaveLen(1))
		var secret v1alpha1.BMCSecret
		Expect(admin.Get(ctx, types.NamespacedName{Name: "e1"}, &secret)).To(Succeed())
		secret.Data["password"] = []byte("rotated")
		Expect(admin.Update(ctx, &secret)).To(Succeed())
		Expect(admin.Delete(ctx, e)).To(Succeed())
		Eventually(endpointCondition(ctx, "e1", "Ready")).Should(Equal("NotFound"))
		Expect(admin.Get(ctx, types.NamespacedName{Name: "e1"}, &secret)).To(Succeed())
	})
})
