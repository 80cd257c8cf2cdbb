// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// beyondUpstream are the fields of a Server's status that the CRD of metal-operator v0.7.0 does not have.
var beyondUpstream = []string{"lifecycle", "operation", "observedGeneration"}

// serverCRD is the definition of Servers as it is served.
func serverCRD(ctx context.Context) *unstructured.Unstructured {
	GinkgoHelper()
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	Expect(admin.Get(ctx, types.NamespacedName{Name: "servers.metal.ironcore.dev"}, crd)).To(Succeed())
	return crd
}

// serveUpstream replaces the definition of Servers by one that drops what upstream does not know, until the function that it
// returns, or the end of the spec, brings ours back.
func serveUpstream(ctx context.Context) (back func(context.Context)) {
	GinkgoHelper()
	spec := serverCRD(ctx).Object["spec"]
	restored := false
	back = func(ctx context.Context) {
		GinkgoHelper()
		if restored {
			return
		}
		restored = true
		crd := serverCRD(ctx)
		crd.Object["spec"] = spec
		Expect(admin.Update(ctx, crd)).To(Succeed())
	}
	DeferCleanup(func(ctx SpecContext) { back(ctx) })
	crd := serverCRD(ctx)
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	Expect(err).NotTo(HaveOccurred())
	status := []string{"schema", "openAPIV3Schema", "properties", "status", "properties"}
	for _, field := range beyondUpstream {
		unstructured.RemoveNestedField(versions[0].(map[string]any), append(slices.Clone(status), field)...)
	}
	Expect(unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")).To(Succeed())
	Expect(admin.Update(ctx, crd)).To(Succeed())
	return back
}

// labelUntilPruned writes servers as the manager does until the API server has dropped their lifecycle: it takes a changed definition up
// after a moment, and drops what it does not know with a write.
func labelUntilPruned(ctx context.Context, names ...string) {
	GinkgoHelper()
	ours := client.WithFieldOwner(admin, v1alpha1.FieldManager)
	for _, name := range names {
		round := 0
		Eventually(func(g Gomega) {
			round++
			s := getServer(ctx, name)
			changed := s.DeepCopy()
			metav1.SetMetaDataLabel(&changed.ObjectMeta, "excursion", string(rune('a'+round%26)))
			g.Expect(ours.Patch(ctx, changed, client.MergeFrom(s))).To(Succeed())
			// What was read before the write counts: the API server also drops what it reads, and keeps it in its store then.
			g.Expect(s.Status.Lifecycle).To(BeNil())
		}).Should(Succeed())
	}
}

// comeBack serves our definition again and starts the manager once the API server stores a lifecycle.
func comeBack(ctx context.Context, back func(context.Context), name string) {
	GinkgoHelper()
	back(ctx)
	Eventually(func(g Gomega) {
		s := getServer(ctx, name)
		tried := s.DeepCopy()
		tried.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 1, EnteredAt: metav1.NowMicro()}
		g.Expect(admin.Status().Patch(ctx, tried, client.MergeFrom(s), client.DryRunAll)).To(Succeed())
		g.Expect(tried.Status.Lifecycle).NotTo(BeNil())
	}).Should(Succeed())
	theWorld.startManager(ctx)
}

func custodyOf(ctx context.Context, m *emulator.Machine) *policyv1alpha1.ServerInventory {
	GinkgoHelper()
	inventory := &policyv1alpha1.ServerInventory{}
	Expect(admin.Get(ctx, types.NamespacedName{Name: m.Identity().UUID}, inventory)).To(Succeed())
	return inventory
}

func cleanBecause(ctx context.Context, m *emulator.Machine) func() policyv1alpha1.CleanCause {
	return func() policyv1alpha1.CleanCause {
		if c := custodyOf(ctx, m).Custody; c != nil && c.Clean != nil {
			return c.Clean.Cause
		}
		return ""
	}
}

