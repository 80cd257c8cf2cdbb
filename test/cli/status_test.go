// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// forgetWithheld takes away what a manager said that only observed.
func forgetWithheld(ctx SpecContext) {
	var servers v1alpha1.ServerList
	Expect(admin.List(ctx, &servers)).To(Succeed())
	for i := range servers.Items {
		s := &servers.Items[i]
		before := s.DeepCopy()
		if meta.RemoveStatusCondition(&s.Status.Conditions, v1alpha1.ConditionWithheld) {
			Expect(admin.Status().Patch(ctx, s, client.MergeFrom(before))).To(Succeed())
		}
	}
}

var _ = Describe("The state of the fleet at one look", Ordered, func() {
	// trouble has a server say that a wipe failed.
	trouble := func(ctx SpecContext, s *v1alpha1.Server) {
		GinkgoHelper()
		before := s.DeepCopy()
		for kind, status := range map[string]metav1.ConditionStatus{
			v1alpha1.ConditionReady: metav1.ConditionFalse, v1alpha1.ConditionStalled: metav1.ConditionTrue} {
			s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "WipeFailed",
				Message: "disk sda: I/O error", LastTransitionTime: metav1.Now()})
		}
		Expect(admin.Status().Patch(ctx, s, client.MergeFrom(before))).To(Succeed())
	}

	It("cannot be told to a user without rights, and where nothing answers", func(ctx SpecContext) {
		got := nobody.says(ctx, "status")
		Expect(got.code).To(Equal(2))
		Expect(got.err).To(ContainSubstring(`it takes the verb "list" on servers.metal.ironcore.dev`))
		got = viewer.says(ctx, "status", "--server=https://127.0.0.1:1")
		Expect(got.code).To(Equal(2))
		Expect(got.err).To(ContainSubstring("cannot reach the API server"))
		Expect(viewer.says(ctx, "status", "everything").code).To(Equal(2))
	}, SpecTimeout(time.Minute))

	It("says what it takes to know the mode of the manager", func(ctx SpecContext) {
		got := viewer.says(ctx, "status")
		Expect(got.out).To(ContainSubstring("Not known: leases: forbidden"))
		Expect(got.out).To(ContainSubstring("The manager's mode is not known"))
		Expect(admin.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "metalaw-system", Name: "vera"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "metalaw-fleet-viewer"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: viewer.name}}})).To(Succeed())
		Eventually(func() string { return viewer.says(ctx, "status").out }).ShouldNot(ContainSubstring("Not known"))
	}, SpecTimeout(time.Minute))

	It("tells that a manager only observes", func(ctx SpecContext) {
		DeferCleanup(forgetWithheld) // once the manager has ended: no other one takes it back
		startManager(ctx, "--observe-only", "--maintenance=plan")
		Eventually(func() string { return viewer.says(ctx, "status").out }).
			Should(ContainSubstring("Mode: observe-only, so that nothing is done to any machine; maintenance plan"))
	}, SpecTimeout(2*time.Minute))

	It("names what needs a person, by exit code and as a document", func(ctx SpecContext) {
		trouble(ctx, newServer(ctx, "in-trouble", nil, v1alpha1.StateError))
		got := viewer.says(ctx, "status", "-o", "json")
		Expect(got.code).To(Equal(1))
		var answers struct {
			Verdict string
			NotWell []struct{ Name, Reason string }
		}
		Expect(json.Unmarshal([]byte(got.out), &answers)).To(Succeed())
		Expect(answers.Verdict).To(Equal("NeedsPerson"))
		Expect(answers.NotWell).To(ContainElement(HaveField("Name", "in-trouble")))
	}, SpecTimeout(time.Minute))

	It("is shown anew when something changes", func(ctx SpecContext) {
		var claims v1alpha1.ServerClaimList
		Expect(admin.List(ctx, &claims)).To(Succeed())
		out := gbytes.NewBuffer()
		cmd := viewer.command(ctx, filepath.Join(folder, "metalaw"), "status", "--watch")
		cmd.Stdout = out
		Expect(cmd.Start()).To(Succeed())
		DeferCleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		Eventually(out).Should(gbytes.Say("Claims +%d:", len(claims.Items)))
		claim := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "seen"}}
		claim.Spec.Power, claim.Spec.Image = v1alpha1.PowerOff, "os"
		claim.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"none": "such"}}
		Expect(admin.Create(ctx, claim)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(admin.Delete(ctx, claim))).To(Succeed()) })
		Eventually(out).Should(gbytes.Say("Claims +%d:", len(claims.Items)+1))
	}, SpecTimeout(time.Minute))
})
