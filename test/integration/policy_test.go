// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
)

var _ = Describe("the rollout of policies", func() {
	It("makes a ConfigMap a revision, puts it in force, and keeps it so", func(ctx SpecContext) {
		m := runPolicy(ctx)
		Eventually(revisions(ctx)).Should(Equal("default Embedded InForce"))
		apply(ctx, "1.0.0", "shadow", nil)
		Eventually(revisions(ctx)).Should(Equal("default Embedded InForce, 1.0.0 Shadow NotPromoted"))
		Eventually(m.governs).Should(Equal("default, shadow 1.0.0"))
		label(ctx, "1.0.0", "active")
		Eventually(revisions(ctx)).Should(Equal("default Superseded Superseded, 1.0.0 Active InForce"))
		Eventually(m.governs).Should(Equal("1.0.0"))
		Eventually(eventsOf(ctx, "fleet-1.0.0")).Should(ContainElements("Normal BundleAccepted", "Normal InForce"))
		r := revisionOf(ctx, "1.0.0")
		Expect(r.Status.Head).To(Equal("fleet-1.0.0"))
		Expect(r.Status.Loaded).To(HaveLen(1))
		Expect(r.Spec.Source.Name).To(Equal("fleet-1.0.0"))

		By("keeping it when its ConfigMap is deleted")
		Expect(admin.Delete(ctx, head(ctx, "1.0.0"))).To(Succeed())
		Eventually(func() string { return activeMessage(ctx, "1.0.0") }).Should(ContainSubstring("ConfigMap fleet-1.0.0 does not hold it any more"))
		Expect(m.governs()).To(Equal("1.0.0"))

		By("keeping it over a restart, known before anything runs")
		m.stop()
		m = newPolicyManager(ctx, nil)
		Expect(m.governs()).To(Equal("1.0.0"))
		m.start(ctx)
		Consistently(revisions(ctx)).Should(Equal("default Superseded Superseded, 1.0.0 Active InForce"))

		By("storing it again when somebody deletes it")
		Expect(admin.Delete(ctx, revisionOf(ctx, "1.0.0"))).To(Succeed())
		Eventually(revisions(ctx)).Should(Equal("default Superseded Superseded, 1.0.0 Active InForce"))
		Expect(m.governs()).To(Equal("1.0.0"))
	})

	It("lets a GitOps sync swap both labels, and goes back by one relabel", func(ctx SpecContext) {
		m := runPolicy(ctx)
		apply(ctx, "1.0.0", "active", nil)
		apply(ctx, "1.1.0", "shadow", nil)
		Eventually(m.governs).Should(Equal("1.0.0, shadow 1.1.0"))
		label(ctx, "1.0.0", "shadow")
		label(ctx, "1.1.0", "active")
		Eventually(m.governs).Should(Equal("1.1.0, shadow 1.0.0"))
		label(ctx, "1.0.0", "active")
		Eventually(m.governs).Should(Equal("1.0.0"))
		Eventually(revisions(ctx)).Should(Equal("default Superseded Superseded, 1.0.0 Active InForce, 1.1.0 Superseded Superseded"))

		By("taking an unchanged label that is applied again for nothing")
		label(ctx, "1.1.0", "active")
		Consistently(m.governs).Should(Equal("1.0.0"))
	})

	It("lets one of two activators win, and tells the other", func(ctx SpecContext) {
		apply(ctx, "1.1.0", "active", nil)
		apply(ctx, "1.10.0", "active", nil)
		m := runPolicy(ctx)
		Eventually(revisions(ctx)).Should(Equal("default Superseded Superseded, 1.1.0 Draft Conflict, 1.10.0 Active InForce"))
		Eventually(eventsOf(ctx, "fleet-1.1.0")).Should(ContainElement("Warning Conflict"))
		Expect(m.governs()).To(Equal("1.10.0"))
	})

	It("keeps the last good one through broken and half-written bundles", func(ctx SpecContext) {
		m := runPolicy(ctx)
		apply(ctx, "1.0.0", "active", nil)
		Eventually(m.governs).Should(Equal("1.0.0"))
		apply(ctx, "1.1.0", "active", func(files map[string]string) { files["lifecycle.yaml"] = "states: [" })
		Eventually(eventsOf(ctx, "fleet-1.1.0")).Should(ContainElement("Warning BundleRefused"))
		apply(ctx, "1.0.0@again", "active", func(files map[string]string) { files["admission.rego"] += "\n# otherwise\n" })
		Eventually(eventsOf(ctx, "fleet-again")).Should(ContainElement("Warning VersionTaken"))

		By("waiting for the parts that a manifest lists")
		var lifecycle string
		apply(ctx, "1.2.0", "active", func(files map[string]string) {
			lifecycle = files["lifecycle.yaml"]
			delete(files, "lifecycle.yaml")
			files["manifest.yaml"] = manifestOf("lifecycle.yaml", "fleet-part", lifecycle)
		})
		Eventually(eventsOf(ctx, "fleet-1.2.0")).Should(ContainElement("Warning BundleIncomplete"))
		part := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: managerNamespace, Name: "fleet-part",
			Labels: map[string]string{policyv1alpha1.BundlePartLabel: "fleet"}}, Data: map[string]string{"lifecycle.yaml": lifecycle[:100]}}
		Expect(admin.Create(ctx, part)).To(Succeed())
		Consistently(m.governs).Should(Equal("1.0.0"))
		part.Data["lifecycle.yaml"] = lifecycle
		Expect(admin.Update(ctx, part)).To(Succeed())
		Eventually(m.governs).Should(Equal("1.2.0"))
	})

	It("puts none in force that a running manager refuses", func(ctx SpecContext) {
		first := runPolicy(ctx)
		Eventually(revisions(ctx)).Should(Equal("default Embedded InForce"))
		second := newPolicyManager(ctx, func(version string) bool { return version == "1.0.0" })
		second.start(ctx)
		Eventually(func() int { return leases(ctx) }).Should(Equal(2))
		apply(ctx, "1.0.0", "active", nil)
		Eventually(revisions(ctx)).Should(Equal("default Embedded InForce, 1.0.0 Draft AwaitingReplicas"))
		Eventually(func() string { return activeMessage(ctx, "1.0.0") }).Should(ContainSubstring(second.identity + " refuses it: bundle.yaml: error: not for this engine"))
		Consistently(first.governs).Should(Equal("default"))
		_, held := second.store.Held(revisionOf(ctx, "1.0.0").Name)
		Expect(held).To(BeTrue())

		By("going on once that manager is gone")
		second.stop()
		Eventually(first.governs).Should(Equal("1.0.0"))
	})

	It("holds what an upgrade refuses, and goes on with it", func(ctx SpecContext) {
		m := runPolicy(ctx)
		apply(ctx, "1.0.0", "active", nil)
		Eventually(m.governs).Should(Equal("1.0.0"))
		m.stop()
		m = newPolicyManager(ctx, func(version string) bool { return version == "1.0.0" })
		name := revisionOf(ctx, "1.0.0").Name
		why, held := m.store.Held(name)
		Expect(held).To(BeTrue())
		Expect(why).To(ContainSubstring("not for this engine"))
		Expect(m.governs()).To(Equal("1.0.0"))
		m.start(ctx)
		Eventually(revisions(ctx)).Should(Equal("default Superseded Superseded, 1.0.0 Active RevisionHeld"))
	})

	// twoPromotions has 0.9.0 come into force after 1.0.0, stops the manager, and returns all revisions.
	twoPromotions := func(ctx SpecContext) policyv1alpha1.PolicyRevisionList {
		GinkgoHelper()
		m := runPolicy(ctx)
		apply(ctx, "1.0.0", "active", nil)
		Eventually(m.governs).Should(Equal("1.0.0"))
		apply(ctx, "0.9.0", "active", nil)
		Eventually(m.governs).Should(Equal("0.9.0"))
		m.stop()
		var all policyv1alpha1.PolicyRevisionList
		Expect(admin.List(ctx, &all)).To(Succeed())
		return all
	}

	// restore creates the revisions as new objects, as from a backup: as an administrator, without status.
	restore := func(ctx SpecContext, all policyv1alpha1.PolicyRevisionList) {
		GinkgoHelper()
		for i := range all.Items {
			r := &all.Items[i]
			if r.Spec.Source == nil {
				continue // it is built in
			}
			r.ObjectMeta = metav1.ObjectMeta{Name: r.Name, Annotations: r.Annotations}
			Expect(admin.Create(ctx, r)).To(Succeed())
		}
	}

	It("lets nothing govern after a restore until a revision is promoted, whether the backup or the manager comes first", func(ctx SpecContext) {
		all := twoPromotions(ctx)
		for i := range all.Items {
			Expect(admin.Delete(ctx, &all.Items[i])).To(Succeed())
		}
		heads := []*corev1.ConfigMap{head(ctx, "0.9.0"), head(ctx, "1.0.0")}
		for _, cm := range heads {
			Expect(admin.Delete(ctx, cm)).To(Succeed())
		}
		m := newPolicyManager(ctx, nil)
		m.start(ctx)
		Eventually(revisions(ctx)).Should(Equal("default Embedded InForce"))
		restore(ctx, *all.DeepCopy())
		Eventually(revisions(ctx)).Should(Equal("default Superseded Superseded, 0.9.0 Superseded PromotionMissing, 1.0.0 Superseded Superseded"))
		Eventually(m.store.Missing).Should(ContainSubstring("metalaw policy rollback --to " + revisionOf(ctx, "0.9.0").Name))
		for _, cm := range heads {
			cm.ObjectMeta = metav1.ObjectMeta{Namespace: cm.Namespace, Name: cm.Name, Labels: cm.Labels, Annotations: map[string]string{
				policyv1alpha1.ActivatedByAnnotation: "jane sha256:0 2026-11-22T12:00:00Z" + policyv1alpha1.ActivationRestored}}
			Expect(admin.Create(ctx, cm)).To(Succeed())
			Eventually(func() string { return revisionOf(ctx, strings.TrimPrefix(cm.Name, "fleet-")).Status.Head }).Should(Equal(cm.Name))
			Consistently(m.store.Missing).ShouldNot(BeEmpty())
		}

		By("restarting the manager")
		m.stop()
		m = newPolicyManager(ctx, nil)
		Expect(m.store.Missing()).NotTo(BeEmpty())
		m.start(ctx)

		By("promoting one of them, as ever")
		label(ctx, "0.9.0", "shadow")
		Eventually(func() policyv1alpha1.LabelledStage { return revisionOf(ctx, "0.9.0").Status.LabelledStage }).
			Should(Equal(policyv1alpha1.LabelledShadow))
		label(ctx, "0.9.0", "active")
		Eventually(m.governs).Should(Equal("0.9.0"))
		Eventually(m.store.Missing).Should(BeEmpty())
		Eventually(revisions(ctx)).Should(Equal("default Superseded Superseded, 0.9.0 Active InForce, 1.0.0 Superseded Superseded"))
	})

	It("keeps a restored revision in force that an earlier version had in force", func(ctx SpecContext) {
		all := twoPromotions(ctx)
		for i := range all.Items {
			if r := all.Items[i].DeepCopy(); r.Spec.Source != nil {
				Expect(admin.Delete(ctx, r)).To(Succeed())
			}
		}
		restore(ctx, *all.DeepCopy())
		r := revisionOf(ctx, "0.9.0")
		r.Status.Stage = policyv1alpha1.StageActive // as an earlier version wrote it
		Expect(admin.Status().Update(ctx, r)).To(Succeed())
		m := newPolicyManager(ctx, nil)
		Expect(m.governs()).To(Equal("0.9.0"))
		m.start(ctx)
		Eventually(func() string { return revisionOf(ctx, "0.9.0").Annotations[policyv1alpha1.PromotedObjectAnnotation] }).Should(Equal(string(r.UID)))
		Consistently(m.governs).Should(Equal("0.9.0"))
	})

	It("has a canary govern the servers in its scope until it costs too much", func(ctx SpecContext) {
		m := runPolicy(ctx)
		inside := makeServer(ctx, map[string]string{"rack": "r1"})
		outside := makeServer(ctx, nil)
		apply(ctx, "1.0.0", "canary", nil)
		Eventually(eventsOf(ctx, "fleet-1.0.0")).Should(ContainElement("Warning BundleRefused")) // it says nobody
		cm := head(ctx, "1.0.0")
		cm.Annotations = map[string]string{policyv1alpha1.CanaryServersAnnotation: "rack=r1"}
		Expect(admin.Update(ctx, cm)).To(Succeed())
		governing := func(s *v1alpha1.Server) func() string {
			return func() string { return versionOf(m.store.Governing(s).Revision.Name) }
		}
		Eventually(governing(inside)).Should(Equal("1.0.0"))
		Expect(versionOf(m.store.Governing(outside).Revision.Name)).To(Equal("default"))

		By("pausing at the first server that it halts")
		name := revisionOf(ctx, "1.0.0").Name
		before := inside.DeepCopy()
		inside.Status.State = v1alpha1.StateDiscovery
		inside.Status.Lifecycle = &v1alpha1.LifecycleStatus{Revision: name, Entry: 1, EnteredAt: metav1.NowMicro()}
		inside.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPolicyHalted, Status: metav1.ConditionTrue,
			Reason: "GuardError", LastTransitionTime: metav1.Now()}}
		Expect(admin.Status().Patch(ctx, inside, client.MergeFrom(before))).To(Succeed())
		Eventually(func() string { return activeMessage(ctx, "1.0.0") }).Should(ContainSubstring("1 servers were halted under it"))
		Eventually(governing(inside)).Should(Equal("default"))
		Eventually(eventsOf(ctx, "fleet-1.0.0")).Should(ContainElement("Warning CanaryPaused"))
		Eventually(func() int32 { return revisionOf(ctx, "1.0.0").Status.Servers }).Should(Equal(int32(1)))
	})

	It("stores what a shadow would have decided otherwise", func(ctx SpecContext) {
		m := runPolicy(ctx)
		apply(ctx, "1.0.0", "shadow", nil)
		Eventually(m.governs).Should(Equal("default, shadow 1.0.0"))
		name := m.store.Shadows()[0].Revision.Name
		for range 3 {
			m.shadows.Observe(name, "s1", &engine.Decision{From: "Discovery", To: "Available", Rule: "Reported"},
				&engine.Decision{From: "Discovery", To: "Discovery"}, time.Now())
		}
		Eventually(func() string {
			s := revisionOf(ctx, "1.0.0").Status.Shadow
			if s == nil || len(s.Differences) == 0 {
				return ""
			}
			d := s.Differences[0]
			return fmt.Sprintf("%d of %d: %s, not %s", d.Count, s.Evaluated, d.Got, d.Want)
		}).Should(Equal("1 of 3: stays in Discovery, not moves to Available by Reported"))
	})

	It("takes old revisions away that nothing uses, with the manager's own rights", func(ctx SpecContext) {
		DeferCleanup(removePolicies)
		for i := range 23 {
			files := bundle.Files{bundle.BundleFile: fmt.Appendf(nil, "version: 0.0.%d\n", i)}
			content, err := files.Pack()
			Expect(err).NotTo(HaveOccurred())
			version := fmt.Sprintf("0.0.%d", i)
			r := &policyv1alpha1.PolicyRevision{ObjectMeta: metav1.ObjectMeta{Name: bundle.RevisionName("aged", version, files.Digest())},
				Spec: policyv1alpha1.PolicyRevisionSpec{Bundle: "aged", Version: version, Digest: files.Digest(), Content: content}}
			Expect(admin.Create(ctx, r)).To(Succeed())
			before := r.DeepCopy()
			r.Status = policyv1alpha1.PolicyRevisionStatus{Stage: policyv1alpha1.StageSuperseded, LabelledStage: policyv1alpha1.LabelledNone,
				StageSince: &metav1.Time{Time: time.Now().Add(-2 * time.Hour)}}
			Expect(admin.Status().Patch(ctx, r, client.MergeFrom(before))).To(Succeed())
		}
		left := func(g Gomega) []string {
			var list policyv1alpha1.PolicyRevisionList
			g.Expect(admin.List(ctx, &list)).To(Succeed())
			var names []string
			for i := range list.Items {
				if list.Items[i].Spec.Bundle == "aged" {
					names = append(names, list.Items[i].Name)
				}
			}
			return names
		}
		newPolicyManager(ctx, nil).start(ctx)
		Eventually(left).Should(HaveLen(20))
		Consistently(left).Should(HaveLen(20))
	})
})