var _ = Describe("A fleet that goes to upstream's definitions and comes back", func() {
	It("offers what is proven clean, and keeps in Error what another manager gave to a claim, until somebody declares that clean", func(ctx SpecContext) {
		fresh, used, written := theWorld.available(ctx), theWorld.available(ctx), theWorld.available(ctx)
		wiped := claimed(ctx, "excursion")
		deleteClaim(ctx, "excursion")
		Eventually(state(ctx, serverOf(wiped))).Should(Equal("Available/Off"))
		Eventually(cleanBecause(ctx, wiped)).Should(Equal(policyv1alpha1.CleanWiped))
		Eventually(cleanBecause(ctx, fresh)).Should(Equal(policyv1alpha1.CleanNeverBooted))
		Eventually(cleanBecause(ctx, used)).Should(Equal(policyv1alpha1.CleanNeverBooted))
		Eventually(cleanBecause(ctx, written)).Should(Equal(policyv1alpha1.CleanNeverBooted))
		theWorld.stopManager()
		before := theWorld.fleet.LastWrite()
		back := serveUpstream(ctx)
		labelUntilPruned(ctx, serverOf(fresh), serverOf(used), serverOf(wiped), serverOf(written))

		By("having another manager bind and release one server")
		upstream := client.WithFieldOwner(admin, "manager")
		foreign := func(name string, ref *v1alpha1.ObjectReference, state v1alpha1.ServerState) {
			GinkgoHelper()
			s := getServer(ctx, name)
			changed := s.DeepCopy()
			changed.Spec.ServerClaimRef = ref
			Expect(upstream.Patch(ctx, changed, client.MergeFrom(s))).To(Succeed())
			s = getServer(ctx, name)
			changed = s.DeepCopy()
			changed.Status.State = state
			Expect(upstream.Status().Patch(ctx, changed, client.MergeFrom(s))).To(Succeed())
		}
		foreign(serverOf(used), &v1alpha1.ObjectReference{Namespace: tenants, Name: "theirs"}, v1alpha1.StateReserved)
		foreign(serverOf(used), nil, v1alpha1.StateAvailable)

		By("clearing the managed fields of another one")
		s := getServer(ctx, serverOf(written))
		s.ManagedFields = []metav1.ManagedFieldsEntry{{}}
		Expect(admin.Update(ctx, s)).To(Succeed())

		comeBack(ctx, back, serverOf(fresh))
		for _, m := range []*emulator.Machine{fresh, wiped} {
			Eventually(serverCondition(ctx, serverOf(m), v1alpha1.ConditionAdopted)).Should(Equal("True/FoundInState"))
			Expect(state(ctx, serverOf(m))()).To(Equal("Available/Off"))
			Expect(getServer(ctx, serverOf(m)).Status.Lifecycle.Marks).NotTo(ContainElement("Dirty"))
		}
		for _, m := range []*emulator.Machine{used, written} {
			Eventually(state(ctx, serverOf(m))).Should(Equal("Error/Off"))
			Expect(getServer(ctx, serverOf(m)).Status.Lifecycle).To(And(HaveField("Rule", "DataUnreleased"), HaveField("Marks", ContainElement("Dirty"))))
			Expect(custodyOf(ctx, m).Custody).To(And(HaveField("Marks", ContainElement("Dirty")), HaveField("Clean", BeNil())))
		}
		Consistently(state(ctx, serverOf(used))).Should(Equal("Error/Off"))

		By("declaring the two clean")
		for _, m := range []*emulator.Machine{used, written} {
			changeServer(ctx, serverOf(m), func(s *v1alpha1.Server) {
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationAnnotation, v1alpha1.OperationDeclareClean)
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationReasonAnnotation, "it was not booted there")
			})
			Eventually(state(ctx, serverOf(m))).Should(Equal("Available/Off"))
			Expect(getServer(ctx, serverOf(m)).Status.Lifecycle.History).To(ContainElement(And(HaveField("Rule", v1alpha1.RuleForced),
				HaveField("Reason", "it was not booted there"), HaveField("Overrides", ConsistOf("ClearOnlyOnProof")))))
			Eventually(func() []string { return custodyOf(ctx, m).Custody.Marks }).ShouldNot(ContainElement("Dirty"))
		}
		for _, m := range []*emulator.Machine{fresh, used, wiped, written} {
			Expect(slices.DeleteFunc(touched(m, before)(), func(write string) bool { return strings.Contains(write, "IndicatorLED") })).To(BeEmpty())
		}
	})

	It("does not offer what a backup from before the last claim calls clean", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		name := serverOf(m)
		Eventually(cleanBecause(ctx, m)).Should(Equal(policyv1alpha1.CleanNeverBooted))
		backup, inventoryBackup := getServer(ctx, name), custodyOf(ctx, m)
		create(ctx, newClaim("after-backup", m, func(c *v1alpha1.ServerClaim) { c.Spec.Power = v1alpha1.PowerOff }))
		Eventually(func() []string { return custodyOf(ctx, m).Custody.Marks }).Should(ContainElement("Dirty"))
		Eventually(state(ctx, name)).Should(Equal("Reserved/Off"))

		By("restoring the Server with its status and its managed fields, and its inventory, as backup tools do")
		theWorld.stopManager()
		lost(ctx, getClaim(ctx, "after-backup"))
		lost(ctx, getServer(ctx, name))
		lost(ctx, custodyOf(ctx, m))
		inventoryBackup.UID, inventoryBackup.ResourceVersion, inventoryBackup.ManagedFields = "", "", nil
		create(ctx, inventoryBackup)
		ours := client.WithFieldOwner(admin, v1alpha1.FieldManager)
		restored := backup.DeepCopy()
		restored.UID, restored.ResourceVersion, restored.ManagedFields = "", "", nil
		Expect(ours.Create(ctx, restored)).To(Succeed())
		restored.Status = *backup.Status.DeepCopy()
		restored.Status.Lifecycle = nil
		Expect(ours.Status().Update(ctx, restored)).To(Succeed())
		restored.ManagedFields = backup.ManagedFields
		Expect(ours.Update(ctx, restored)).To(Succeed())
		theWorld.startManager(ctx)
		Eventually(state(ctx, name)).Should(Equal("Error/Off"))
		Expect(getServer(ctx, name).Status.Lifecycle).To(And(HaveField("Rule", "DataUnreleased"), HaveField("Marks", ContainElement("Dirty"))))
	})
})
