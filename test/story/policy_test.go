// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/testkit"
)

var _ = Describe("A promoted bundle", func() {
	It("is adopted by a server at rest, and one relabel goes back", func(ctx SpecContext) {
		name := serverOf(theWorld.available(ctx))
		Expect(revisionOf(ctx, name)()).To(HavePrefix(testkit.Default + "-"))
		promote(ctx, "fleet")
		Eventually(revisionOf(ctx, name)).Should(HavePrefix("fleet-" + testkit.Version + "-"))
		Expect(state(ctx, name)()).To(Equal("Available/Off"))
		promote(ctx, "default") // the built-in one is promoted like any other
		Eventually(revisionOf(ctx, name)).Should(HavePrefix(testkit.Default + "-"))
	})
})

func revisionOf(ctx context.Context, server string) func() string {
	return func() string {
		s := &v1alpha1.Server{}
		Expect(admin.Get(ctx, types.NamespacedName{Name: server}, s)).To(Succeed())
		return s.Status.Lifecycle.Revision
	}
}

// promote applies the built-in bundle under a name, as active.
func promote(ctx context.Context, name string) {
	GinkgoHelper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: managerNamespace, Name: "bundle-" + name,
		Labels: map[string]string{policyv1alpha1.BundleLabel: name, policyv1alpha1.StageLabel: policyv1alpha1.LabelActive}}, Data: map[string]string{}}
	for file, data := range shippedFiles() {
		cm.Data[file] = strings.Replace(string(data), "name: default\n", "name: "+name+"\n", 1)
	}
	Expect(admin.Create(ctx, cm)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, cm)).To(Succeed()) })
}
