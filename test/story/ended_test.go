// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/test/env"
)

// userWith is a client of a user who has one shipped ClusterRole: in a namespace, or in the cluster where that is empty.
func userWith(ctx context.Context, name, role, namespace string) client.Client {
	GinkgoHelper()
	subject := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	meta := metav1.ObjectMeta{Name: name, Namespace: namespace}
	if namespace == "" {
		create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subject, RoleRef: ref})
	} else {
		create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subject, RoleRef: ref})
	}
	rights, err := controlPlane.ConfigFor(env.User{Name: name})
	Expect(err).NotTo(HaveOccurred())
	c, err := client.New(rights, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

var _ = Describe("The end of a claim, with a grace", Serial, func() {
	It("takes the power at once and the data not before the grace is over; undo-release brings both back", func(ctx SpecContext) {
		m := claimed(ctx, "ended", func(c *v1alpha1.ServerClaim) {
			c.Labels = map[string]string{"team": "shop"}
			c.Annotations = map[string]string{"note": "kept"}
		})
		name := serverOf(m)
		m.Drives()[0].Write("the tenant's data")
		theWorld.stopManager()
		clock := leadAt(ctx, 3, 0) // the grace takes 100 s
		DeferCleanup(func(ctx SpecContext) {
			theWorld.stopManager()
			theWorld.startManager(ctx)
		})
		deleteClaim(ctx, "ended")
		Eventually(state(ctx, name)).Should(Equal("Reserved/Off"))
		s := getServer(ctx, name)
		age, known := clock.Now().Since(counted.Parse(s.Annotations[v1alpha1.ReleasedCountedAnnotation]))
		Expect(known).To(BeTrue())
		Expect(age).To(BeNumerically("<", 5*time.Minute), "the machine is off within the grace")
		Expect(m.Resets()).To(ContainElement(emulator.ResetGracefulShutdown), "its operating system was asked")
		Consistently(state(ctx, name)).Should(Equal("Reserved/Off"))
		Expect(m.Drives()[0].Contents()).To(Equal("the tenant's data"))

		By("undoing the release as a user who may patch servers")
		operator := userWith(ctx, "ended-operator", "metalaw-fleet-operator", "")
		changed := s.DeepCopy()
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, v1alpha1.OperationAnnotation, v1alpha1.OperationUndoRelease)
		Expect(operator.Patch(ctx, changed, client.MergeFrom(s))).To(Succeed())
		Eventually(operated(ctx, name)).Should(Equal("undo-release Succeeded"))
		Expect(getServer(ctx, name).Status.Operation.Message).To(ContainSubstring("its machine was powered off, and boots again"))
		Consistently(state(ctx, name)).Should(Equal("Reserved/Off"), "nothing boots it while its claim is not back")
		Expect(m.Drives()[0].Contents()).To(Equal("the tenant's data"))

		By("applying what is kept of the claim, as its namespace does")
		tenant := userWith(ctx, "ended-tenant", "metalaw-claim-editor", tenants)
		again := &v1alpha1.ServerClaim{}
		Expect(json.Unmarshal([]byte(s.Annotations[v1alpha1.ReleasedSpecAnnotation]), again)).To(Succeed())
		Expect(again.Labels).To(HaveKeyWithValue("team", "shop"))
		Expect(again.Annotations).To(Equal(map[string]string{"note": "kept"}))
		Expect(tenant.Create(ctx, again)).To(Succeed())
		Eventually(claimCondition(ctx, "ended", "Ready")).Should(Equal("True/Running"))
		Expect(state(ctx, name)()).To(Equal("Reserved/On"))
		Expect(theWorld.begunToErase(m, m.Drives()[0].Name)()).To(BeFalse())
		Expect(m.Drives()[0].Erasures()).To(BeZero())
		Expect(getServer(ctx, name).Annotations).To(HaveKeyWithValue(v1alpha1.ClaimUIDAnnotation, string(getClaim(ctx, "ended").UID)))
	})

	It("takes a release back while a freeze holds everything else", func(ctx SpecContext) {
		m := claimed(ctx, "ended-frozen")
		name := serverOf(m)
		control(ctx, frozen(policyv1alpha1.FreezeAll, m))
		Eventually(controlCondition(ctx, policyv1alpha1.ConditionFrozen)).Should(Equal("True/All"))
		deleteClaim(ctx, "ended-frozen")
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionWithheld)).Should(Equal("True/Frozen"))
		operate(ctx, name, v1alpha1.OperationUndoRelease)
		Eventually(operated(ctx, name)).Should(Equal("undo-release Succeeded"))
		recontrol(ctx, thawed)
		Consistently(state(ctx, name)).Should(Equal("Reserved/On"))
		Expect(getServer(ctx, name).Annotations).NotTo(HaveKey(v1alpha1.ReleasedClaimAnnotation))
	})

	It("takes no release back under --observe-only, and says at once that it waits", func(ctx SpecContext) {
		m := claimed(ctx, "ended-observed")
		name := serverOf(m)
		theWorld.stopManager()
		leadAt(ctx, 1, 0)
		DeferCleanup(func(ctx SpecContext) {
			theWorld.stopManager()
			theWorld.startManager(ctx)
		})
		deleteClaim(ctx, "ended-observed")
		theWorld.stopManager()
		theWorld.options = func(o *controllers.Options) { o.NoReleaseGrace, o.ObserveOnly = false, true }
		theWorld.startManager(ctx)
		theWorld.options = nil
		operate(ctx, name, v1alpha1.OperationUndoRelease)
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionWithheld)).Should(Equal("True/ObserveOnly"))
		s := &v1alpha1.Server{}
		Expect(admin.Get(ctx, types.NamespacedName{Name: name}, s)).To(Succeed())
		Expect(s.Annotations).To(HaveKeyWithValue(v1alpha1.OperationAnnotation, v1alpha1.OperationUndoRelease), "it stands until the manager may")
		Expect(s.Annotations).To(HaveKey(v1alpha1.ReleasedSpecAnnotation))
	})
})
