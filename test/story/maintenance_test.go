// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

var _ = Describe("A ServerMaintenance", func() {
	It("without a state waits and says that nothing grants it; one that another manager answered, or that is ignored, is left alone", func(ctx SpecContext) {
		made := func(name string, annotations map[string]string) *v1alpha1.ServerMaintenance {
			m := &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: name, Annotations: annotations}}
			m.Spec.ServerRef = corev1.LocalObjectReference{Name: "nowhere"}
			return create(ctx, m)
		}
		theWorld.stopManager()
		theirs := made("theirs", nil)
		theirs.Status.State = v1alpha1.ServerMaintenanceStateInMaintenance
		Expect(admin.Status().Update(ctx, theirs)).To(Succeed())
		ignored := made("ignored", map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationIgnore})
		theWorld.startManager(ctx)
		waits := made("waits", nil)
		Eventually(answered(ctx, waits)).Should(Equal("Pending False/NothingGrants"))
		Expect(answered(ctx, theirs)()).To(Equal("InMaintenance none"))
		Expect(answered(ctx, ignored)()).To(Equal(" none"))

		By("another manager that carries it out")
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(waits), waits)).To(Succeed())
		waits.Status.State = v1alpha1.ServerMaintenanceStateInMaintenance
		Expect(admin.Status().Update(ctx, waits)).To(Succeed())
		Eventually(answered(ctx, waits)).Should(Equal("InMaintenance none"))
	})
})

// answered is the state of a maintenance and its condition Granted.
func answered(ctx context.Context, m *v1alpha1.ServerMaintenance) func() string {
	return func() string {
		now := &v1alpha1.ServerMaintenance{}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(m), now)).To(Succeed())
		granted := "none"
		if c := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionGranted); c != nil {
			granted = string(c.Status) + "/" + c.Reason
		}
		return string(now.Status.State) + " " + granted
	}
}
