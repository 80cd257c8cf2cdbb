// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

var _ = Describe("A claim", Ordered, func() {
	var p place
	BeforeAll(func(ctx SpecContext) { DeferCleanup(runClaims(ctx)) })
	BeforeEach(func(ctx context.Context) { p = newPlace(ctx) })

	It("is Bound only when everything that clients rely on is in place, in order (behaviour 5)", func(ctx context.Context) {
		s := p.server(ctx, "one")
		c := p.claim(ctx, "claim")
		Eventually(serverOf(ctx, c)).Should(Equal(s.Name))
		Expect(live(ctx, s).Spec.ServerClaimRef).To(Equal(&v1alpha1.ObjectReference{Namespace: c.Namespace, Name: c.Name}))
		Expect(s.Annotations).To(HaveKeyWithValue(v1alpha1.ClaimUIDAnnotation, string(c.UID)))
		Expect(s.Annotations).To(HaveKeyWithValue(v1alpha1.BindingAnnotation, ContainSubstring(`"runnersUp":0`)))
		Expect(live(ctx, c).Finalizers).To(ContainElement(v1alpha1.FinalizerServerClaim))
		Consistently(phaseOf(ctx, c)).ShouldNot(Equal(v1alpha1.PhaseBound))

		patchStatus(ctx, s, inState(v1alpha1.StateReserved))
		Consistently(phaseOf(ctx, c)).ShouldNot(Equal(v1alpha1.PhaseBound))
		boot := bootFor(c, s.Name)
		Expect(admin.Create(ctx, boot)).To(Succeed())
		Consistently(phaseOf(ctx, c)).ShouldNot(Equal(v1alpha1.PhaseBound))
		patch(ctx, s, func(s *v1alpha1.Server) {
			s.Spec.BootConfigurationRef = &v1alpha1.ObjectReference{Namespace: c.Namespace, Name: c.Name}
		})
		Eventually(phaseOf(ctx, c)).Should(Equal(v1alpha1.PhaseBound))
		Expect(says(ctx, c, v1alpha1.ConditionBound)(Default)).To(Equal("True Bound: bound to server " + s.Name))
		Expect(says(ctx, c, v1alpha1.ConditionReady)(Default)).To(Equal("False Booting: the boot operator has not prepared ServerBootConfiguration " + c.Namespace + "/" + c.Name + ", which is Pending"))
		Expect(says(ctx, c, v1alpha1.ConditionReconciling)(Default)).To(HavePrefix("True"))

		patchStatus(ctx, boot, func(b *v1alpha1.ServerBootConfiguration) {
			b.Status.State = v1alpha1.ServerBootConfigurationStateReady
		})
		patchStatus(ctx, s, func(s *v1alpha1.Server) { s.Status.PowerState = v1alpha1.PowerStateOn })
		Eventually(says(ctx, c, v1alpha1.ConditionReady)).Should(Equal("True Running: the BMC says On, and the boot configuration is as the claim asks"))
		Expect(says(ctx, c, v1alpha1.ConditionReconciling)(Default)).To(BeEmpty())
	})

	It("keeps serverRef while a client applies it again and again with power Off and without serverRef (behaviour 6)", func(ctx context.Context) {
		s := p.server(ctx, "one")
		apply := func(image string) {
			GinkgoHelper()
			wanted := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "metal.ironcore.dev/v1alpha1", "kind": "ServerClaim",
				"metadata": map[string]any{"namespace": p.namespace, "name": "machine"},
				"spec": map[string]any{"power": "Off", "image": image,
					"serverSelector": map[string]any{"matchLabels": map[string]any{poolLabel: p.pool}}},
			}}
			Expect(admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted),
				client.FieldOwner("mcm"), client.ForceOwnership)).To(Succeed())
		}
		apply("os:1")
		c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "machine"}}
		for range 20 {
			apply("os:1")
		}
		Eventually(serverOf(ctx, c)).Should(Equal(s.Name))
		reserve(ctx, s, c)
		for range 10 {
			apply("os:1")
		}
		Eventually(phaseOf(ctx, c)).Should(Equal(v1alpha1.PhaseBound))
		apply("os:2")
		Consistently(serverOf(ctx, c)).Should(Equal(s.Name))
		Expect(phaseOf(ctx, c)(Default)).To(Equal(v1alpha1.PhaseBound))
		Eventually(says(ctx, c, v1alpha1.ConditionReady)).Should(Equal("False Booting: the boot configuration is being written"))
		Expect(live(ctx, c).Spec.ServerRef.Name).To(Equal(s.Name))
		Expect(c.ManagedFields).To(ContainElement(And(
			HaveField("Manager", "metalaw"), HaveField("FieldsV1.Raw", ContainSubstring("f:serverRef")))))
	})

	It("never loses serverRef, and keeps it when its server vanishes (behaviour 7)", func(ctx context.Context) {
		c, s := p.boundClaim(ctx)
		for _, body := range []string{`{"spec":{"serverRef":null}}`, `{"spec":{"serverRef":{"name":"another"}}}`} {
			Expect(admin.Patch(ctx, c.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body)))).
				To(MatchError(Or(ContainSubstring("required once set"), ContainSubstring("immutable"))))
		}
		Expect(admin.Delete(ctx, s)).To(Succeed())
		Eventually(says(ctx, c, v1alpha1.ConditionServerMissing)).Should(HavePrefix("True ServerVanished"))
		Expect(says(ctx, c, v1alpha1.ConditionReady)(Default)).To(HavePrefix("False ServerVanished"))
		Expect(says(ctx, c, v1alpha1.ConditionStalled)(Default)).To(HavePrefix("True ServerVanished"))
		Expect(serverOf(ctx, c)(Default)).To(Equal(s.Name))
		Consistently(says(ctx, c, v1alpha1.ConditionServerMissing)).Should(HavePrefix("True ServerVanished"))
	})

	It("of the same name as one that vanished inherits nothing", func(ctx context.Context) {
		first, s := p.boundClaim(ctx)
		vanish(ctx, first)
		second := p.claim(ctx, "claim")
		Eventually(says(ctx, second, v1alpha1.ConditionBound)).Should(HavePrefix("False NoneClaimable: 1 of "))
		Consistently(serverOf(ctx, second)).Should(BeEmpty())
		Expect(live(ctx, s).Annotations).To(HaveKeyWithValue(v1alpha1.ClaimUIDAnnotation, string(first.UID)))
	})

	It("goes at once though its ignition secret is gone; its end is recorded on the server (behaviour 8)", func(ctx context.Context) {
		c, s := p.boundClaim(ctx, func(c *v1alpha1.ServerClaim) {
			c.Spec.IgnitionSecretRef = &corev1.LocalObjectReference{Name: "was-never-there"}
		})
		Expect(admin.Delete(ctx, c)).To(Succeed())
		goneAtOnce(ctx, c)
		goneAtOnce(ctx, &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}})
		live(ctx, s)
		Expect(s.Annotations).To(HaveKeyWithValue(v1alpha1.ReleasedClaimAnnotation, string(c.UID)))
		Expect(s.Annotations).To(HaveKeyWithValue(v1alpha1.ClaimUIDAnnotation, string(c.UID)))
		_, err := time.Parse(time.RFC3339, s.Annotations[v1alpha1.ReleasedAtAnnotation])
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Spec.ServerClaimRef).NotTo(BeNil())
		Expect(s.Status.State).To(Equal(v1alpha1.StateReserved))
	})

	It("that vanished without its finalizer releases nothing (safety 1)", func(ctx context.Context) {
		c, s := p.boundClaim(ctx)
		vanish(ctx, c)
		Consistently(func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(s), s)).To(Succeed())
			g.Expect(s.Annotations).NotTo(HaveKey(v1alpha1.ReleasedClaimAnnotation))
			g.Expect(s.Annotations).To(HaveKeyWithValue(v1alpha1.ClaimUIDAnnotation, string(c.UID)))
			g.Expect(s.Spec.ServerClaimRef).NotTo(BeNil())
			g.Expect(s.Status.State).To(Equal(v1alpha1.StateReserved))
		}).Should(Succeed())
	})

	It("with a selector that has no meaning says so, and nothing else happens", func(ctx context.Context) {
		s := p.server(ctx, "one")
		c := p.claim(ctx, "claim", func(c *v1alpha1.ServerClaim) {
			c.Spec.ServerSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "rack", Operator: "Near"}}
		})
		Eventually(says(ctx, c, v1alpha1.ConditionBound)).Should(Equal(
			`False InvalidSelector: spec.serverSelector: matchExpressions[0]: operator "Near" is not one of In, NotIn, Exists, DoesNotExist`))
		Expect(says(ctx, c, v1alpha1.ConditionStalled)(Default)).To(HavePrefix("True InvalidSelector"))
		Consistently(serverOf(ctx, c)).Should(BeEmpty())
		Expect(live(ctx, s).Spec.ServerClaimRef).To(BeNil())
	})

	It("that names a server which does not exist says so, and gets it once it exists", func(ctx context.Context) {
		p.server(ctx, "one")
		c := p.claim(ctx, "claim", naming(p.pool+"-two"))
		Eventually(says(ctx, c, v1alpha1.ConditionBound)).Should(HavePrefix("False ServerNotFound: the server that spec.serverRef names does not exist"))
		Expect(says(ctx, c, v1alpha1.ConditionStalled)(Default)).To(HavePrefix("True ServerNotFound"))
		two := p.server(ctx, "two")
		Eventually(func(g Gomega) *v1alpha1.ObjectReference {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(two), two)).To(Succeed())
			return two.Spec.ServerClaimRef
		}).Should(Equal(&v1alpha1.ObjectReference{Namespace: c.Namespace, Name: c.Name}))
		Eventually(says(ctx, c, v1alpha1.ConditionBound)).Should(HavePrefix("False Reserving"))
	})

	It("takes only what can be claimed, and says what keeps it from the rest (behaviour 9)", func(ctx context.Context) {
		tainted := p.server(ctx, "tainted", func(s *v1alpha1.Server) {
			s.Spec.Taints = []v1alpha1.Taint{{Key: "broken", Effect: v1alpha1.TaintEffectNoBind}}
		})
		p.server(ctx, "cordoned", func(s *v1alpha1.Server) { s.Spec.Unclaimable = true })
		p.server(ctx, "running", func(s *v1alpha1.Server) { s.Status.PowerState = v1alpha1.PowerStateOn })
		p.server(ctx, "unknown", func(s *v1alpha1.Server) { s.Status.PowerState = v1alpha1.PowerStateUnknown })
		p.server(ctx, "cleaning", inState(v1alpha1.StateCleanup))
		p.server(ctx, "taken", writtenFor("somewhere", "else", ""))
		c := p.claim(ctx, "claim")
		Eventually(says(ctx, c, v1alpha1.ConditionBound)).Should(MatchRegexp(
			`^False NoneClaimable: 6 of \d+ servers match: not-off 2, claimed 1, not-available 1, taint 1, unclaimable 1$`))
		Consistently(serverOf(ctx, c)).Should(BeEmpty())

		tolerating := p.claim(ctx, "tolerating", func(c *v1alpha1.ServerClaim) {
			c.Spec.Tolerations = []v1alpha1.Toleration{{Key: "broken", Operator: v1alpha1.TolerationOpExists}}
		})
		Eventually(serverOf(ctx, tolerating)).Should(Equal(tainted.Name))
		uncordoned := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: p.pool + "-cordoned"}}
		patch(ctx, uncordoned, func(s *v1alpha1.Server) { s.Spec.Unclaimable = false })
		Eventually(serverOf(ctx, c)).Should(Equal(uncordoned.Name))
	})

	It("with a higher priority is served first", func(ctx context.Context) {
		first := p.claim(ctx, "a-older")
		urgent := p.claim(ctx, "b-urgent", func(c *v1alpha1.ServerClaim) {
			c.Annotations = map[string]string{v1alpha1.PriorityAnnotation: "10"}
		})
		Eventually(says(ctx, first, v1alpha1.ConditionBound)).Should(HavePrefix("False NoServers"))
		Eventually(says(ctx, urgent, v1alpha1.ConditionBound)).Should(HavePrefix("False NoServers"))
		s := p.server(ctx, "one")
		Eventually(serverOf(ctx, urgent)).Should(Equal(s.Name))
		Eventually(says(ctx, first, v1alpha1.ConditionBound)).Should(HavePrefix("False NoneClaimable"))
	})

	It("hands a restart on to its server once, and refuses what it does not know", func(ctx context.Context) {
		c, s := p.boundClaim(ctx)
		ask := func(operation string) {
			GinkgoHelper()
			patch(ctx, c, func(c *v1alpha1.ServerClaim) {
				c.Annotations = map[string]string{v1alpha1.OperationAnnotation: operation}
			})
		}
		asked := func(g Gomega) map[string]string { return live(ctx, c).Annotations }
		ask(v1alpha1.OperationGracefulRestartServer)
		Eventually(func() map[string]string { return live(ctx, s).Annotations }).
			Should(HaveKeyWithValue(v1alpha1.OperationAnnotation, v1alpha1.OperationGracefulRestartServer))
		Eventually(asked).ShouldNot(HaveKey(v1alpha1.OperationAnnotation))

		ask(v1alpha1.OperationForceOffServer) // waits: the server has one to do
		Consistently(asked).Should(HaveKey(v1alpha1.OperationAnnotation))
		patch(ctx, s, func(s *v1alpha1.Server) { delete(s.Annotations, v1alpha1.OperationAnnotation) })
		Eventually(func() map[string]string { return live(ctx, s).Annotations }).
			Should(HaveKeyWithValue(v1alpha1.OperationAnnotation, v1alpha1.OperationForceOffServer))
		Eventually(asked).ShouldNot(HaveKey(v1alpha1.OperationAnnotation))

		patch(ctx, s, func(s *v1alpha1.Server) { delete(s.Annotations, v1alpha1.OperationAnnotation) })
		ask(v1alpha1.OperationPark)
		Eventually(asked).ShouldNot(HaveKey(v1alpha1.OperationAnnotation))
		Expect(live(ctx, s).Annotations).NotTo(HaveKey(v1alpha1.OperationAnnotation))
	})

	It("that is to be ignored is not bound until it no longer is", func(ctx context.Context) {
		s := p.server(ctx, "one")
		c := p.claim(ctx, "claim", func(c *v1alpha1.ServerClaim) {
			c.Annotations = map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationIgnore}
		})
		Consistently(serverOf(ctx, c)).Should(BeEmpty())
		patch(ctx, c, func(c *v1alpha1.ServerClaim) { c.Annotations[v1alpha1.OperationAnnotation] = "ignore-for-audit" })
		Consistently(func() map[string]string { return live(ctx, c).Annotations }).
			Should(HaveKeyWithValue(v1alpha1.OperationAnnotation, "ignore-for-audit"), "a word that nobody knows protects too")
		Eventually(serverOf(ctx, c)).Should(BeEmpty())
		patch(ctx, c, func(c *v1alpha1.ServerClaim) { c.Annotations = nil })
		Eventually(serverOf(ctx, c)).Should(Equal(s.Name))
	})
})
