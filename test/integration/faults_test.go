// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/faults"
	"github.com/metalaw/metalaw/policies"
)

var _ = Describe("A Server with broken parts", func() {
	It("is proposed, and one of a model is cordoned in a day, also across a restart", func(ctx SpecContext) {
		since := metav1.NewTime(time.Now().Add(-time.Minute).Truncate(time.Second))
		var servers []*v1alpha1.Server
		for i := range 3 {
			s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("faulty-%d", i)},
				Spec: v1alpha1.ServerSpec{SystemUUID: fmt.Sprintf("fa017e00-0000-4000-8000-%012d", i)}}
			Expect(admin.Create(ctx, s)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, s)).To(Succeed()) })
			s.Status = v1alpha1.ServerStatus{Manufacturer: "Spec", Model: "Faulty",
				FaultyParts: []v1alpha1.FaultyPart{{Fault: v1alpha1.FaultDisk, Name: "D1", Since: since}}}
			Expect(admin.Status().Update(ctx, s)).To(Succeed())
			servers = append(servers, s)
		}
		shipped, err := policies.Default()
		Expect(err).NotTo(HaveOccurred())
		o := faults.Options{Bundles: unchanging{policy{shipped}}}
		run := func() func() { return startManager(ctx, func(mgr ctrl.Manager) error { return faults.Setup(mgr, o) }) }
		stop := run()
		Eventually(faultOf).WithArguments(ctx, servers[0]).Should(Equal("true True/Cordoned"))
		Eventually(faultOf).WithArguments(ctx, servers[1]).Should(Equal("false True/CordonLimitReached"))
		stop()
		run()
		Eventually(faultOf).WithArguments(ctx, servers[2]).Should(Equal("false True/CordonLimitReached"))
		Consistently(faultOf).WithArguments(ctx, servers[1]).Should(Equal("false True/CordonLimitReached"))

		By("lifting the cordon, and mending the disk")
		s := servers[0]
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(s), s)).To(Succeed())
		s.Spec.Unclaimable = false
		Expect(admin.Update(ctx, s)).To(Succeed())
		Eventually(faultOf).WithArguments(ctx, s).Should(Equal("false True/KeptInService"))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(s), s)).To(Succeed())
		s.Status.FaultyParts = nil
		Expect(admin.Status().Update(ctx, s)).To(Succeed())
		Eventually(faultOf).WithArguments(ctx, s).Should(Equal("false"))
	})
})

// unchanging is a policy that stays in force.
type unchanging struct{ policy }

func (unchanging) Changed(func()) {}

// faultOf is whether a server is cordoned, and what its condition says.
func faultOf(ctx context.Context, s *v1alpha1.Server) (string, error) {
	now := &v1alpha1.Server{}
	err := admin.Get(ctx, client.ObjectKeyFromObject(s), now)
	c := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionFaultyHardware)
	if c == nil {
		return fmt.Sprint(now.Spec.Unclaimable), err
	}
	return fmt.Sprintf("%t %s/%s", now.Spec.Unclaimable, c.Status, c.Reason), err
}
