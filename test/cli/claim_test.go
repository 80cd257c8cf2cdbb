// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// storeRevision stores the default bundle as the revision in force, as a manager would.
func storeRevision(ctx SpecContext) string {
	GinkgoHelper()
	files, err := policies.Shipped(policies.DefaultBundle)
	Expect(err).NotTo(HaveOccurred())
	b, _, err := bundle.Compile(files, policies.Vocabulary())
	Expect(err).NotTo(HaveOccurred())
	content, err := files.Pack()
	Expect(err).NotTo(HaveOccurred())
	// Specs that ran before may have left revisions, this one among them.
	Expect(admin.DeleteAllOf(ctx, &policyv1alpha1.PolicyRevision{})).To(Succeed())
	r := &policyv1alpha1.PolicyRevision{ObjectMeta: metav1.ObjectMeta{Name: b.Revision.Name}, Spec: policyv1alpha1.PolicyRevisionSpec{
		Bundle: b.Name, Version: b.Version, Digest: b.Revision.Digest, Content: content}}
	Expect(admin.Create(ctx, r)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, r)).To(Succeed()) })
	before := r.DeepCopy()
	r.Status.Conditions = []metav1.Condition{{Type: policyv1alpha1.ConditionActive, Status: metav1.ConditionTrue,
		Reason: policyv1alpha1.ReasonInForce, LastTransitionTime: metav1.Now()}}
	Expect(admin.Status().Patch(ctx, r, client.MergeFrom(before))).To(Succeed())
	return r.Name
}

