// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/testkit"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/test/env"
)

var _ = Describe("The tutorial's burn-in", func() {
	It("is seen in shadow, rolled out to one rack, promoted, and rolled back", func(ctx SpecContext) {
		b := burnIn(ctx)
		racked, other := serverOf(theWorld.available(ctx)), serverOf(theWorld.available(ctx))
		changeServer(ctx, racked, func(s *v1alpha1.Server) { metav1.SetMetaDataLabel(&s.ObjectMeta, "rack", "burn-in") })
		former := shipped().Revision.Name
		DeferCleanup(func(ctx SpecContext) {
			Expect(admin.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(managerNamespace), client.HasLabels{policyv1alpha1.BundleLabel})).To(Succeed())
			rollOut(ctx, shipped(), policyv1alpha1.LabelActive)
			Eventually(inForce(ctx, shipped())).Should(BeTrue())
			Expect(admin.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(managerNamespace), client.MatchingLabels{"spec": "takeover"})).To(Succeed())
		})

		By("comparing it with what governs, on a server that is discovered")
		rollOut(ctx, b, policyv1alpha1.LabelShadow)
		Eventually(func() policyv1alpha1.PolicyStage { return getRevision(ctx, b).Status.Stage }).Should(Equal(policyv1alpha1.StageShadow))
		serverOf(theWorld.available(ctx))
		Eventually(func() []string {
			var all []string
			if shown := getRevision(ctx, b).Status.Shadow; shown != nil {
				for _, d := range shown.Differences {
					all = append(all, d.State+" "+d.ShadowRule+": "+d.Got)
				}
			}
			return all
		}).WithTimeout(waitForShadows).Should(ContainElement("Discovery ProbeReported: moves to BurnIn by ProbeReported"))

		By("letting it govern one rack")
		stage(ctx, b, policyv1alpha1.LabelCanary, map[string]string{policyv1alpha1.CanaryServersAnnotation: "rack=burn-in"})
		Eventually(revisionOf(ctx, racked)).Should(Equal(b.Revision.Name))
		Expect(revisionOf(ctx, other)()).To(Equal(former))
		again(ctx, racked)
		Eventually(movesOf(ctx, racked)).Should(ContainElements("ProbeReported BurnIn", "BurnedIn Available"))
		again(ctx, other)
		Eventually(movesOf(ctx, other)).Should(ContainElement("Forced Discovery"))
		Eventually(state(ctx, other)).Should(Equal("Available/Off"))
		Expect(movesOf(ctx, other)()).NotTo(ContainElement("ProbeReported BurnIn"))

		By("promoting it")
		stage(ctx, b, policyv1alpha1.LabelActive, nil)
		Eventually(inForce(ctx, b)).Should(BeTrue())
		Eventually(revisionOf(ctx, other)).Should(Equal(b.Revision.Name))

		By("rolling it back with the page's last command")
		Expect(policyCommand(ctx, "rollback", "--wait")).To(ContainSubstring("revision " + former + " is Active (InForce"))
		for _, name := range []string{racked, other} {
			Eventually(revisionOf(ctx, name)).Should(Equal(former))
			Expect(state(ctx, name)()).To(Equal("Available/Off"))
		}
	})
})

// burnIn is the bundle of docs/burn-in.md: the built-in one with the change that the page shows, and seconds for its half hour.
func burnIn(ctx context.Context) *bundle.Bundle {
	GinkgoHelper()
	root, err := env.RepoRoot()
	Expect(err).NotTo(HaveOccurred())
	page, err := os.ReadFile(filepath.Join(root, "docs", "burn-in.md"))
	Expect(err).NotTo(HaveOccurred())
	_, rest, found := strings.Cut(string(page), "```diff\n")
	Expect(found).To(BeTrue())
	diff, _, _ := strings.Cut(rest, "```\n")
	dir := GinkgoT().TempDir()
	files, err := policies.Shipped(policies.DefaultBundle)
	Expect(err).NotTo(HaveOccurred())
	for name, data := range files {
		Expect(os.WriteFile(filepath.Join(dir, name), data, 0o600)).To(Succeed())
	}
	patch := exec.CommandContext(ctx, "git", "apply", "-v", "-p0", "-")
	patch.Dir, patch.Stdin = dir, strings.NewReader(diff)
	output, err := patch.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
	Expect(string(output)).NotTo(ContainSubstring("offset"), "the program patch leaves files behind that no bundle has")
	const halfAnHour = "{rule: BurnedIn,       to: Available, after: 30m}"
	for name := range files {
		text, err := os.ReadFile(filepath.Join(dir, name))
		Expect(err).NotTo(HaveOccurred())
		if name == bundle.LifecycleFile {
			Expect(string(text)).To(ContainSubstring(halfAnHour))
		}
		files[name] = []byte(strings.NewReplacer(halfAnHour, "{rule: BurnedIn, to: Available, after: 3s}",
			"lifecycle.age: 29m}\n  expect: {stays: true, ensures: []}", "lifecycle.age: 2s}\n  expect: {stays: true, ensures: []}").Replace(string(text)))
	}
	testkit.Rename(files, "", "1.99.0")
	b, report, err := policies.Accept(ctx, files)
	Expect(err).NotTo(HaveOccurred())
	Expect(report.Found.Err()).NotTo(HaveOccurred())
	return b
}

// policyCommand calls `metalaw policy` as an administrator, and returns what it prints.
func policyCommand(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return command(ctx, append([]string{"policy"}, args...)...)
}

// command calls `metalaw` as an administrator, and returns what it prints.
func command(ctx context.Context, args ...string) string {
	GinkgoHelper()
	kubeconfig, err := controlPlane.KubeconfigFor(env.User{Name: "root", Groups: []string{"system:masters"}})
	Expect(err).NotTo(HaveOccurred())
	output, err := exec.CommandContext(ctx, program(ctx), append(args, "--kubeconfig", kubeconfig)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", output)
	return string(output)
}

// built is where the program lies that specs call; empty until one does.
var built string

// program is the program metalaw, built once for all specs.
func program(ctx context.Context) string {
	GinkgoHelper()
	if built == "" {
		path, err := env.BuildProgram(ctx, filepath.Dir(controlPlane.Kubeconfig))
		Expect(err).NotTo(HaveOccurred())
		built = path
	}
	return built
}

// stage relabels the ConfigMap of a bundle.
func stage(ctx context.Context, b *bundle.Bundle, word string, annotations map[string]string) {
	GinkgoHelper()
	cm := &corev1.ConfigMap{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: managerNamespace, Name: headOf(b)}, cm)).To(Succeed())
	before := cm.DeepCopy()
	cm.Labels[policyv1alpha1.StageLabel], cm.Annotations = word, annotations
	Expect(admin.Patch(ctx, cm, client.MergeFrom(before))).To(Succeed())
}

// again has a server inspected once more.
func again(ctx context.Context, server string) {
	GinkgoHelper()
	force(ctx, server, v1alpha1.StateDiscovery, false)
}

func movesOf(ctx context.Context, server string) func() []string {
	return func() []string { return moves(getServer(ctx, server)) }
}
