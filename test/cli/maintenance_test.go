// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// newMaintenance stores a maintenance in namespace default for a server that claim default/NAME holds, as a manager would have asked for it.
func newMaintenance(ctx context.Context, name string) (*v1alpha1.ServerMaintenance, *v1alpha1.ServerClaim) {
	GinkgoHelper()
	claim := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	claim.Spec.Power, claim.Spec.Image = v1alpha1.PowerOff, "os"
	Expect(admin.Create(ctx, claim)).To(Succeed())
	s := newServer(ctx, name, map[string]string{"rack": name}, v1alpha1.StateReserved)
	before := s.DeepCopy()
	s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "default", Name: name}
	s.Annotations = map[string]string{v1alpha1.ClaimUIDAnnotation: string(claim.UID)}
	Expect(admin.Patch(ctx, s, client.MergeFrom(before))).To(Succeed())
	m := &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	m.Spec.ServerRef.Name = name
	Expect(admin.Create(ctx, m)).To(Succeed())
	was := m.DeepCopy()
	m.Status.State, m.Status.Asked = v1alpha1.ServerMaintenanceStatePending, &v1alpha1.MaintenanceAsked{ClaimUID: claim.UID, At: metav1.Now()}
	m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionGranted, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonWaitsForApproval,
		Message: "ask", LastTransitionTime: metav1.Now()}}
	Expect(admin.Status().Patch(ctx, m, client.MergeFrom(was))).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		for _, o := range []client.Object{m, s, claim} {
			Expect(admin.Delete(ctx, o)).To(Succeed())
		}
	})
	return m, claim
}

