// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/maintenance"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// theirFinalizer is the one that metal-operator gives its maintenances.
const theirFinalizer = "metal.ironcore.dev/servermaintenance"

var _ = Describe("A manager that grants maintenances for the first time", func() {
	It("acts on none of a hundred that metal-operator left, nor on their servers, until somebody adopts one", func(ctx SpecContext) {
		held, free, theirs := claimed(ctx, "left-over"), theWorld.available(ctx), theWorld.available(ctx)
		changeServer(ctx, serverOf(theirs), func(s *v1alpha1.Server) {
			s.Spec.ServerMaintenanceRef = &v1alpha1.ObjectReference{Namespace: tenants, Name: "left-2"}
		})
		Eventually(state(ctx, serverOf(theirs))).Should(Equal("Maintenance/Off"))
		theWorld.stopManager()
		Expect(client.IgnoreNotFound(admin.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: managerNamespace,
			Name: maintenance.ConsentConfigMap}}))).To(Succeed())
		changeClaim(ctx, "left-over", func(c *v1alpha1.ServerClaim) {
			metav1.SetMetaDataLabel(&c.ObjectMeta, v1alpha1.MaintenanceNeededLabel, "true")
			metav1.SetMetaDataLabel(&c.ObjectMeta, v1alpha1.MaintenanceApprovedLabel, "true")
		})
		before := theWorld.fleet.LastWrite()
		machines := []*emulator.Machine{held, free, theirs}
		states := []v1alpha1.ServerMaintenanceState{v1alpha1.ServerMaintenanceStatePending, v1alpha1.ServerMaintenanceStateInMaintenance,
			v1alpha1.ServerMaintenanceStateFailed, ""}
		var all []*v1alpha1.ServerMaintenance
		for i := range 100 {
			one := repair(fmt.Sprintf("left-%d", i), machines[i%3], booting(tools, ""), func(m *v1alpha1.ServerMaintenance) {
				m.Annotations, m.Finalizers = nil, []string{theirFinalizer}
				if i%2 == 0 {
					enforced(m)
				}
			})
			all = append(all, create(ctx, one))
			if one.Status.State = states[i%4]; one.Status.State != "" {
				Expect(admin.Status().Update(ctx, one)).To(Succeed())
			}
		}

		By("starting it")
		theWorld.startManager(ctx)
		pending := all[4] // of the free server
		Eventually(answered(ctx, pending)).Should(Equal("Pending False/" + v1alpha1.ReasonNotAdopted))
		writes := func() (all []string) {
			for _, m := range machines {
				all = append(all, touched(m, before)()...)
			}
			return all
		}
		Consistently(writes).WithTimeout(patience).Should(BeEmpty())
		for _, m := range machines {
			Expect(getServer(ctx, serverOf(m)).Annotations).NotTo(HaveKey(v1alpha1.MaintenanceUIDAnnotation))
		}
		Expect(holder(ctx, serverOf(theirs))()).To(Equal("left-2"))
		Expect(state(ctx, serverOf(held))()).To(Equal("Reserved/On"))
		Expect(asked(ctx, "left-over")()).To(Equal([]string{"approved", "needed"}))

		By("adopting one")
		changeMaintenance(ctx, pending, func(m *v1alpha1.ServerMaintenance) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AdoptAnnotation, "true")
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.MakerAnnotation, `{"username":"admin","groups":["system:masters"]}`)
		})
		Eventually(answered(ctx, pending)).Should(Equal(inMaintenance))

		By("deleting them all, which takes what metal-operator left at each with it")
		changeServer(ctx, serverOf(theirs), func(s *v1alpha1.Server) { s.Spec.ServerMaintenanceRef = nil })
		finish(ctx, all...)
		for _, m := range machines[1:] {
			Eventually(state(ctx, serverOf(m))).Should(Equal("Available/Off"))
		}
		Eventually(asked(ctx, "left-over")).Should(BeEmpty())
	})
})
