// SPDX-License-Identifier: Apache-2.0

package story

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

var _ = Describe("A manager that was killed between the record of a request and the request", func() {
	It("is followed by one that asks the operating system to shut down, and does not just wait to cut its power", func(ctx SpecContext) {
		m := claimed(ctx, "unheard")
		theWorld.stopManager()
		changeClaim(ctx, "unheard", func(c *v1alpha1.ServerClaim) { c.Spec.Power = v1alpha1.PowerOff })
		Eventually(func() error {
			s := getServer(ctx, serverOf(m))
			s.Status.Lifecycle.Request = &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionGracefulShutdown, AskedAt: metav1.NewMicroTime(time.Now())}
			return admin.Status().Update(ctx, s)
		}).Should(Succeed())
		before := len(m.Resets())
		theWorld.startManager(ctx)
		Eventually(state(ctx, serverOf(m))).Should(Equal("Reserved/Off"))
		Expect(m.Resets()[before:]).To(Equal([]emulator.ResetType{emulator.ResetGracefulShutdown}))
	})
})
