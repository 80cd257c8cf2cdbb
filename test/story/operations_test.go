// SPDX-License-Identifier: Apache-2.0

package story

import (
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
	"github.com/metalaw/metalaw/redfish/emulator"
)

var _ = Describe("Operations asked for by annotation", func() {
	It("restarts a claimed server once, and says how it ended", func(ctx SpecContext) {
		m := claimed(ctx, "restarted")
		name := serverOf(m)
		boots := m.Boots()
		operate(ctx, name, v1alpha1.OperationHardRestartServer)
		Eventually(func() v1alpha1.OperationState {
			if op := getServer(ctx, name).Status.Operation; op != nil {
				return op.State
			}
			return ""
		}).Should(Equal(v1alpha1.OperationSucceeded))
		Eventually(m.Boots).Should(Equal(boots + 1))
		Consistently(m.Boots).Should(Equal(boots + 1))
		Expect(getServer(ctx, name).Annotations).NotTo(HaveKey(v1alpha1.OperationAnnotation))
		Expect(m.Resets()).To(ContainElement(emulator.ResetType("ForceRestart")))
	})

	It("forwards a restart from the claim to its server", func(ctx SpecContext) {
		m := claimed(ctx, "forwarded")
		boots := m.Boots()
		changeClaim(ctx, "forwarded", func(c *v1alpha1.ServerClaim) {
			c.Annotations = map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationPowerCycleServer}
		})
		Eventually(m.Boots).Should(Equal(boots + 1))
		Eventually(func() map[string]string { return getClaim(ctx, "forwarded").Annotations }).ShouldNot(HaveKey(v1alpha1.OperationAnnotation))
		Consistently(m.Boots).Should(Equal(boots + 1))
	})

	It("refuses what the state cannot use, and what nobody knows, with a Warning and nothing else", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		name := serverOf(m)
		before := theWorld.fleet.LastWrite()
		operate(ctx, name, v1alpha1.OperationRetry)
		Eventually(eventReasons(ctx, name)).Should(ContainElement("OperationRefused"))
		Eventually(func() map[string]string { return getServer(ctx, name).Annotations }).ShouldNot(HaveKey(v1alpha1.OperationAnnotation))
		operate(ctx, name, "explode")
		Eventually(eventReasons(ctx, name)).Should(ContainElement("UnknownOperation"))
		Eventually(func() map[string]string { return getServer(ctx, name).Annotations }).ShouldNot(HaveKey(v1alpha1.OperationAnnotation))
		Expect(getServer(ctx, name).Status.Operation).To(BeNil(), "a refused operation does not occupy the slot")
		Expect(touched(m, before)()).To(BeEmpty())
	})

	It("parks a claimed server and gives it back to its claim", func(ctx SpecContext) {
		m := claimed(ctx, "parked")
		name := serverOf(m)
		operate(ctx, name, v1alpha1.OperationPark)
		Eventually(state(ctx, name)).Should(Equal("Parked/Off"))
		operate(ctx, name, v1alpha1.OperationUnpark)
		Eventually(state(ctx, name)).Should(Equal("Reserved/On"))
		Eventually(claimCondition(ctx, "parked", "Ready")).Should(Equal("True/Running"))
	})
})

var _ = Describe("What a server's spec asks", func() {
	It("shows the locator light, and follows it", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		changeServer(ctx, serverOf(m), func(s *v1alpha1.Server) { s.Spec.IndicatorLED = v1alpha1.IndicatorLEDLit })
		Eventually(m.LED).Should(Equal("Lit"))
		changeServer(ctx, serverOf(m), func(s *v1alpha1.Server) { s.Spec.IndicatorLED = v1alpha1.IndicatorLEDOff })
		Eventually(m.LED).Should(Equal("Off"))
	})

	It("sets the persistent boot order", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		order := m.BootOrder()
		Expect(len(order)).To(BeNumerically(">", 1))
		changeServer(ctx, serverOf(m), func(s *v1alpha1.Server) {
			s.Spec.BootOrder = []v1alpha1.BootOrder{{Name: "disk", Priority: 20, Device: order[0]}, {Name: "net", Priority: 10, Device: order[1]}}
		})
		Eventually(func() []string { return m.BootOrder()[:2] }).Should(Equal([]string{order[1], order[0]}))
	})

	It("keeps new claims from a cordoned server and leaves the one that is there", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		changeServer(ctx, serverOf(m), func(s *v1alpha1.Server) { s.Spec.Unclaimable = true })
		create(ctx, newClaim("cordoned", m))
		Eventually(claimCondition(ctx, "cordoned", "Bound")).Should(Equal("False/NoneClaimable"))
		changeServer(ctx, serverOf(m), func(s *v1alpha1.Server) { s.Spec.Unclaimable = false })
		Eventually(claimCondition(ctx, "cordoned", "Ready")).Should(Equal("True/Running"))
		changeServer(ctx, serverOf(m), func(s *v1alpha1.Server) { s.Spec.Unclaimable = true })
		Consistently(state(ctx, serverOf(m))).Should(Equal("Reserved/On"))
	})

	It("keeps claims away that do not tolerate its taints", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		changeServer(ctx, serverOf(m), func(s *v1alpha1.Server) {
			s.Spec.Taints = []v1alpha1.Taint{{Key: "dedicated", Value: "storage", Effect: v1alpha1.TaintEffectNoBind}}
		})
		create(ctx, newClaim("intolerant", m))
		Eventually(claimCondition(ctx, "intolerant", "Bound")).Should(Equal("False/NoneClaimable"))
		create(ctx, newClaim("tolerant", m, func(c *v1alpha1.ServerClaim) {
			c.Spec.Tolerations = []v1alpha1.Toleration{{Key: "dedicated", Operator: v1alpha1.TolerationOpEqual, Value: "storage"}}
		}))
		Eventually(claimCondition(ctx, "tolerant", "Bound")).Should(Equal("True/Bound"))
		Consistently(claimCondition(ctx, "intolerant", "Bound")).Should(Equal("False/NoneClaimable"))
	})
})