var _ = Describe("Why a claim waits", Ordered, func() {
	const namespace = "why"
	revision := ""
	patch := func(ctx SpecContext, s *v1alpha1.Server, change func(*v1alpha1.Server)) {
		GinkgoHelper()
		before := s.DeepCopy()
		change(s)
		status := s.Status.DeepCopy()
		Expect(admin.Patch(ctx, s, client.MergeFrom(before))).To(Succeed())
		before = s.DeepCopy()
		s.Status = *status
		Expect(admin.Status().Patch(ctx, s, client.MergeFrom(before))).To(Succeed())
	}
	claim := func(ctx SpecContext, name string) *v1alpha1.ServerClaim {
		GinkgoHelper()
		c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		c.Spec.Power, c.Spec.Image = v1alpha1.PowerOn, "os"
		c.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "why"}}
		Expect(admin.Create(ctx, c)).To(Succeed())
		before := c.DeepCopy()
		c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionBound, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoneClaimable,
			Message: "3 of 4 servers match: claimed 1, not-off 1, unclaimable 1", LastTransitionTime: metav1.Now()}}
		Expect(admin.Status().Patch(ctx, c, client.MergeFrom(before))).To(Succeed())
		return c
	}
	file := func(text string) string {
		GinkgoHelper()
		path := filepath.Join(GinkgoT().TempDir(), "claims.yaml")
		Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
		return path
	}
	document := func(name, spec string) string {
		return "---\napiVersion: metal.ironcore.dev/v1alpha1\nkind: ServerClaim\nmetadata: {name: " + name + ", namespace: why}\nspec:\n" +
			"  power: \"On\"\n  image: os\n  serverSelector: {matchLabels: {pool: why}}\n" + spec
	}

	BeforeAll(func(ctx SpecContext) {
		Expect(controlPlane.RemoveWebhooks(ctx)).To(Succeed())
		Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
		Expect(admin.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "nora-edit"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "metalaw-claim-editor"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: nobody.name}}})).To(Succeed())
		Expect(admin.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "nora-view"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "metalaw-claim-viewer"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: nobody.name}}})).To(Succeed())
		Expect(admin.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "olga-claims"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "metalaw-claim-editor"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: operator.name}}})).To(Succeed())
		revision = storeRevision(ctx)
		pool := map[string]string{"pool": "why"}
		patch(ctx, newServer(ctx, "why-claimed", pool, v1alpha1.StateReserved), func(s *v1alpha1.Server) {
			s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "secret", Name: "theirs"}
		})
		patch(ctx, newServer(ctx, "why-on", pool, v1alpha1.StateAvailable), func(s *v1alpha1.Server) { s.Status.PowerState = v1alpha1.PowerStateOn })
		patch(ctx, newServer(ctx, "why-cordoned", pool, v1alpha1.StateAvailable), func(s *v1alpha1.Server) {
			s.Spec.Unclaimable, s.Status.PowerState = true, v1alpha1.PowerStateOff
		})
		newServer(ctx, "why-elsewhere", nil, v1alpha1.StateAvailable)
	})

	It("is told server by server, the nearest misses first, with the policy in force", func(ctx SpecContext) {
		claim(ctx, "web-1")
		got := viewer.says(ctx, "explain", "claim", "web-1", "-n", namespace)
		Expect(got.code).To(BeZero(), got.err)
		Expect(got.err).To(BeEmpty())
		AddReportEntry("explain", got.out)
		Expect(got.out).To(And(
			MatchRegexp(`^Claim why/web-1 waits since \d+s \(NoneClaimable\)\n\nIt says: +3 of 4 servers match`),
			ContainSubstring("Waits for:   why-on: its power state is On and not Off (not-off)\n"),
			ContainSubstring("Order:       1 of 1 claims that wait in all namespaces; priority 0\n"),
			ContainSubstring("Policy:      "+revision+"\n"),
			MatchRegexp(`(?m)^SERVER +FITS +WHY\nwhy-on +not-off +its power state is On and not Off\n`+
				`why-claimed +claimed +another claim has it\nwhy-cordoned +unclaimable +it is cordoned`),
			MatchRegexp(`(?m)^  claimed +1  Another claim has the server\.\n +Do: Wait until a claim is released, or add servers\. `),
		))
		Expect(got.out).NotTo(Or(ContainSubstring("theirs"), ContainSubstring("\x1b")))
	})

	It("is told to programs too, the same each time", func(ctx SpecContext) {
		got := viewer.says(ctx, "explain", "claim", "web-1", "-n", namespace, "-o", "json", "--all")
		Expect(got.code).To(BeZero(), got.err)
		var e struct {
			Bound                 bool
			Reason, Revision      string
			Total, Matching, Fits int
			Codes                 []struct{ Code string }
			Servers               []struct {
				Name    string
				Fits    bool
				Reasons []struct{ Code, Message, Stage string }
			}
		}
		Expect(json.Unmarshal([]byte(got.out), &e)).To(Succeed())
		Expect(e.Revision).To(Equal(revision))
		Expect(e.Matching).To(Equal(3))
		Expect(e.Servers).To(HaveLen(e.Total))
		Expect(e.Servers[0].Reasons[0].Stage).To(Equal("contract"))
		Expect(viewer.says(ctx, "explain", "claim", "web-1", "-n", namespace, "-o", "json", "--all").out).To(Equal(got.out))
		Expect(viewer.runs(ctx, filepath.Join(folder, "kubectl-metalaw"), "explain", "claim", "web-1", "-n", namespace, "-o", "yaml").out).
			To(ContainSubstring("waitsFor: 'why-on: "))
	})

	It("is told by the claim's own words to whoever may not see servers", func(ctx SpecContext) {
		got := nobody.says(ctx, "explain", "claim", "web-1", "-n", namespace)
		Expect(got.code).To(BeZero(), got.err)
		AddReportEntry("tenant", got.out+got.err)
		Expect(got.out).To(And(ContainSubstring("It says:     3 of 4 servers match"), ContainSubstring("in this namespace"), Not(ContainSubstring("why-"))))
		Expect(got.err).To(And(ContainSubstring(`it takes the verb "list" on servers.metal.ironcore.dev`), ContainSubstring("metalaw-fleet-viewer")))
	})

	It("is told of a server as well, with the rules that lead out of its state", func(ctx SpecContext) {
		patch(ctx, newServer(ctx, "why-explained", nil, v1alpha1.StateAvailable), func(s *v1alpha1.Server) {
			s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Revision: revision, Entry: 2, Rule: "ProbeReported", EnteredAt: metav1.NowMicro()}
		})
		got := viewer.says(ctx, "explain", "server", "why-explained")
		Expect(got.code).To(BeZero(), got.err)
		Expect(got.err).To(BeEmpty())
		AddReportEntry("explain", got.out)
		Expect(got.out).To(And(
			MatchRegexp(`^Server why-explained is Available since \d+s \(ProbeReported\)\n`),
			ContainSubstring("Policy:      "+revision+"\n"),
			MatchRegexp(`(?m)^Claimed +Reserved +no +held && !binding && poweredOff \(held is false\)`),
		))
		Expect(nobody.says(ctx, "explain", "server", "why-explained").err).To(ContainSubstring(`it takes the verb "get" on servers.metal.ironcore.dev`))
		Expect(viewer.says(ctx, "explain", "server")).To(Equal(said{code: 2, err: "metalaw: name one server; see --help\n"}))
	})

	It("is not told of a claim that there is not, nor of no claim", func(ctx SpecContext) {
		Expect(viewer.says(ctx, "explain", "claim", "none", "-n", namespace)).To(Equal(
			said{code: 1, err: "metalaw: there is no claim none in namespace why; -n names another namespace\n"}))
		Expect(viewer.says(ctx, "explain", "claim")).To(Equal(said{code: 2, err: "metalaw: name one claim; see --help\n"}))
		Expect(viewer.says(ctx, "claim", "try").code).To(Equal(2))
		Expect(viewer.says(ctx, "__complete", "explain", "claim", "-n", namespace, "we").out).To(HavePrefix("web-1"))
	})

	It("can be asked before the claim is there, and nothing is stored", func(ctx SpecContext) {
		patch(ctx, newServer(ctx, "why-free-b", map[string]string{"pool": "why"}, v1alpha1.StateAvailable), func(s *v1alpha1.Server) {
			s.Status.PowerState = v1alpha1.PowerStateOff
		})
		patch(ctx, newServer(ctx, "why-free-a", map[string]string{"pool": "why"}, v1alpha1.StateAvailable), func(s *v1alpha1.Server) {
			s.Status.PowerState = v1alpha1.PowerStateOff
		})
		By("two that fit, and a third for which nothing is left")
		two := document("try-1", "") + document("try-2", "")
		got := operator.says(ctx, "claim", "try", "-f", file(two))
		AddReportEntry("try", got.out+got.err)
		Expect(got.code).To(BeZero(), got.err)
		Expect(got.out).To(And(ContainSubstring("Claim why/try-1 (line 2): would be bound to why-free-a\n"),
			ContainSubstring("Claim why/try-2 (line 10): would be bound to why-free-b\n"), ContainSubstring("Admission:   allowed\n"),
			MatchRegexp(`(?m)^why-free-b +yes, 2 +score \d+$`)))
		got = operator.says(ctx, "claim", "try", "-f", file(two+document("try-3", "")), "-o", "json")
		Expect(got.code).To(Equal(1))
		var tried struct {
			Binds  bool
			Claims []struct {
				Binds            bool
				Server, WaitsFor string
			}
		}
		Expect(json.Unmarshal([]byte(got.out), &tried)).To(Succeed())
		Expect(tried.Claims[2].Binds).To(BeFalse())
		Expect(tried.Claims[2].WaitsFor).To(HavePrefix("why-on: "))

		By("a gang of three, of which none gets a server")
		gang := func(name string) string {
			return "---\napiVersion: metal.ironcore.dev/v1alpha1\nkind: ServerClaim\nmetadata:\n  name: " + name + "\n  annotations:\n" +
				"    policy.metalaw.dev/placement: 'gang: {name: db, size: 3}'\nspec: {power: \"On\", image: os, serverSelector: {matchLabels: {pool: why}}}\n"
		}
		got = operator.says(ctx, "claim", "try", "-n", namespace, "-f", file(gang("db-0")+gang("db-1")+gang("db-2")+document("alone", "")))
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(And(ContainSubstring("db-0 (line 2): would wait\n"), MatchRegexp(`Waits for: +more servers for its gang; the nearest is why-on: `), MatchRegexp(`(?m)^  gang +2 `),
			ContainSubstring("alone (line 26): would be bound to why-free-a\n")))

		By("what is wrong with the file, at its place")
		path := file(document("bad", "  imgae: os\n"))
		got = operator.says(ctx, "claim", "try", "-f", path)
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(And(ContainSubstring("would not be stored"), ContainSubstring(path+`:2: error: unknown field "spec.imgae"`)))

		By("what the API server refuses")
		got = operator.says(ctx, "claim", "try", "-f", file(document("refused", "  tolerations: [{operator: Sometimes}]\n")))
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(MatchRegexp(`Admission: +denied: .*Unsupported value: "Sometimes"`))

		By("by somebody who may not create claims, and by somebody who may not see servers")
		got = viewer.says(ctx, "claim", "try", "-f", file(document("try-1", "")))
		Expect(got.code).To(BeZero(), got.err)
		Expect(got.out).To(MatchRegexp(`Admission: +unasked: forbidden: .*it takes the verb "create"`))
		got = nobody.says(ctx, "claim", "try", "-f", file(document("try-1", "")))
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(And(ContainSubstring("unknown"), ContainSubstring("Admission:   allowed")))
		Expect(got.err).To(ContainSubstring("you may not list servers"))

		var claims v1alpha1.ServerClaimList
		Expect(admin.List(ctx, &claims, client.InNamespace(namespace))).To(Succeed())
		Expect(claims.Items).To(HaveLen(1))
	})

	It("is told of a claim that the policy forbids, and that was stored while nobody could ask it", func(ctx SpecContext) {
		c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "forbidden"}}
		c.Spec.Power, c.Spec.Image = v1alpha1.PowerOn, "two words"
		Expect(admin.Create(ctx, c)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, c)).To(Succeed()) })
		got := viewer.says(ctx, "explain", "claim", "forbidden", "-n", namespace)
		Expect(got.code).To(BeZero(), got.err)
		Expect(got.out).To(And(ContainSubstring("Waits for:   policy "+revision+" forbids the claim: spec.image: the image contains white space"),
			ContainSubstring("[image-malformed] (ClaimDenied)\n"), Not(ContainSubstring("would get"))))
	})

	It("is told of a bound claim as how its server was chosen", func(ctx SpecContext) {
		c := claim(ctx, "bound")
		before := c.DeepCopy()
		c.Spec.ServerRef = &corev1.LocalObjectReference{Name: "why-free-a"}
		Expect(admin.Patch(ctx, c, client.MergeFrom(before))).To(Succeed())
		before = c.DeepCopy()
		c.Status.Conditions[0].Status, c.Status.Conditions[0].Reason = metav1.ConditionTrue, v1alpha1.ReasonBound
		c.Status.Conditions[0].Message = ""
		Expect(admin.Status().Patch(ctx, c, client.MergeFrom(before))).To(Succeed())
		patch(ctx, getServer(ctx, "why-free-a"), func(s *v1alpha1.Server) {
			s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: namespace, Name: "bound"}
			s.Annotations = map[string]string{v1alpha1.ClaimUIDAnnotation: string(c.UID), v1alpha1.BindingAnnotation: `{"revision":"` + revision +
				`","score":130,"runnersUp":1,"at":"` + time.Now().UTC().Format(time.RFC3339) + `"}`}
		})
		got := viewer.says(ctx, "explain", "claim", "bound", "-n", namespace)
		Expect(got.code).To(BeZero(), got.err)
		Expect(got.out).To(And(HavePrefix("Claim why/bound is bound since "), ContainSubstring("Server:      why-free-a\n"),
			ContainSubstring("Chosen by:   "+revision+", with score 130; 1 other server would have done\n")))
	})
})
