// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os/exec"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/controllers/maintenance"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/test/env"
)

const managerNamespace = "metalaw-system"

var _ = Describe("Admission of policy bundles", Serial, Ordered, func() {
	var d *door
	// ann writes bundles, and rosa may activate bundle adm as well. Both have the shipped roles and no other right.
	var ann, rosa client.Client
	heard := &told{}
	var made []client.Object
	keep := func(o client.Object, err error) error {
		if err == nil {
			made = append(made, o)
		}
		return err
	}
	bind := func(ctx context.Context, subject rbacv1.Subject, roles ...string) {
		GinkgoHelper()
		subject.APIGroup = rbacv1.GroupName
		author := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: managerNamespace, Name: "adm-" + subject.Name},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "metalaw-policy-author"}, Subjects: []rbacv1.Subject{subject}}
		Expect(keep(author, admin.Create(ctx, author))).To(Succeed())
		for _, role := range append([]string{"metalaw-policy-author"}, roles...) {
			binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "adm-" + subject.Name + "-" + role},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: []rbacv1.Subject{subject}}
			Expect(keep(binding, admin.Create(ctx, binding))).To(Succeed())
		}
	}
	as := func(rights *rest.Config) client.Client {
		GinkgoHelper()
		rights = rest.CopyConfig(rights)
		rights.WarningHandlerWithContext = heard
		c, err := client.New(rights, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		return c
	}
	kubectl := func(ctx context.Context, user string, input string, args ...string) (string, error) {
		GinkgoHelper()
		kubeconfig, err := controlPlane.KubeconfigFor(env.User{Name: user})
		Expect(err).NotTo(HaveOccurred())
		var out bytes.Buffer
		cmd := exec.CommandContext(ctx, controlPlane.Kubectl(), append([]string{"--kubeconfig", kubeconfig, "-n", managerNamespace}, args...)...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &out
		err = cmd.Run()
		return out.String(), err
	}
	store := func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error {
		return keep(cm, c.Create(ctx, cm))
	}
	// edited makes a change of what is stored.
	edited := func(ctx context.Context, c client.Client, cm *corev1.ConfigMap, change func()) error {
		GinkgoHelper()
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(cm), cm)).To(Succeed())
		before := cm.DeepCopy()
		change()
		return c.Patch(ctx, cm, client.MergeFrom(before))
	}
	labelled := func(ctx context.Context, c client.Client, cm *corev1.ConfigMap, stage string) error {
		GinkgoHelper()
		return edited(ctx, c, cm, func() { cm.Labels[policyv1alpha1.StageLabel] = stage })
	}
	// revised plays the controller: it stores the revision of a head, and says how far it governs.
	revised := func(ctx context.Context, cm *corev1.ConfigMap, stage policyv1alpha1.PolicyStage) *policyv1alpha1.PolicyRevision {
		GinkgoHelper()
		own := bundle.Files{}
		for name, text := range cm.Data {
			own[name] = []byte(text)
		}
		fill, err := policies.Shipped(policies.DefaultBundle)
		Expect(err).NotTo(HaveOccurred())
		maps.Copy(fill, own)
		content, err := fill.Pack()
		Expect(err).NotTo(HaveOccurred())
		version := strings.TrimPrefix(cm.Name, "adm-")
		r := &policyv1alpha1.PolicyRevision{ObjectMeta: metav1.ObjectMeta{Name: bundle.RevisionName("adm", version, fill.Digest())},
			Spec: policyv1alpha1.PolicyRevisionSpec{Bundle: "adm", Version: version, Digest: fill.Digest(), Content: content, EngineVersion: bundle.EngineVersion,
				Source: &policyv1alpha1.PolicySource{Namespace: cm.Namespace, Name: cm.Name, UID: cm.UID, Digest: own.Digest()}}}
		Expect(keep(r, d.manager.Create(ctx, r))).To(Succeed())
		before := r.DeepCopy()
		r.Status = policyv1alpha1.PolicyRevisionStatus{Stage: stage, Head: cm.Name, Conditions: []metav1.Condition{
			{Type: policyv1alpha1.ConditionCompiled, Status: metav1.ConditionTrue, Reason: "Compiled", LastTransitionTime: metav1.Now()},
			{Type: policyv1alpha1.ConditionVerified, Status: metav1.ConditionTrue, Reason: "Verified", LastTransitionTime: metav1.Now()}}}
		Expect(d.manager.Status().Patch(ctx, r, client.MergeFrom(before))).To(Succeed())
		return r
	}
	mayNot := `may not change by what bundle "adm" governs`
	atStage := "metadata.labels[policy.metalaw.dev/stage]"

	BeforeAll(func(ctx SpecContext) {
		d = openDoor(ctx, givenFiles(ctx))
		bind(ctx, rbacv1.Subject{Kind: rbacv1.UserKind, Name: "ann"})
		bind(ctx, rbacv1.Subject{Kind: rbacv1.UserKind, Name: "rosa"}, "metalaw-policy-activator")
		bind(ctx, rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "rack-sres"}, "adm-activates-adm")
		bind(ctx, rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "lab-sres"}, "adm-activates-other")
		for _, of := range []string{"adm", "other"} {
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "adm-activates-" + of}, Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{"policy.metalaw.dev"}, Resources: []string{"policyrevisions"}, Verbs: []string{"activate"}, ResourceNames: []string{of}}}}
			Expect(keep(role, admin.Create(ctx, role))).To(Succeed())
		}
		for name, c := range map[string]*client.Client{"ann": &ann, "rosa": &rosa} {
			rights, err := controlPlane.ConfigFor(env.User{Name: name})
			Expect(err).NotTo(HaveOccurred())
			*c = as(rights)
		}
		Eventually(func(g Gomega) { // the API server's authorizer learns of roles a moment later
			g.Expect(ann.Create(ctx, policyHead("adm-0.0.1"), client.DryRunAll)).To(Succeed())
			g.Expect(rosa.Create(ctx, policyHead("adm-0.0.1", "stage", "active"), client.DryRunAll)).To(Succeed())
		}).Should(Succeed())
		heard.take()
	})
	AfterAll(func(ctx SpecContext) {
		d.stop()
		Expect(controlPlane.RemoveWebhooks(ctx)).To(Succeed())
		for _, o := range made {
			Expect(client.IgnoreNotFound(admin.Delete(ctx, o))).To(Succeed())
		}
	})

	It("stores a broken draft, and kubectl prints what is wrong with it", func(ctx SpecContext) {
		cm := policyHead("adm-0.1.0")
		cm.Data["lifecycle.yaml"] = "kind: Nonsense\nstatess: {}\n"
		text, err := yaml.Marshal(cm)
		Expect(err).NotTo(HaveOccurred())
		out, err := kubectl(ctx, "ann", string(text), "apply", "--server-side", "-f", "-")
		Expect(err).NotTo(HaveOccurred(), out)
		made = append(made, cm)
		Expect(out).To(MatchRegexp(`Warning: bundle adm is stored as a draft, and would not be accepted: \d+ errors?`))
		Expect(out).To(MatchRegexp(`Warning: lifecycle.yaml:2:1: error: .*"statess".*\[yaml-unknown-key\]`))
		Expect(out).To(ContainSubstring("configmap/adm-0.1.0 serverside-applied"))

		out, err = kubectl(ctx, "ann", "", "label", "configmap", "adm-0.1.0", "policy.metalaw.dev/stage=shadow")
		Expect(err).To(HaveOccurred())
		Expect(out).To(MatchRegexp(`(?m)is not accepted for stage shadow: \d+ errors?.*$`))
		Expect(out).To(MatchRegexp(`(?m)^\* lifecycle.yaml:2:1: error: .*"statess".*\[yaml-unknown-key\]$`), "one to a line")
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(cm), cm)).To(Succeed())
		Expect(cm.Labels).NotTo(HaveKey(policyv1alpha1.StageLabel))
	})

	It("lets an author store and try a bundle, and others activate it", func(ctx SpecContext) {
		cm := policyHead("adm-0.2.0", "stage", "shadow")
		Expect(store(ctx, ann, cm)).To(Succeed())
		Expect(labelled(ctx, ann, cm, "active")).To(refusal(atStage, `user "ann" `+mayNot))
		Expect(labelled(ctx, ann, cm, "canary")).To(MatchError(ContainSubstring("a canary says whom it governs")))
		Expect(labelled(ctx, ann, cm, "production")).To(refusal(atStage, "Unsupported value"))
		Expect(store(ctx, ann, policyHead("adm-0.2.1", "stage", "active"))).To(refusal(atStage, mayNot))

		dry := cm.DeepCopy()
		dry.Labels[policyv1alpha1.StageLabel] = "active"
		Expect(rosa.Update(ctx, dry, client.DryRunAll)).To(Succeed())
		Expect(dry.Annotations[policyv1alpha1.ActivatedByAnnotation]).To(HavePrefix("rosa sha256:"))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(cm), cm)).To(Succeed())
		Expect(cm.Annotations).To(BeEmpty(), "a trial leaves nothing behind")

		Expect(edited(ctx, rosa, cm, func() {
			cm.Labels[policyv1alpha1.StageLabel] = "active"
			metav1.SetMetaDataAnnotation(&cm.ObjectMeta, policyv1alpha1.ActivatedByAnnotation, "root")
		})).To(Succeed())
		Expect(cm.Annotations[policyv1alpha1.ActivatedByAnnotation]).To(MatchRegexp(`^rosa sha256:[0-9a-f]{64} \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`))
		record := cm.Annotations[policyv1alpha1.ActivatedByAnnotation]
		for _, change := range []func(){
			func() { cm.Annotations[policyv1alpha1.ActivatedByAnnotation] = "ann" },
			func() { delete(cm.Annotations, policyv1alpha1.ActivatedByAnnotation) },
		} {
			Expect(edited(ctx, ann, cm, change)).To(Succeed())
			Expect(cm.Annotations).To(HaveKeyWithValue(policyv1alpha1.ActivatedByAnnotation, record), "nobody else writes it")
		}
	})

	It("asks for the right with the groups and names that RBAC knows", func(ctx SpecContext) {
		impersonated := func(groups ...string) client.Client {
			rights := rest.CopyConfig(controlPlane.Config)
			rights.Impersonate = rest.ImpersonationConfig{UserName: "ivy", Groups: groups, Extra: map[string][]string{"example.com/shift": {"night"}}}
			return as(rights)
		}
		cm := policyHead("adm-0.3.0", "stage", "canary", "servers", "rack in (r1, r2)")
		Expect(store(ctx, impersonated("rack-sres"), cm)).To(Succeed())
		Expect(cm.Annotations[policyv1alpha1.ActivatedByAnnotation]).To(HavePrefix("ivy sha256:"))
		Expect(edited(ctx, ann, cm, func() { cm.Annotations[policyv1alpha1.CanaryServersAnnotation] = "rack" })).To(refusal("metadata.annotations[policy.metalaw.dev/servers]", mayNot))
		Expect(edited(ctx, impersonated("rack-sres"), cm, func() { cm.Annotations[policyv1alpha1.CanaryServersAnnotation] = "rack" })).To(Succeed())
		Expect(store(ctx, impersonated("system:masters"), policyHead("adm-0.3.1", "stage", "active"))).To(Succeed(), "administrators may")
		made = append(made, policyHead("adm-0.3.1"))

		other := policyHead("other-1.0.0", "stage", "active")
		Expect(store(ctx, impersonated("rack-sres"), other)).To(MatchError(ContainSubstring(`bundle "other" governs`)), "RBAC names one bundle")
		revised(ctx, cm, policyv1alpha1.StageActive)
		Eventually(func() error { return impersonated("lab-sres").Create(ctx, other.DeepCopy(), client.DryRunAll) }).
			Should(refusal(atStage, `bundle "other" would govern in its place`), "what is in force has another name")
		Expect(impersonated("lab-sres", "rack-sres").Create(ctx, other.DeepCopy(), client.DryRunAll)).To(Succeed())
	})

	It("keeps authors off the record of the switch-over to maintenances", func(ctx SpecContext) {
		record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "metalaw-system", Name: maintenance.ConsentConfigMap},
			Data: map[string]string{maintenance.ConsentKey: "2001-01-01T00:00:00Z"}}
		Expect(client.IgnoreNotFound(admin.Delete(ctx, record.DeepCopy()))).To(Succeed())
		Expect(ann.Create(ctx, record.DeepCopy())).To(refusal("metadata.name", `user "ann" lacks the verb restore on fleetcontrols`))
		kept := record.DeepCopy()
		kept.Data[maintenance.ConsentKey] = "2026-01-01T00:00:00Z"
		Expect(d.manager.Create(ctx, kept)).To(Succeed())
		made = append(made, kept)
		Expect(ann.Update(ctx, record)).To(refusal("metadata.name", "lacks the verb restore"))
		Expect(ann.Delete(ctx, record)).To(refusal("metadata.name", "lacks the verb restore"))
		Expect(ann.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("metalaw-system"),
			client.MatchingFields{"metadata.name": maintenance.ConsentConfigMap})).NotTo(Succeed())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(kept), record)).To(Succeed())
		Expect(record.Data).To(HaveKeyWithValue(maintenance.ConsentKey, "2026-01-01T00:00:00Z"))
		Expect(ann.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "metalaw-system", Name: "adm-other"}}, client.DryRunAll)).
			To(Succeed())
	})

	It("keeps the content of what was accepted", func(ctx SpecContext) {
		cm := policyHead("adm-0.4.0", "stage", "shadow")
		Expect(store(ctx, ann, cm)).To(Succeed())
		Expect(edited(ctx, rosa, cm, func() { cm.Data["x_test.rego"] = "package x" })).To(refusal("data", "x_test.rego would change"))
		Expect(edited(ctx, ann, cm, func() { cm.BinaryData = map[string][]byte{"x": {0xff}} })).To(MatchError(ContainSubstring("x would change")))
		Expect(edited(ctx, ann, cm, func() { cm.Labels[policyv1alpha1.BundleLabel] = "another" })).
			To(refusal("metadata.labels[policy.metalaw.dev/bundle]", `names the bundle "adm"`))
		revised(ctx, cm, policyv1alpha1.StageShadow)
		twin := policyHead("adm-0.4.0-twin", "stage", "shadow")
		twin.Data["bundle.yaml"] = cm.Data["bundle.yaml"] + "description: another\n"
		Eventually(func() error { return ann.Create(ctx, twin.DeepCopy(), client.DryRunAll) }).
			Should(refusal("data[bundle.yaml]", "version 0.4.0 of bundle adm exists with another content"))
		Expect(edited(ctx, ann, cm, func() { cm.Labels[policyv1alpha1.StageLabel] = "draft" })).To(Succeed())
	})

	DescribeTable("takes two labels that are swapped in one apply", func(ctx SpecContext, older, newer string, flags ...string) {
		a, b := policyHead(older, "stage", "active"), policyHead(newer, "stage", "shadow")
		for _, cm := range []*corev1.ConfigMap{a, b} {
			cm.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
		}
		apply := func() string {
			one, err := yaml.Marshal(a)
			Expect(err).NotTo(HaveOccurred())
			two, err := yaml.Marshal(b)
			Expect(err).NotTo(HaveOccurred())
			out, err := kubectl(ctx, "rosa", string(one)+"---\n"+string(two), append([]string{"apply", "-f", "-"}, flags...)...)
			Expect(err).NotTo(HaveOccurred(), out)
			return out
		}
		stored := func(cm *corev1.ConfigMap) *corev1.ConfigMap {
			s := &corev1.ConfigMap{}
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(cm), s)).To(Succeed())
			return s
		}
		apply()
		made = append(made, a.DeepCopy(), b.DeepCopy())
		r := revised(ctx, stored(a), policyv1alpha1.StageActive)
		revised(ctx, stored(b), policyv1alpha1.StageShadow)
		record := stored(a).Annotations[policyv1alpha1.ActivatedByAnnotation]
		Expect(apply()).NotTo(ContainSubstring("Warning"), "the same again is nothing new")
		Expect(stored(a).Annotations[policyv1alpha1.ActivatedByAnnotation]).To(Equal(record))

		a.Labels[policyv1alpha1.StageLabel], b.Labels[policyv1alpha1.StageLabel] = "shadow", "active"
		Eventually(func() string { // the webhook's cache learns of the revision a moment later
			out, err := kubectl(ctx, "rosa", "", "label", "--overwrite", "--dry-run=server", "configmap", older, "policy.metalaw.dev/stage=draft")
			Expect(err).NotTo(HaveOccurred(), out)
			return out
		}).Should(ContainSubstring("stays in force"))
		Expect(apply()).To(ContainSubstring("Warning: revision " + r.Name + " stays in force, as the last good one, until another is promoted"))
		Expect(stored(a).Labels).To(HaveKeyWithValue(policyv1alpha1.StageLabel, "shadow"))
		Expect(stored(b).Labels).To(HaveKeyWithValue(policyv1alpha1.StageLabel, "active"))
		Expect(stored(b).Annotations[policyv1alpha1.ActivatedByAnnotation]).To(HavePrefix("rosa sha256:"))
	},
		Entry("in the client", "adm-0.5.0", "adm-0.5.1"),
		Entry("in the server", "adm-0.5.2", "adm-0.5.3", "--server-side"),
	)

	It("takes a large bundle by server-side apply, and says so to who applies it in the client", func(ctx SpecContext) {
		cm := policyHead("adm-0.6.0", "stage", "shadow")
		files, err := policies.Shipped(policies.DefaultBundle)
		Expect(err).NotTo(HaveOccurred())
		cm.Data["macprefixes.yaml"] = string(files["macprefixes.yaml"]) + strings.Repeat("# "+strings.Repeat("a comment ", 10)+"\n", 2800)
		text, err := yaml.Marshal(cm)
		Expect(err).NotTo(HaveOccurred())
		out, err := kubectl(ctx, "ann", string(text), "apply", "-f", "-")
		Expect(err).To(HaveOccurred())
		Expect(out).To(And(ContainSubstring("Too long"), ContainSubstring("Use kubectl apply --server-side, which keeps none")))
		out, err = kubectl(ctx, "ann", string(text), "apply", "--server-side", "-f", "-")
		Expect(err).NotTo(HaveOccurred(), out)
		made = append(made, cm)
		Expect(out).NotTo(ContainSubstring("--server-side, which"))
	})

	It("keeps the parts of a bundle as its head lists them", func(ctx SpecContext) {
		text := "package metalaw.selection_test\n"
		part := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: managerNamespace, Name: "adm-0.7.0-tests",
			Labels: map[string]string{policyv1alpha1.BundlePartLabel: "adm"}}, Data: map[string]string{"selection_test.rego": text}}
		cm := policyHead("adm-0.7.0")
		cm.Data["manifest.yaml"] = manifestOf("selection_test.rego", part.Name, text)
		heard.take()
		Expect(store(ctx, ann, cm)).To(Succeed())
		Expect(heard.take()).To(ContainElement(ContainSubstring("ConfigMap adm-0.7.0-tests does not hold selection_test.rego")))
		Expect(labelled(ctx, ann, cm, "shadow")).To(MatchError(ContainSubstring("ConfigMap adm-0.7.0-tests does not hold selection_test.rego")))
		Expect(store(ctx, ann, part)).To(Succeed())
		Expect(labelled(ctx, ann, cm, "shadow")).To(Succeed())
		Expect(edited(ctx, ann, part, func() { part.Data["selection_test.rego"] = "package x\n" })).
			To(refusal("data", "ConfigMap adm-0.7.0, of stage shadow, lists selection_test.rego here by digest"))
		Expect(edited(ctx, ann, part, func() { part.Labels = nil })).To(refusal("data", "lists selection_test.rego"))
		Expect(ann.Delete(ctx, part)).To(MatchError(ContainSubstring("lists selection_test.rego")))
		Expect(ann.Delete(ctx, cm)).To(Succeed(), "a shadow governs nothing")
		Expect(ann.Delete(ctx, part)).To(Succeed(), "and now nobody lists it")
	})

	It("lets what governs be deleted by those who may, and says what stays", func(ctx SpecContext) {
		cm := policyHead("adm-0.8.0", "stage", "active")
		Expect(store(ctx, rosa, cm)).To(Succeed())
		r := revised(ctx, cm, policyv1alpha1.StageActive)
		Expect(ann.Delete(ctx, cm)).To(And(MatchError(ContainSubstring(mayNot)), WithTransform(apierrors.IsForbidden, BeTrue())))
		Expect(edited(ctx, ann, cm, func() { delete(cm.Labels, policyv1alpha1.BundleLabel) })).To(MatchError(ContainSubstring(mayNot)))
		heard.take()
		Eventually(func() []string {
			Expect(rosa.Delete(ctx, cm, client.DryRunAll)).To(Succeed())
			return heard.take()
		}).Should(ContainElement(HavePrefix("revision " + r.Name + " stays in force")))
		Expect(rosa.Delete(ctx, cm)).To(Succeed())

		Expect(rosa.Delete(ctx, r)).To(MatchError(ContainSubstring("the revision is in force; promote another")))
		before := r.DeepCopy()
		r.Status.Stage = policyv1alpha1.StageSuperseded
		Expect(d.manager.Status().Patch(ctx, r, client.MergeFrom(before))).To(Succeed())
		Expect(ann.Delete(ctx, r)).To(MatchError(ContainSubstring("cannot delete resource")), "an author has no such right at all")
		Expect(rosa.Delete(ctx, r)).To(Succeed())
	})

	It("leaves revisions to the manager", func(ctx SpecContext) {
		cm := policyHead("adm-0.9.0", "stage", "shadow")
		Expect(store(ctx, ann, cm)).To(Succeed())
		r := revised(ctx, cm, policyv1alpha1.StageShadow)
		for says, change := range map[string]func(){
			"the manager writes it": func() {
				metav1.SetMetaDataAnnotation(&r.ObjectMeta, policyv1alpha1.PromotionAnnotation, "99")
			},
			"spec is immutable": func() { r.Spec.Version = "9.9.9" },
		} {
			before := r.DeepCopy()
			change()
			Expect(admin.Patch(ctx, r, client.MergeFrom(before))).To(MatchError(ContainSubstring(says)))
			before.DeepCopyInto(r)
		}
		before := r.DeepCopy()
		r.Status.Stage = policyv1alpha1.StageActive
		Expect(admin.Status().Patch(ctx, r, client.MergeFrom(before))).To(MatchError(ContainSubstring("the manager writes it")))
		before.DeepCopyInto(r)
		r.Labels = map[string]string{"example.com/note": "x"}
		Expect(admin.Patch(ctx, r, client.MergeFrom(before))).To(Succeed(), "what metalaw does not read is nobody's concern")

		forged := &policyv1alpha1.PolicyRevision{ObjectMeta: metav1.ObjectMeta{Name: "forged"}, Spec: r.Spec}
		Expect(admin.Create(ctx, forged)).To(refusal("metadata.name", "is named "+r.Name))
	})

	It("tells who labels a ConfigMap elsewhere that it does not count", func(ctx SpecContext) {
		cm := policyHead("adm-stray", "stage", "active")
		cm.Namespace = "default"
		d.told.take()
		Expect(store(ctx, d.user, cm)).To(Succeed())
		Expect(d.told.take()).To(ConsistOf("label policy.metalaw.dev/bundle means nothing in namespace default: " +
			"policy bundles count in namespace metalaw-system only"))
	})

	// The last one: it takes the webhooks down.
	It("stands in nobody's way while the manager is dead, and lets nothing govern", func(ctx SpecContext) {
		d.stop()
		began := time.Now()
		for _, namespace := range []string{managerNamespace, "default"} {
			plain := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "adm-plain"}}
			Expect(store(ctx, d.user, plain)).To(Succeed())
			Expect(edited(ctx, d.user, plain, func() { plain.Data = map[string]string{"a": "b"} })).To(Succeed())
			Expect(d.user.Delete(ctx, plain)).To(Succeed())
		}
		Expect(time.Since(began)).To(BeNumerically("<", 2*time.Second), "none of them waited for a webhook")
		Expect(store(ctx, rosa, policyHead("adm-1.0.0", "stage", "active"))).To(MatchError(ContainSubstring("failed calling webhook")))
		kept := policyHead("adm-0.2.0")
		Expect(rosa.Delete(ctx, kept)).To(MatchError(ContainSubstring("failed calling webhook")))

		rights, err := controlPlane.ConfigFor(env.User{Name: "system:serviceaccount:kube-system:namespace-controller",
			Groups: []string{"system:serviceaccounts", "system:masters"}})
		Expect(err).NotTo(HaveOccurred())
		Expect(as(rights).Delete(ctx, kept)).To(Succeed(), "the namespace goes as a whole")
	})
})

