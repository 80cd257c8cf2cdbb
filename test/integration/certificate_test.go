// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"net"
	"net/netip"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// shownBy is the SHA-256 fingerprint of the certificate that a BMC shows now.
func shownBy(ctx context.Context, m *emulator.Machine) string {
	GinkgoHelper()
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(m.Address(), strconv.Itoa(bmcPort)))
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close() }()
	sum := sha256.Sum256(conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw)
	return hex.EncodeToString(sum[:])
}

// trusted is the fingerprint that a BMC's spec trusts; "nothing" where it has none.
func trusted(ctx context.Context, name string) func() string {
	return func() string {
		var b v1alpha1.BMC
		if err := admin.Get(ctx, types.NamespacedName{Name: name}, &b); err != nil {
			return err.Error()
		}
		if b.Spec.Trust == nil {
			return "nothing"
		}
		return b.Spec.Trust.CertificateSHA256
	}
}

var _ = Describe("The certificate of a BMC", func() {
	It("is pinned at first use inside the bundle's networks, and a changed one gets no request until somebody accepts it", func(ctx SpecContext) {
		r := newRig(ctx, func(o *emulator.Options) { o.TLS = true })
		r.policy.bundle.Settings.BMCTLS = bundle.TLSPin
		r.policy.bundle.Settings.BMCPinWithin = []netip.Prefix{netip.MustParsePrefix("127.66.0.0/24")}
		m := r.machine(1, func(s *emulator.MachineSpec) { s.BMCMAC = "02:4d:4e:00:00:01" })
		m.SetCertificate(emulator.CertificateSelfSigned)
		first := shownBy(ctx, m)
		r.start(ctx)
		createEndpoint(ctx, "pinned", "02:4d:4e:00:00:01", m.Address())
		Eventually(bmcCondition(ctx, "pinned", v1alpha1.ConditionReady)).Should(Equal("True/Connected"))
		Expect(trusted(ctx, "pinned")()).To(Equal(first))
		Expect(annotation(ctx, "pinned", v1alpha1.CertificatePinnedAnnotation)()).NotTo(BeEmpty())
		Eventually(servers(ctx)).Should(HaveLen(1))

		By("another certificate is shown")
		m.SetCertificate(emulator.CertificateRotated)
		second := shownBy(ctx, m)
		r.stop()
		Expect(r.pool.Close(ctx)).To(Or(Succeed(), MatchError(ContainSubstring("a session may be left"))))
		asked := r.fleet.RequestTotal(emulator.Filter{})
		r.start(ctx)
		Eventually(bmcCondition(ctx, "pinned", v1alpha1.ConditionCertificateChanged)).Should(Equal("True/OtherCertificate"))
		Eventually(bmcCondition(ctx, "pinned", v1alpha1.ConditionReady)).Should(Equal("False/ConnectionFailed"))
		Expect(r.fleet.RequestTotal(emulator.Filter{})).To(Equal(asked))

		By("the pin is lost")
		change(ctx, &v1alpha1.BMC{}, "pinned", func(b *v1alpha1.BMC) {
			b.Spec.Trust = nil
			delete(b.Annotations, v1alpha1.CertificatePinnedAnnotation)
		})
		Eventually(bmcCondition(ctx, "pinned", v1alpha1.ConditionCertificateChanged)).Should(Equal("True/OtherCertificate"))
		Eventually(bmcCondition(ctx, "pinned", v1alpha1.ConditionReady)).Should(Equal("False/ConnectionFailed"))
		Expect(trusted(ctx, "pinned")()).To(Equal("nothing"))
		Expect(r.fleet.RequestTotal(emulator.Filter{})).To(Equal(asked))

		By("somebody accepts it")
		annotate(ctx, "pinned", v1alpha1.AcceptCertificateAnnotation, second)
		Eventually(bmcCondition(ctx, "pinned", v1alpha1.ConditionReady)).Should(Equal("True/Connected"))
		Eventually(bmcCondition(ctx, "pinned", v1alpha1.ConditionCertificateChanged)).Should(Equal("False/TrustedCertificate"))
		Expect(trusted(ctx, "pinned")()).To(Equal(second))
		Expect(annotation(ctx, "pinned", v1alpha1.AcceptCertificateAnnotation)()).To(BeEmpty())
	})

	It("is never pinned outside the bundle's networks", func(ctx SpecContext) {
		r := newRig(ctx, func(o *emulator.Options) { o.TLS = true })
		r.policy.bundle.Settings.BMCTLS = bundle.TLSPin
		r.policy.bundle.Settings.BMCPinWithin = []netip.Prefix{netip.MustParsePrefix("10.20.0.0/16")}
		m := r.machine(1, func(s *emulator.MachineSpec) { s.BMCMAC = "02:4d:4e:00:00:01" })
		m.SetCertificate(emulator.CertificateSelfSigned)
		r.start(ctx)
		createEndpoint(ctx, "outside", "02:4d:4e:00:00:01", m.Address())
		Eventually(endpointCondition(ctx, "outside", v1alpha1.ConditionReady)).Should(Equal("False/ConnectionFailed"))
		Expect(r.fleet.RequestTotal(emulator.Filter{})).To(BeZero())
		r.expectNothingMade(ctx)
	})
})
