// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/testkit"
	"github.com/metalaw/metalaw/policies"
)

var _ = Describe("metalaw policy verify --live", func() {
	BeforeEach(func(ctx SpecContext) { Expect(controlPlane.RemoveWebhooks(ctx)).To(Succeed()) }) // nobody answers at them

	// store stores what an earlier version accepted: the default, with something in its lifecycle replaced.
	store := func(ctx SpecContext, promotion int64, old, replacement string) string {
		GinkgoHelper()
		Expect(admin.DeleteAllOf(ctx, &policyv1alpha1.PolicyRevision{})).To(Succeed())
		files, err := policies.Shipped(policies.DefaultBundle)
		Expect(err).NotTo(HaveOccurred())
		lifecycle := string(files[bundle.LifecycleFile])
		Expect(lifecycle).To(ContainSubstring(old))
		files[bundle.LifecycleFile] = []byte(strings.Replace(lifecycle, old, replacement, 1))
		content, err := files.Pack()
		Expect(err).NotTo(HaveOccurred())
		r := &policyv1alpha1.PolicyRevision{ObjectMeta: metav1.ObjectMeta{Name: bundle.RevisionName("default", testkit.Version, files.Digest())},
			Spec: policyv1alpha1.PolicyRevisionSpec{Bundle: "default", Version: testkit.Version, Digest: files.Digest(), EngineVersion: "0.1.0", Content: content}}
		Expect(admin.Create(ctx, r)).To(Succeed())
		r.SetPromotion(promotion) // of this object, which has a UID by now
		Expect(admin.Update(ctx, r)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.DeleteAllOf(ctx, &policyv1alpha1.PolicyRevision{})).To(Succeed()) })
		return r.Name
	}

	It("says that this version accepts what is in use", func(ctx SpecContext) {
		name := store(ctx, 1, "mayStop", "mayStop")
		got := viewer.says(ctx, "policy", "verify", "--live")
		Expect(got.code).To(BeZero(), got.err)
		Expect(got.out).To(HavePrefix("PolicyRevision " + name + " (in force): accepted: bundle default " + testkit.Version + ", "))
	})

	It("says what this version would hold, and why", func(ctx SpecContext) {
		name := store(ctx, 1, "claimed || retained || !released", "claimed || retained")
		got := viewer.says(ctx, "policy", "verify", "--live")
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(And(ContainSubstring(name+"/lifecycle.yaml:"), ContainSubstring("[safety-stay]\n"),
			ContainSubstring("PolicyRevision "+name+" (in force): refused: "), ContainSubstring("\na manager of this version holds 1 revision of 1 in use: ")))
	})

	It("says which right it takes", func(ctx SpecContext) {
		got := nobody.says(ctx, "policy", "verify", "--live")
		Expect(got.code).To(Equal(1))
		Expect(got.err).To(ContainSubstring(`it takes the verb "list" on policyrevisions.policy.metalaw.dev; the ClusterRole metalaw-fleet-viewer has it`))
	})

	It("does not go together with a file", func(ctx SpecContext) {
		Expect(nobody.says(ctx, "policy", "verify", "--live", "--from", "default").code).To(Equal(2))
	})
})