// manifestOf lists one file that is kept in another ConfigMap.
func manifestOf(file, configMap, text string) string {
	return fmt.Sprintf("apiVersion: policy.metalaw.dev/v1alpha1\nkind: Manifest\nfiles:\n"+
		"- {name: %s, configMap: %s, digest: sha256:%x}\n", file, configMap, sha256.Sum256([]byte(text)))
}

// policyHead is the head of a bundle that takes everything from the default; its ConfigMap is named after bundle and version.
// The pairs are its stage and whom it governs as a canary.
func policyHead(name string, pairs ...string) *corev1.ConfigMap {
	of, version, _ := strings.Cut(name, "-")
	version, _, _ = strings.Cut(version, "-")
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: managerNamespace, Name: name,
		Labels: map[string]string{policyv1alpha1.BundleLabel: of}}, Data: map[string]string{"bundle.yaml": fmt.Sprintf(
		"apiVersion: policy.metalaw.dev/v1alpha1\nkind: Bundle\nname: %s\nversion: %s\n", of, version)}}
	cm.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	for i := 0; i < len(pairs); i += 2 {
		switch pairs[i] {
		case "stage":
			cm.Labels[policyv1alpha1.StageLabel] = pairs[i+1]
		case "servers":
			metav1.SetMetaDataAnnotation(&cm.ObjectMeta, policyv1alpha1.CanaryServersAnnotation, pairs[i+1])
		}
	}
	return cm
}