var _ = Describe("The commands about maintenances", Ordered, func() {
	BeforeAll(func(ctx SpecContext) { Expect(controlPlane.RemoveWebhooks(ctx)).To(Succeed()) })

	It("list what waits, and explain it", func(ctx SpecContext) {
		newMaintenance(ctx, "m-list")
		got := viewer.says(ctx, "maintenance", "list", "-n", "default", "--waiting")
		Expect(got.out).To(MatchRegexp(`(?m)^default +m-list +m-list +OwnerApproval +Pending +\d+s +WaitsForApproval: ask$`), got.err)
		got = viewer.says(ctx, "explain", "maintenance", "m-list", "-n", "default")
		Expect(got.code).To(BeZero(), got.err)
		Expect(got.out).To(And(MatchRegexp(`^Maintenance default/m-list is Pending since \d+s \(WaitsForApproval\)\n`),
			MatchRegexp(`(?m)^Consent: +its holder was asked \d+s ago; it has not approved$`)))
		Expect(viewer.says(ctx, "explain", "server", "m-list").out).To(ContainSubstring("Wanted by:   default/m-list: WaitsForApproval: ask\n"))
	})

	It("approve for the claim, with the right to write it", func(ctx SpecContext) {
		_, claim := newMaintenance(ctx, "m-approve")
		got := viewer.says(ctx, "maintenance", "approve", "m-approve", "-n", "default")
		Expect(got.code).To(Equal(1))
		Expect(got.err).To(ContainSubstring(`it takes the verb "patch" on serverclaims.metal.ironcore.dev; the ClusterRole metalaw-claim-editor has it`))

		By("a tenant, who may see no server")
		got = tenant.says(ctx, "maintenance", "approve", "m-approve", "-n", "default", "--reason", "drained")
		Expect(got.code).To(BeZero(), got.err)
		Expect(got.out).To(And(ContainSubstring("\nAn approval covers:\n"),
			HaveSuffix("approved: claim default/m-approve has label metal.ironcore.dev/maintenance-approved=true\n")))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		Expect(claim.Labels).To(Equal(map[string]string{"metal.ironcore.dev/maintenance-approved": "true"}))
		Expect(claim.Annotations).To(Equal(map[string]string{"policy.metalaw.dev/approval-reason": "drained"}))

		By("a second time")
		got = tenant.says(ctx, "maintenance", "approve", "m-approve", "-n", "default")
		Expect(got.code).To(BeZero(), got.err)
		Expect(got.out).To(HaveSuffix("unchanged: the claim bears an approval already: label metal.ironcore.dev/maintenance-approved=true\n"))
	})

	It("abort, and keep the reason", func(ctx SpecContext) {
		m, _ := newMaintenance(ctx, "m-abort")
		got := operator.says(ctx, "maintenance", "abort", "m-abort", "-n", "default", "--reason", "wrong image")
		Expect(got).To(Equal(said{out: "default/m-abort  asked\nStops:       at once: it holds no server\n" +
			"Then:        state Failed, reason Aborted; kubectl delete servermaintenance -n default m-abort removes it\n"}))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
		Expect(m.Annotations).To(HaveKeyWithValue("policy.metalaw.dev/abort", "wrong image"))
	})

	It("pause and resume", func(ctx SpecContext) {
		DeferCleanup(func(ctx SpecContext) {
			c := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName}}
			Expect(client.IgnoreNotFound(admin.Delete(ctx, c))).To(Succeed())
		})
		got := operator.says(ctx, "maintenance", "pause", "-l", "rack=m1", "--reason", "INC-1301")
		Expect(got).To(Equal(said{out: "paused: freeze \"maintenance-paused\" (Maintenance) by olga: INC-1301\n" +
			"No maintenance holds one of these servers now.\n"}))
		c := &policyv1alpha1.FleetControl{}
		Expect(admin.Get(ctx, types.NamespacedName{Name: policyv1alpha1.FleetControlName}, c)).To(Succeed())
		Expect(c.Spec.Freezes).To(Equal([]policyv1alpha1.Freeze{{Name: "maintenance-paused", Level: policyv1alpha1.FreezeMaintenance, By: "olga", Reason: "INC-1301",
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "m1"}}}}))
		Expect(operator.says(ctx, "maintenance", "resume").out).To(Equal("resumed nothing: no such pause stands\n" +
			"still held back by freeze \"maintenance-paused\" (Maintenance) by olga: INC-1301, for servers with rack=m1\n"))
		Expect(operator.says(ctx, "maintenance", "resume", "-l", "rack=m1").out).To(Equal("resumed freeze \"maintenance-paused\" (Maintenance) by olga: INC-1301\n"))
	})

	It("plan nothing without a policy in force, and read files strictly", func(ctx SpecContext) {
		file := filepath.Join(GinkgoT().TempDir(), "m.yaml")
		Expect(os.WriteFile(file, []byte("apiVersion: metal.ironcore.dev/v1alpha1\nkind: ServerMaintenance\nmetadata: {name: a}\nspec: {server: n}\n"), 0o600)).To(Succeed())
		got := viewer.says(ctx, "maintenance", "plan", "-f", file, "-n", "default")
		Expect(got).To(Equal(said{code: 1, err: "metalaw: " + file + `: ServerMaintenance a: unknown field "spec.server"` + "\n"}))
		Expect(admin.DeleteAllOf(ctx, &policyv1alpha1.PolicyRevision{})).To(Succeed()) // other specs leave theirs
		Expect(viewer.says(ctx, "maintenance", "plan").err).To(HavePrefix("metalaw: no policy is in force"))
	})

	It("decommission and attest by operations", func(ctx SpecContext) {
		newServer(ctx, "m-goes", nil, v1alpha1.StateError)
		Expect(operator.says(ctx, "server", "decommission", "m-goes", "--reason", "INC-1")).To(Equal(said{
			out: "m-goes  asked      decommission; it was in Error; it takes no new claim; it is switched off and stays off; " +
				"metalaw explain server m-goes shows how far it is\n"}))
		Expect(getServer(ctx, "m-goes").Annotations).To(Equal(asks("decommission")))
		newServer(ctx, "m-disk", nil, v1alpha1.StateError)
		Expect(operator.says(ctx, "server", "attest", "m-disk", "--disk", "S1", "--method", "destroy", "--reason", "INC-1", "--yes", "--wait=false")).To(Equal(said{
			out: "m-disk  asked      attest disk S1 as destroy; it was in Error\n"}))
		Expect(getServer(ctx, "m-disk").Annotations).To(Equal(asks("attest-disk", "policy.metalaw.dev/attest-disk", "S1", "policy.metalaw.dev/attest-method", "destroy")))
	})
})
