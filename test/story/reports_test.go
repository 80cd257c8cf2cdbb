// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

var _ = Describe("A report without a token", func() {
	It("is taken where the revision that governs its server takes it, and nowhere else", func(ctx SpecContext) {
		g := gate{Guest: theWorld.guests, open: make(chan struct{})} // no agent of ours reports
		discovered := func(name string, labels map[string]string) *emulator.Machine {
			m := theWorld.fleet.Add(emulator.MachineSpec{Name: name, Username: "admin", Password: "password", Guest: g})
			Expect(m.Err()).NotTo(HaveOccurred())
			theWorld.announce(ctx, m, labels)
			Eventually(state(ctx, serverOf(m))).Should(Equal("Discovery/On"))
			return m
		}
		DeferCleanup(func(ctx SpecContext) {
			Expect(admin.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(managerNamespace), client.MatchingLabels{"spec": "takeover"})).To(Succeed())
		})
		open := variantOf("bundle.yaml", "allowUnauthenticated: false", "allowUnauthenticated: true")
		rollOut(ctx, open, policyv1alpha1.LabelDraft)
		stage(ctx, open, policyv1alpha1.LabelCanary, map[string]string{policyv1alpha1.CanaryServersAnnotation: "rack=open"})
		Eventually(func() *policyv1alpha1.CanaryStatus { return getRevision(ctx, open).Status.Canary }).ShouldNot(BeNil())

		under, beside := discovered("tokenless-canary", map[string]string{"rack": "open"}), discovered("tokenless-other", nil)
		Eventually(revisionOf(ctx, serverOf(under))).Should(Equal(open.Revision.Name))
		Expect(revisionOf(ctx, serverOf(beside))()).To(Equal(shipped().Revision.Name))
		Eventually(describes(ctx, under)).Should(Equal(http.StatusCreated))
		Expect(describes(ctx, beside)()).To(Equal(http.StatusUnauthorized))

		By("promoting that revision, under which the other server is not yet")
		govern(ctx, open)
		Expect(getServer(ctx, serverOf(beside)).Status.State).To(Equal(v1alpha1.StateDiscovery))
		Consistently(describes(ctx, beside)).Should(Equal(http.StatusUnauthorized))
		close(g.open)
	})
})

// describes has somebody without a token describe a machine, and says what the registry answers.
func describes(ctx context.Context, m *emulator.Machine) func() int {
	return func() int {
		body := `{"systemUUID":"` + m.Identity().UUID + `","data":{"cpu":[{"id":0}]}}`
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, theWorld.registryURL+"/register", strings.NewReader(body))
		Expect(err).NotTo(HaveOccurred())
		answer, err := http.DefaultClient.Do(request)
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Body.Close()).To(Succeed())
		return answer.StatusCode
	}
}
