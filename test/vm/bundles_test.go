// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/controllers/revision"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/policies"
)

// believing accepts variants of the default bundle, which have versions 2, for what they compile to; of anything else it asks the whole.
func believing(accept revision.AcceptFunc) revision.AcceptFunc {
	return func(ctx context.Context, files, fill bundle.Files) (*bundle.Bundle, diag.List, error) {
		if strings.Contains(string(files["bundle.yaml"]), "version: 2.") {
			return bundle.Compile(files, policies.Vocabulary())
		}
		return accept(ctx, files, fill)
	}
}

// variants counts the variants of this process: a version that is taken by other content is refused for good.
var variants int

// shippedVersion is the line that names the version of a shipped bundle.
var shippedVersion = regexp.MustCompile(`(?m)^version: .*$`)

// governed promotes the default bundle with another lifecycle, or other settings, for the rest of a container: each pair of texts is
// replaced.
func governed(ctx context.Context, replace ...string) {
	GinkgoHelper()
	files, err := policies.Shipped(policies.DefaultBundle)
	Expect(err).NotTo(HaveOccurred())
	for i := 0; i < len(replace); i += 2 {
		Expect(strings.Count(string(files["lifecycle.yaml"])+string(files["bundle.yaml"]), replace[i])).To(Equal(1), replace[i])
		for _, name := range []string{"lifecycle.yaml", "bundle.yaml"} {
			files[name] = []byte(strings.Replace(string(files[name]), replace[i], replace[i+1], 1))
		}
	}
	variants++
	files["bundle.yaml"] = shippedVersion.ReplaceAll(files["bundle.yaml"], fmt.Appendf(nil, "version: 2.%d.0", variants))
	changed, found, err := bundle.Compile(files, policies.Vocabulary())
	Expect(err).NotTo(HaveOccurred())
	Expect(found.Err()).NotTo(HaveOccurred())
	shipped, err := policies.Default()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { promote(ctx, shipped) })
	promote(ctx, changed)
}

// promote puts a bundle in force.
func promote(ctx context.Context, b *bundle.Bundle) {
	GinkgoHelper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: managerNamespace, Name: "vm-" + b.Version,
		Labels: map[string]string{policyv1alpha1.BundleLabel: b.Name, policyv1alpha1.StageLabel: policyv1alpha1.LabelActive}}, Data: map[string]string{}}
	for file, data := range b.Files {
		cm.Data[file] = string(data)
	}
	Expect(client.IgnoreNotFound(admin.Delete(ctx, cm.DeepCopy()))).To(Succeed())
	Eventually(func() policyv1alpha1.LabelledStage {
		r := &policyv1alpha1.PolicyRevision{}
		Expect(client.IgnoreNotFound(admin.Get(ctx, types.NamespacedName{Name: b.Revision.Name}, r))).To(Succeed())
		return r.Status.LabelledStage
	}).WithTimeout(soon).ShouldNot(Equal(policyv1alpha1.LabelledActive), "the label that it had is forgotten")
	Expect(admin.Create(ctx, cm)).To(Succeed())
	Eventually(func() bool {
		r := &policyv1alpha1.PolicyRevision{}
		return admin.Get(ctx, types.NamespacedName{Name: b.Revision.Name}, r) == nil &&
			meta.IsStatusConditionTrue(r.Status.Conditions, policyv1alpha1.ConditionActive)
	}).WithTimeout(soon).Should(BeTrue())
}
