// SPDX-License-Identifier: Apache-2.0

package story

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

var _ = Describe("Credentials that a BMC refuses", func() {
	It("are told alike by the BMC and its Server, and tried again when somebody asks", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		server := serverCondition(ctx, serverOf(m), v1alpha1.ConditionBMCReachable)
		ready := bmcCondition(ctx, m.Name(), v1alpha1.ConditionReady)
		_, password := m.Credentials()
		m.SetPassword("another")
		m.EndSessions()
		Eventually(server).Should(Equal("False/AuthenticationFailed"))
		Eventually(ready).WithTimeout(soon).Should(Equal("False/AuthenticationFailed"))
		failed := m.FailedLogins()

		By("the password being set back at the BMC")
		m.SetPassword(password)
		Consistently(ready).Should(Equal("False/AuthenticationFailed"), "the same credentials rest")
		Expect(m.FailedLogins()).To(BeNumerically("<=", failed))
		Eventually(func() error {
			b := &v1alpha1.BMC{}
			if err := admin.Get(ctx, types.NamespacedName{Name: m.Name()}, b); err != nil {
				return err
			}
			metav1.SetMetaDataAnnotation(&b.ObjectMeta, v1alpha1.OperationAnnotation, v1alpha1.OperationRetry)
			return admin.Update(ctx, b)
		}).Should(Succeed())
		Eventually(ready).WithTimeout(soon).Should(Equal("True/Connected"))
		Eventually(server).WithTimeout(soon).Should(Equal("True/Connected"))

		By("the BMCSecret following a new password")
		m.SetPassword("third")
		m.EndSessions()
		Eventually(ready).Should(Equal("False/AuthenticationFailed"))
		Eventually(server).WithTimeout(soon).Should(Equal("False/AuthenticationFailed"))
		Eventually(func() error {
			s := &v1alpha1.BMCSecret{}
			if err := admin.Get(ctx, types.NamespacedName{Name: m.Name()}, s); err != nil {
				return err
			}
			s.Data["password"] = []byte("third")
			return admin.Update(ctx, s)
		}).Should(Succeed())
		Eventually(ready).WithTimeout(soon).Should(Equal("True/Connected"))
		Eventually(server).WithTimeout(soon).Should(Equal("True/Connected"))
	})
})
