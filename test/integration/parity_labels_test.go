// SPDX-License-Identifier: Apache-2.0

package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

var _ = Describe("The labels of a bundle", Serial, Ordered, func() {
	var d *door
	BeforeAll(func(ctx SpecContext) {
		d = openDoor(ctx, givenFiles(ctx))
		DeferCleanup(func(ctx SpecContext) {
			d.stop()
			Expect(controlPlane.RemoveWebhooks(ctx)).To(Succeed())
		})
	})

	const own = "labelled"
	DescribeTable("are judged by the command line as by admission",
		func(ctx SpecContext, name, stage string, annotations map[string]string, fault string) {
			cm := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
			cm.Namespace, cm.Name, cm.Annotations = managerNamespace, "labelled-1.0.0", annotations
			cm.Labels = map[string]string{policyv1alpha1.BundleLabel: name}
			if stage != "" {
				cm.Labels[policyv1alpha1.StageLabel] = stage
			}
			cm.Data = map[string]string{bundle.BundleFile: "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Bundle\nname: " + own + "\nversion: 1.0.0\n"}
			manifest, err := yaml.Marshal(cm)
			Expect(err).NotTo(HaveOccurred())

			said := metalaw(ctx, "", string(manifest), "policy", "verify", "-f", "-")
			admitted := d.user.Create(ctx, cm, client.DryRunAll)
			if fault == "" {
				Expect(said.code).To(BeZero(), said.out+said.err)
				Expect(admitted).To(Succeed())
				return
			}
			Expect(said.code).To(Equal(1))
			Expect(said.out).To(ContainSubstring(fault))
			Expect(admitted).To(MatchError(ContainSubstring(fault)))
		},
		Entry("a draft", own, policyv1alpha1.LabelDraft, nil, ""),
		Entry("no stage", own, "", nil, ""),
		Entry("a shadow", own, policyv1alpha1.LabelShadow, nil, ""),
		Entry("one that governs", own, policyv1alpha1.LabelActive, nil, ""),
		Entry("a canary of a rack", own, policyv1alpha1.LabelCanary, map[string]string{policyv1alpha1.CanaryServersAnnotation: "rack=r1"}, ""),
		Entry("a canary of a share", own, policyv1alpha1.LabelCanary, map[string]string{policyv1alpha1.CanaryPercentAnnotation: "5"}, ""),
		Entry("a stage that there is not", own, "live", nil, policyv1alpha1.StageLabel),
		Entry("a draft under another name", "other", policyv1alpha1.LabelDraft, nil, ""),
		Entry("a shadow under another name", "other", policyv1alpha1.LabelShadow, nil, policyv1alpha1.BundleLabel),
		Entry("a canary of nobody", own, policyv1alpha1.LabelCanary, nil, policyv1alpha1.CanaryServersAnnotation),
		Entry("a canary of what is no selector", own, policyv1alpha1.LabelCanary,
			map[string]string{policyv1alpha1.CanaryServersAnnotation: "rack in"}, policyv1alpha1.CanaryServersAnnotation),
		Entry("a canary of everybody", own, policyv1alpha1.LabelCanary,
			map[string]string{policyv1alpha1.CanaryServersAnnotation: ""}, policyv1alpha1.CanaryServersAnnotation),
		Entry("a canary of more than all", own, policyv1alpha1.LabelCanary,
			map[string]string{policyv1alpha1.CanaryPercentAnnotation: "101"}, policyv1alpha1.CanaryPercentAnnotation),
	)
})