var _ = Describe("Reports that do not prove anything", func() {
	It("counts none, whatever its token, while the BMC says that the machine is off", func(ctx SpecContext) {
		deaf := emulator.ResetIgnored()
		m := theWorld.machine(ctx, nil)
		trouble := m.Inject(deaf)
		Eventually(state(ctx, serverOf(m))).Should(Equal("Discovery/Off"))
		c := &metalprobe.Client{BaseURL: theWorld.registryURL, Token: tokenOf(ctx, serverOf(m)), HTTP: http.DefaultClient, Attempts: 1}
		register := func() error {
			return c.Register(ctx, m.Identity().UUID, metalprobe.Data{CPU: []metalprobe.CPU{{TotalCores: 4}}})
		}
		Eventually(register).Should(MatchError(ContainSubstring("status 503")), "the token is good, and does not help")
		Consistently(register).Should(MatchError(ContainSubstring("status 503")))
		Expect(state(ctx, serverOf(m))()).To(Equal("Discovery/Off"))

		By("the machine coming on after all")
		trouble.Remove()
		Eventually(state(ctx, serverOf(m))).Should(Equal("Available/Off"))
	})

	It("refuses one that is forged, one of another server, and one of an entry that is over", func(ctx SpecContext) {
		hung := func(s *emulator.MachineSpec) { s.Delays = emulator.Delays{Boot: time.Hour} } // it never reports by itself
		lists := func(m *emulator.Machine) { m.Inject(emulator.StorageMissing()) }            // no drive that this report would have to show
		victim, other := theWorld.machine(ctx, hung, lists), theWorld.machine(ctx, hung, lists)
		for _, m := range []*emulator.Machine{victim, other} {
			Eventually(state(ctx, serverOf(m))).Should(HavePrefix("Discovery/"))
		}
		token := tokenOf(ctx, serverOf(other))
		report := metalprobe.Data{CPU: []metalprobe.CPU{{TotalCores: 4}},
			SystemInfo: policyv1alpha1.SystemInfo{SystemInformation: policyv1alpha1.SystemInformation{UUID: victim.Identity().UUID}}}
		register := func(token string) error {
			c := &metalprobe.Client{BaseURL: theWorld.registryURL, Token: token, HTTP: http.DefaultClient, Attempts: 1}
			return c.Register(ctx, victim.Identity().UUID, report)
		}
		Expect(register("")).NotTo(Succeed())
		Expect(register("made-up")).NotTo(Succeed())
		Expect(register(token)).NotTo(Succeed(), "the token of another server")
		Consistently(state(ctx, serverOf(victim))).Should(HavePrefix("Discovery/"))
		Eventually(eventReasons(ctx, serverOf(victim))).Should(ContainElement("ProbeReportRefused"))

		By("the right token while its entry lasts, and no longer")
		mine := tokenOf(ctx, serverOf(victim))
		Eventually(func() error { return register(mine) }).Should(Succeed(), "once the BMC has shown the machine on")
		Eventually(state(ctx, serverOf(victim))).Should(Equal("Available/Off"))
		Expect(register(mine)).NotTo(Succeed(), "its entry is over")
	})
})

// tokenOf reads the token out of the ignition, as whoever can fetch it can.
func tokenOf(ctx SpecContext, server string) string {
	GinkgoHelper()
	var token string
	Eventually(func() error {
		s := &corev1.Secret{}
		if err := admin.Get(ctx, types.NamespacedName{Namespace: managerNamespace, Name: server}, s); err != nil {
			return err
		}
		config, err := metalprobe.ParseIgnition(s.Data["ignition"])
		token = config.Token
		return err
	}).Should(Succeed())
	Expect(strings.TrimSpace(token)).NotTo(BeEmpty())
	return token
}
