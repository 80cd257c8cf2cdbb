// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

var _ = Describe("A canary", func() {
	It("brings as many servers to Error as its budget and one, and has a healthy one govern all in its scope", func(ctx SpecContext) {
		const parked = "{rule: ParkedAvailable, to: Parked,   when: parkAsked && poweredOff}"
		bad, good := variant(parked, parked+"\n    - {rule: Bad, to: Error, when: poweredOff && !held}"), variant()
		Expect(bad.Settings.Canary).To(Equal(bundle.Canary{MaxHalts: 0, MaxErrors: 2}))
		var servers []string
		for range 8 {
			servers = append(servers, serverOf(theWorld.machine(ctx, nil)))
		}
		for _, name := range servers {
			Eventually(state(ctx, name)).Should(Equal("Available/Off"))
			changeServer(ctx, name, func(s *v1alpha1.Server) { metav1.SetMetaDataLabel(&s.ObjectMeta, "rack", "canary") })
		}
		DeferCleanup(func(ctx SpecContext) {
			Expect(admin.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(managerNamespace), client.MatchingLabels{"spec": "takeover"})).To(Succeed())
		})
		asCanary := func(b *bundle.Bundle) {
			rollOut(ctx, b, policyv1alpha1.LabelDraft)
			stage(ctx, b, policyv1alpha1.LabelCanary, map[string]string{policyv1alpha1.CanaryServersAnnotation: "rack=canary"})
		}

		By("taking free servers to Error")
		asCanary(bad)
		inError := func() int {
			return count(ctx, servers, func(s *v1alpha1.Server) bool { return s.Status.State == v1alpha1.StateError })
		}
		Eventually(inError).Should(BeNumerically(">", 0))
		theWorld.stopManager() // the one that comes next counts on
		theWorld.startManager(ctx)
		Eventually(func() bool { c := getRevision(ctx, bad).Status.Canary; return c != nil && c.Paused }).WithTimeout(3 * time.Minute).Should(BeTrue())
		Consistently(inError).Should(Equal(3))
		stage(ctx, bad, policyv1alpha1.LabelDraft, nil)

		By("leaving them as they are")
		began := time.Now()
		asCanary(good)
		Eventually(func() int {
			return count(ctx, servers, func(s *v1alpha1.Server) bool { return s.Status.Lifecycle.Revision == good.Revision.Name })
		}).Should(Equal(len(servers)))
		GinkgoWriter.Printf("%d servers came under a healthy canary in %v\n", len(servers), time.Since(began))
	})
})

// count is how many servers are so.
func count(ctx context.Context, servers []string, is func(*v1alpha1.Server) bool) (n int) {
	GinkgoHelper()
	for _, name := range servers {
		if is(getServer(ctx, name)) {
			n++
		}
	}
	return n
}
