// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/maintenance"
	"github.com/metalaw/metalaw/test/env"
)

var _ = Describe("Admission of what is in maintenance", Serial, Ordered, func() {
	var d *door
	var p place

	BeforeAll(func(ctx SpecContext) {
		p = newPlace(ctx)
		d = openDoor(ctx, givenFiles(ctx))
	})
	AfterAll(func(ctx SpecContext) {
		d.stop()
		Expect(controlPlane.RemoveWebhooks(ctx)).To(Succeed())
	})

	It("refuses to delete a Server in state Maintenance, until a user says that its end is not waited for", func(ctx SpecContext) {
		s := p.server(ctx, "in-maintenance", inState(v1alpha1.StateMaintenance))
		Expect(d.user.Delete(ctx, s)).To(MatchError(ContainSubstring("cannot delete Server " + s.Name + " in state Maintenance")))
		Expect(d.manager.Get(ctx, client.ObjectKeyFromObject(s), s)).To(Succeed())
		patch(ctx, s, func(s *v1alpha1.Server) {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationAnnotation, v1alpha1.OperationAllowInProgressDelete)
		})
		Expect(d.user.Delete(ctx, s)).To(Succeed())
	})

	It("lets a user who holds no right maintain the servers of its namespace's claims alone, and writes down who it is", func(ctx SpecContext) {
		user := "tenant-of-" + p.namespace
		role(ctx, user, p.namespace)
		config, err := controlPlane.ConfigFor(env.User{Name: user, Groups: []string{"tenants"}})
		Expect(err).NotTo(HaveOccurred())
		tenant, err := client.New(config, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		free := p.server(ctx, "free", inState(v1alpha1.StateInitial))
		claim := p.claim(ctx, "theirs", naming(p.pool+"-ours"))
		ours := p.server(ctx, "ours", writtenFor(p.namespace, "theirs", string(claim.UID)), inState(v1alpha1.StateReserved))
		asks := func(server string, policy v1alpha1.ServerMaintenancePolicy) *v1alpha1.ServerMaintenance {
			m := &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "work-on-" + server}}
			m.Spec.ServerRef.Name, m.Spec.Policy = server, policy
			return m
		}
		Expect(tenant.Create(ctx, asks(free.Name, ""))).To(MatchError(ContainSubstring("maintain")))
		Expect(tenant.Create(ctx, asks(ours.Name, v1alpha1.ServerMaintenancePolicyEnforced))).To(MatchError(ContainSubstring("enforce")))
		m := asks(ours.Name, v1alpha1.ServerMaintenancePolicyOwnerApproval)
		Eventually(func() error { return tenant.Create(ctx, m) }).Should(Succeed(), "once admission has seen the claim's reference")
		Expect(m.Annotations[v1alpha1.MakerAnnotation]).To(And(ContainSubstring(user), ContainSubstring("tenants")))

		By("forging it")
		before := m.DeepCopy()
		m.Annotations[v1alpha1.MakerAnnotation] = `{"username":"admin","groups":["system:masters"]}`
		Expect(tenant.Patch(ctx, m, client.MergeFrom(before))).To(Succeed())
		Expect(m.Annotations[v1alpha1.MakerAnnotation]).To(ContainSubstring(user))
	})
})

// role lets a user do with maintenances of a namespace as it likes.
func role(ctx context.Context, user, namespace string) {
	GinkgoHelper()
	Expect(admin.Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"servermaintenances"}, Verbs: []string{"*"}}}})).To(Succeed())
	Expect(admin.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}})).To(Succeed())
}

var _ = Describe("A manager that grants no maintenances", func() {
	It("says so of one without a state, and leaves one alone that another manager answered or that is ignored", func(ctx SpecContext) {
		p := newPlace(ctx)
		made := func(name string, annotations map[string]string) *v1alpha1.ServerMaintenance {
			m := &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name, Annotations: annotations}}
			m.Spec.ServerRef.Name = "nowhere"
			Expect(admin.Create(ctx, m)).To(Succeed())
			return m
		}
		carriedOut := func(m *v1alpha1.ServerMaintenance) { m.Status.State = v1alpha1.ServerMaintenanceStateInMaintenance }
		theirs := made("theirs", nil)
		patchStatus(ctx, theirs, carriedOut)
		ignored := made("ignored", map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationIgnore})
		startManager(ctx, func(mgr ctrl.Manager) error {
			return maintenance.Setup(mgr, maintenance.Options{Mode: maintenance.Off})
		})
		waits := made("waits", nil)
		Eventually(granted(ctx, waits)).Should(Equal("Pending NothingGrants"))
		Expect(live(ctx, theirs).Status.Conditions).To(BeEmpty())
		Expect(live(ctx, ignored).Status).To(Equal(v1alpha1.ServerMaintenanceStatus{}))

		By("another manager that carries it out")
		patchStatus(ctx, waits, carriedOut)
		Eventually(granted(ctx, waits)).Should(Equal("InMaintenance"))
	})
})

var _ = Describe("A manager that grants maintenances", func() {
	It("writes down since when, though there is nothing to grant yet", func(ctx SpecContext) {
		consent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "metalaw-system", Name: maintenance.ConsentConfigMap}}
		forget := func(ctx context.Context) { Expect(client.IgnoreNotFound(admin.Delete(ctx, consent))).To(Succeed()) }
		forget(ctx)
		DeferCleanup(func(ctx SpecContext) { forget(ctx) })
		startManager(ctx, func(mgr ctrl.Manager) error {
			return maintenance.Setup(mgr, maintenance.Options{Mode: maintenance.On, Bundles: willing{}, Namespace: "metalaw-system",
				Gate: &fleet.Gate{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Now: time.Now}})
		})
		Eventually(func() error { return admin.Get(ctx, client.ObjectKeyFromObject(consent), consent) }).Should(Succeed())
		Expect(consent.Data).To(HaveKey(maintenance.ConsentKey))
	})
})
