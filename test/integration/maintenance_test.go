// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/maintenance"
	"github.com/metalaw/metalaw/engine/bundle"
	enginemaintenance "github.com/metalaw/metalaw/engine/maintenance"
)

// willing is a policy that grants wherever the holder agrees.
type willing struct{}

func (willing) Active() *bundle.Bundle {
	return &bundle.Bundle{Manifest: bundle.Manifest{Settings: bundle.Settings{Maintenance: &enginemaintenance.Policy{Expected: time.Hour}}}}
}
func (willing) Held(string) (string, bool) { return "", false }
func (willing) Changed(func())             {}

// maintenance makes a maintenance of a server; maker is what admission would record of who made it.
func (p place) maintenance(ctx context.Context, server, maker string) *v1alpha1.ServerMaintenance {
	GinkgoHelper()
	m := &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "work"}}
	m.Spec.ServerRef.Name = server
	if maker != "" {
		m.Annotations = map[string]string{v1alpha1.MakerAnnotation: maker}
	}
	Expect(admin.Create(ctx, m)).To(Succeed())
	return m
}

// granted is the state of a maintenance and its condition Granted in short.
func granted(ctx context.Context, m *v1alpha1.ServerMaintenance) func(Gomega) string {
	return func(g Gomega) string {
		got := live(ctx, m.DeepCopy())
		c := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionGranted)
		if c == nil {
			return string(got.Status.State)
		}
		return string(got.Status.State) + " " + c.Reason
	}
}

// grantsSince has a manager granted maintenances since a time, so that those of now are not older.
func grantsSince(ctx context.Context, at time.Time) {
	GinkgoHelper()
	consent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "metalaw-system", Name: maintenance.ConsentConfigMap},
		Data: map[string]string{maintenance.ConsentKey: at.UTC().Format(time.RFC3339)}}
	Expect(client.IgnoreAlreadyExists(admin.Create(ctx, consent))).To(Succeed())
}

// mayMaintain gives a user the right to maintain a server.
func mayMaintain(ctx context.Context, user, server string) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"servers"}, ResourceNames: []string{server}, Verbs: []string{"maintain"}}}}
	Expect(admin.Create(ctx, role)).To(Succeed())
	Expect(admin.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}})).To(Succeed())
}

var _ = Describe("The scheduler of maintenances", func() {
	var p place

	BeforeEach(func(ctx SpecContext) {
		p = newPlace(ctx)
		grantsSince(ctx, time.Now().Add(-time.Hour))
		startManager(ctx, func(mgr ctrl.Manager) error {
			return maintenance.Setup(mgr, maintenance.Options{Mode: maintenance.On, Bundles: willing{}, Namespace: "metalaw-system",
				Gate: &fleet.Gate{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Now: time.Now}})
		})
	})

	It("asks the holder of a claim, hands the server over, and leaves nothing behind", func(ctx SpecContext) {
		c := p.claim(ctx, "db", naming(p.pool+"-a"))
		patchStatus(ctx, c, func(c *v1alpha1.ServerClaim) { c.Status.Phase = v1alpha1.PhaseBound })
		s := p.server(ctx, "a", writtenFor(p.namespace, "db", string(c.UID)), inState(v1alpha1.StateReserved), begun)
		m := p.maintenance(ctx, s.Name, "")
		Eventually(granted(ctx, m)).Should(Equal("Pending WaitsForApproval"))
		Eventually(func() map[string]string { return live(ctx, c).Labels }).Should(HaveKeyWithValue(v1alpha1.MaintenanceNeededLabel, "true"))
		patch(ctx, c, func(c *v1alpha1.ServerClaim) {
			metav1.SetMetaDataLabel(&c.ObjectMeta, v1alpha1.MaintenanceApprovedLabel, "any")
		})
		Eventually(granted(ctx, m)).WithTimeout(5 * time.Second).Should(Equal("InMaintenance ServerGranted"))
		Expect(live(ctx, s).Spec.ServerMaintenanceRef).To(HaveValue(Equal(v1alpha1.ObjectReference{Namespace: p.namespace, Name: "work"})))
		Expect(s.Spec.ServerClaimRef).NotTo(BeNil())

		Expect(admin.Delete(ctx, m)).To(Succeed())
		Eventually(func() bool { return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(m), m)) }).Should(BeTrue())
		Expect(live(ctx, c).Labels).To(BeEmpty())
		Expect(c.Annotations).To(BeEmpty())
		Expect(live(ctx, s).Spec.ServerMaintenanceRef).To(BeNil())
	})

	It("grants nothing to a maker who lacks the right, until it is given", func(ctx SpecContext) {
		s := p.server(ctx, "a", begun)
		user := "maker-of-" + p.namespace
		m := p.maintenance(ctx, s.Name, `{"username":"`+user+`"}`)
		Eventually(granted(ctx, m)).Should(Equal("Pending NotPermitted"))
		Expect(live(ctx, s).Spec.ServerMaintenanceRef).To(BeNil())
		mayMaintain(ctx, user, s.Name)
		Eventually(granted(ctx, m)).WithTimeout(90 * time.Second).WithPolling(time.Second).Should(Equal("InMaintenance ServerGranted"))
	})
})

// begun is a server whose lifecycle has begun.
func begun(s *v1alpha1.Server) {
	s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 1, EnteredAt: metav1.NowMicro()}
}
