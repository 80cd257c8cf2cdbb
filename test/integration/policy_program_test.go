// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/testkit"
	"github.com/metalaw/metalaw/test/env"
)

var _ = Describe("metalaw policy in a cluster", Serial, Ordered, func() {
	// wanda writes bundles, axel may activate them as well, and vic may look. All have the shipped roles and no other right.
	const author, activator, viewer = "wanda", "axel", "vic"
	var m *policyManager
	var d *door
	var made []client.Object
	bind := func(ctx context.Context, user string, roles ...string) {
		subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}
		for _, role := range roles {
			binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "program-" + user + "-" + role}, Subjects: []rbacv1.Subject{subject},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}
			Expect(admin.Create(ctx, binding)).To(Succeed())
			made = append(made, binding)
		}
		if user == viewer {
			return
		}
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: managerNamespace, Name: "program-" + user},
			Subjects: []rbacv1.Subject{subject}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "metalaw-policy-author"}}
		Expect(admin.Create(ctx, binding)).To(Succeed())
		made = append(made, binding)
	}
	policy := func(ctx context.Context, user string, args ...string) said {
		GinkgoHelper()
		return metalaw(ctx, user, "", append([]string{"policy"}, args...)...)
	}
	type row struct {
		Version, Stage, By, ConfigMap string
		Promotion                     int
		InForce                       bool
	}
	rows := func(ctx context.Context) []string {
		GinkgoHelper()
		answer := policy(ctx, viewer, "history", "-o", "json")
		Expect(answer.code).To(BeZero(), answer.err)
		var all []row
		Expect(json.Unmarshal([]byte(answer.out), &all)).To(Succeed())
		var lines []string
		for _, r := range all {
			lines = append(lines, fmt.Sprintf("%s %s %d %t", r.Version, r.Stage, r.Promotion, r.InForce))
		}
		return lines
	}
	marked := func(ctx context.Context, version string, labels, annotations map[string]string) {
		GinkgoHelper()
		cm := head(ctx, version)
		before := cm.DeepCopy()
		for key, value := range labels {
			metav1.SetMetaDataLabel(&cm.ObjectMeta, key, value)
		}
		for key, value := range annotations {
			metav1.SetMetaDataAnnotation(&cm.ObjectMeta, key, value)
		}
		Expect(admin.Patch(ctx, cm, client.MergeFrom(before))).To(Succeed())
	}

	BeforeAll(func(ctx SpecContext) {
		DeferCleanup(removePolicies)
		m = newPolicyManager(ctx, nil)
		m.start(ctx)
		d = openDoor(ctx, givenFiles(ctx))
		bind(ctx, author, "metalaw-policy-author")
		bind(ctx, activator, "metalaw-policy-activator") // as docs/admission.md binds it
		bind(ctx, viewer, "metalaw-fleet-viewer")
		DeferCleanup(func(ctx SpecContext) {
			for _, o := range made {
				Expect(client.IgnoreNotFound(admin.Delete(ctx, o))).To(Succeed())
			}
		})
		apply(ctx, "1.0.0", "draft", nil)
		apply(ctx, "1.1.0", "draft", nil)
		Eventually(func() int { return policy(ctx, author, "history").code }).Should(BeZero(), "the API server's authorizer learns of roles a moment later")
	})

	It("promotes what a user may activate, and refuses who may not", func(ctx SpecContext) {
		answer := policy(ctx, author, "promote", "fleet-1.0.0")
		Expect(answer.code).To(Equal(1))
		Expect(answer.err).To(ContainSubstring(`user "wanda" may not change by what bundle "fleet" governs: that takes the verb activate on policyrevisions`))
		Expect(head(ctx, "1.0.0").Labels).To(HaveKeyWithValue(policyv1alpha1.StageLabel, "draft"))

		answer = policy(ctx, author, "promote", "fleet-1.0.0", "--stage", "shadow", "--wait")
		Expect(answer.code).To(BeZero(), answer.err)
		Expect(answer.out).To(ContainSubstring("is Shadow"))
		answer = policy(ctx, activator, "promote", "fleet-1.0.0", "--wait")
		Expect(answer.code).To(BeZero(), answer.err)
		Expect(answer.out).To(MatchRegexp(`revision fleet-1\.0\.0-\w+ is Active \(InForce: servers adopt this revision since promotion 2\)`))
		Expect(policy(ctx, activator, "promote", "fleet-1.1.0", "--wait").code).To(BeZero())
		Eventually(m.governs).Should(Equal("1.1.0"))

		answer = policy(ctx, activator, "promote", "fleet-9.9.9")
		Expect(answer.code).To(Equal(1))
		Expect(answer.err).To(ContainSubstring("there is no bundle fleet-9.9.9 in namespace metalaw-system; there are: fleet-1.0.0, fleet-1.1.0"))
	})

	It("shows the promotions, and who made them", func(ctx SpecContext) {
		Eventually(func() []string { return rows(ctx) }).Should(Equal([]string{
			"1.1.0 Active 3 true", "1.0.0 Superseded 2 false", testkit.Version + " Superseded 1 false"}))
		text := policy(ctx, viewer, "history")
		Expect(text.out).To(MatchRegexp(`(?m)^fleet-1\.1\.0-\w+ +3 +Active .* axel \d{4}-\S+Z +fleet-1\.1\.0 +servers adopt`))
		var all []row
		Expect(yaml.Unmarshal([]byte(policy(ctx, viewer, "history", "-o", "yaml").out), &all)).To(Succeed())
		Expect(all[0].By).To(HavePrefix("axel sha256:"))
		Expect(all[0].ConfigMap).To(Equal("fleet-1.1.0"))
	})

	It("goes back to a head that is labelled active already, and forth again", func(ctx SpecContext) {
		Expect(head(ctx, "1.0.0").Labels).To(HaveKeyWithValue(policyv1alpha1.StageLabel, "active"))
		for _, version := range []string{"1.0.0", "1.1.0", "1.0.0"} {
			answer := policy(ctx, activator, "rollback", "--wait")
			Expect(answer.code).To(BeZero(), answer.err)
			Expect(answer.out).To(ContainSubstring("fleet-" + version + ": active"))
			if version == "1.1.0" {
				Expect(answer.err).To(ContainSubstring("this goes forward again to fleet-1.1.0-"))
			}
			Eventually(m.governs).Should(Equal(version))
		}
		Expect(policy(ctx, author, "rollback").code).To(Equal(1))
		Expect(head(ctx, "1.1.0").Labels).To(HaveKeyWithValue(policyv1alpha1.StageLabel, "active"))
	})

	It("names a canary that is under way instead of going back, and promotes it no further", func(ctx SpecContext) {
		answer := policy(ctx, activator, "promote", "fleet-1.1.0", "--stage", "canary", "--servers", "rack=nope", "--wait")
		Expect(answer.code).To(BeZero(), answer.err)
		Expect(answer.err).To(MatchRegexp(`how many servers are in its scope is not known: .* the ClusterRole metalaw-fleet-viewer has it`))
		for range 2 {
			answer = policy(ctx, activator, "rollback", "--wait")
			Expect(answer.code).To(Equal(1))
			Expect(answer.err).To(MatchRegexp("nothing was changed: revision fleet-1\\.1\\.0-\\w+ governs as a canary: servers with rack=nope; to end it: " +
				"`metalaw policy promote fleet-1\\.1\\.0 --stage shadow`\nTo go back from fleet-1\\.0\\.0-\\w+ to \\S+ all the same, for every server, add --yes"))
		}
		Expect(head(ctx, "1.1.0").Labels).To(HaveKeyWithValue(policyv1alpha1.StageLabel, "canary"))
		Expect(m.governs()).To(Equal("1.0.0"))

		By("ending it as the answer says, and promoting it for all")
		Expect(policy(ctx, activator, "promote", "fleet-1.1.0", "--stage", "shadow", "--wait").code).To(BeZero())
		Expect(policy(ctx, activator, "promote", "fleet-1.1.0", "--wait").code).To(BeZero())
		before := head(ctx, "1.1.0")
		answer = policy(ctx, activator, "promote", "fleet-1.1.0", "--wait")
		Expect(answer.code).To(BeZero(), answer.err)
		Expect(answer.out).To(MatchRegexp(`revision fleet-1\.1\.0-\w+ is in force already, by promotion \d+; nothing was changed`))
		Expect(head(ctx, "1.1.0")).To(Equal(before))
		Expect(policy(ctx, activator, "rollback", "--wait").code).To(BeZero())
		Eventually(m.governs).Should(Equal("1.0.0"))
	})

	DescribeTable("leaves a ConfigMap alone that another program keeps", func(ctx SpecContext, keeper string, labels, annotations map[string]string) {
		version := map[string]string{"Argo CD": "2.0.0", "Flux": "2.1.0"}[keeper]
		apply(ctx, version, "shadow", nil)
		marked(ctx, version, labels, annotations)
		before := head(ctx, version)
		answer := policy(ctx, activator, "promote", "fleet-"+version, "--stage", "canary", "--percent", "5")
		Expect(answer.code).To(Equal(1))
		Expect(answer.err).To(ContainSubstring("is kept by " + keeper + " (fleet), which would undo a change made here. Change it in the repository:"))
		var change corev1.ConfigMap
		Expect(yaml.UnmarshalStrict([]byte(answer.out), &change)).To(Succeed())
		Expect(change.Name).To(Equal("fleet-" + version))
		Expect(change.Labels).To(Equal(map[string]string{policyv1alpha1.StageLabel: "canary"}))
		Expect(change.Annotations).To(Equal(map[string]string{policyv1alpha1.CanaryPercentAnnotation: "5"}))
		Expect(head(ctx, version)).To(Equal(before))
	},
		Entry("Argo CD", "Argo CD", nil, map[string]string{"argocd.argoproj.io/tracking-id": "fleet:/ConfigMap:metalaw-system/fleet-2.0.0"}),
		Entry("Flux", "Flux", map[string]string{"kustomize.toolkit.fluxcd.io/name": "fleet", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}, nil),
	)

	It("says what to commit first where a kept head is labelled active already", func(ctx SpecContext) {
		marked(ctx, "1.1.0", nil, map[string]string{"argocd.argoproj.io/tracking-id": "fleet:/ConfigMap:metalaw-system/fleet-1.1.0"})
		before := head(ctx, "1.1.0")
		answer := policy(ctx, activator, "rollback")
		Expect(answer.code).To(Equal(1))
		Expect(answer.err).To(ContainSubstring("It is labelled active already, and a label that does not change is no promotion: it takes two commits."))
		Expect(answer.out).To(MatchRegexp(`(?s)stage: draft\n---\n.*stage: active\n$`))
		Expect(head(ctx, "1.1.0")).To(Equal(before))

		By("doing what it says")
		label(ctx, "1.1.0", "draft")
		Eventually(func() policyv1alpha1.LabelledStage { return revisionOf(ctx, "1.1.0").Status.LabelledStage }).Should(Equal(policyv1alpha1.LabelledDraft))
		label(ctx, "1.1.0", "active")
		Eventually(m.governs).Should(HavePrefix("1.1.0"))
	})

	It("makes a ConfigMap anew where the one that a revision came from is gone, or holds something else", func(ctx SpecContext) {
		label(ctx, "1.0.0", "draft")
		name := revisionOf(ctx, "1.0.0").Name
		By("letting an author, who may not activate, write another draft under its name, and take the name that comes next")
		rights, err := controlPlane.ConfigFor(env.User{Name: author})
		Expect(err).NotTo(HaveOccurred())
		wanda, err := client.New(rights, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		edited := head(ctx, "1.0.0")
		edited.Data["admission.rego"] += "\n# another draft\n"
		Expect(wanda.Update(ctx, edited)).To(Succeed())
		taken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: managerNamespace, Name: name,
			Labels: map[string]string{policyv1alpha1.BundleLabel: "fleet", policyv1alpha1.StageLabel: "draft"}}, Data: edited.Data}
		Expect(wanda.Create(ctx, taken)).To(Succeed())
		made = append(made, taken)
		answer := policy(ctx, activator, "rollback", "--to", name, "--wait")
		Expect(answer.code).To(BeZero(), answer.err)
		Expect(answer.out).To(ContainSubstring(name + "-2: active; the ConfigMap that it came from is gone or holds something else"))
		Eventually(m.governs).Should(HavePrefix("1.0.0"))
		Expect(head(ctx, "1.0.0").Labels).To(HaveKeyWithValue(policyv1alpha1.StageLabel, "draft"))
	})

	It("draws what governs with the servers in each state", func(ctx SpecContext) {
		d.stop() // the servers are in states to which nobody moved them
		Expect(controlPlane.RemoveWebhooks(ctx)).To(Succeed())
		name := revisionOf(ctx, "1.0.0").Name
		for i, state := range []v1alpha1.ServerState{"Available", "Available", "Reserved"} {
			s := makeServer(ctx, nil)
			before := s.DeepCopy()
			s.Status.State, s.Status.Lifecycle = state, &v1alpha1.LifecycleStatus{Revision: name}
			if i == 1 {
				s.Status.Lifecycle.Revision = "another"
			}
			Expect(admin.Status().Patch(ctx, s, client.MergeFrom(before))).To(Succeed())
		}
		answer := policy(ctx, viewer, "render", "--revision", name, "--live")
		Expect(answer.code).To(BeZero(), answer.err)
		Expect(answer.out).To(ContainSubstring("Available: Available (1)"), "one is under another revision")
		Expect(answer.out).To(ContainSubstring("Reserved: Reserved (1)"))
		answer = policy(ctx, viewer, "render", "--from", "default", "--live", "-o", "dot")
		Expect(answer.out).To(ContainSubstring(`"Available (2)"`))
	})
})
