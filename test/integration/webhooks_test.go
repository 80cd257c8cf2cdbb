// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

var _ = Describe("Admission", Serial, Ordered, func() {
	const uuid = "77777777-7742-3448-3784-82334782000"
	var d *door
	// gone removes objects whatever guards them: without webhooks, and without finalizers.
	var made []client.Object
	create := func(ctx context.Context, o client.Object) error {
		err := d.user.Create(ctx, o)
		if err == nil {
			made = append(made, o)
		}
		return err
	}
	stored := func(ctx context.Context, name, uuid string, edit ...func(*v1alpha1.Server)) *v1alpha1.Server {
		GinkgoHelper()
		s := machine(name, uuid, edit...)
		Expect(create(ctx, s)).To(Succeed())
		return s
	}
	edited := func(ctx context.Context, c client.Client, o client.Object, edit func()) error {
		GinkgoHelper()
		before := o.DeepCopyObject().(client.Object)
		edit()
		return c.Patch(ctx, o, client.MergeFrom(before))
	}
	statusEdited := func(ctx context.Context, c client.Client, o client.Object, edit func()) error {
		GinkgoHelper()
		before := o.DeepCopyObject().(client.Object)
		edit()
		return c.Status().Patch(ctx, o, client.MergeFrom(before))
	}

	BeforeAll(func(ctx SpecContext) { d = openDoor(ctx, givenFiles(ctx)) })
	AfterAll(func(ctx SpecContext) {
		d.stop()
		Expect(controlPlane.RemoveWebhooks(ctx)).To(Succeed())
		for _, o := range made {
			Expect(client.IgnoreNotFound(admin.Delete(ctx, o))).To(Succeed())
		}
	})

	It("stores a MAC address in one spelling and refuses it a second time, however it is spelled", func(ctx SpecContext) {
		first := device("adm-mac", "02-77-00-00-0A-01")
		Expect(create(ctx, first)).To(Succeed())
		Expect(first.Spec.MACAddress).To(Equal("02:77:00:00:0a:01"))
		Expect(create(ctx, device("adm-mac-2", "02:77:00:00:0A:01"))).To(refusal("spec.MACAddress", `Endpoint "adm-mac" `))
		Expect(edited(ctx, d.user, first, func() { first.Spec.IP = "10.77.0.2" })).To(Succeed(), "its own MAC address stays")
	})

	It("warns where a GitOps tool would see a difference, or ask for an operation, at each sync", func(ctx SpecContext) {
		d.told.take()
		Expect(create(ctx, device("adm-gitops", "02:77:00:00:0A:77"))).To(Succeed())
		Expect(d.told.take()).To(ContainElement(ContainSubstring("spec.macAddress: it is stored as 02:77:00:00:0a:77; write it so")))
		Expect(create(ctx, device("adm-gitops-2", "02:77:00:00:0a:78"))).To(Succeed())
		Expect(d.told.take()).NotTo(ContainElement(ContainSubstring("GitOps")))

		stored(ctx, "adm-gitops", "77777777-7742-3448-3784-8233478200a7")
		claim := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "adm-gitops"},
			Spec: v1alpha1.ServerClaimSpec{Power: v1alpha1.PowerOff, Image: "registry.example/os:1"}}
		Expect(create(ctx, claim)).To(Succeed())
		b := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: "adm-gitops"}, Spec: v1alpha1.BMCSpec{
			Access:       &v1alpha1.InlineEndpoint{IP: "10.77.7.7", MACAddress: "02:77:00:00:0a:79"},
			BMCSecretRef: corev1.LocalObjectReference{Name: "adm-gitops"},
			Protocol:     v1alpha1.Protocol{Name: v1alpha1.ProtocolRedfish, Port: 443}}}
		Expect(create(ctx, b)).To(Succeed())
		for _, o := range []struct{ kind, namespace, operation string }{{"Server", "", "hard-restart-server"},
			{"ServerClaim", "default", "hard-restart-server"}, {"BMC", "", "graceful-restart-bmc"}} {
			d.told.take()
			manifest := &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": o.kind,
				"metadata": map[string]any{"name": "adm-gitops", "annotations": map[string]any{v1alpha1.OperationAnnotation: o.operation}}}}
			manifest.SetNamespace(o.namespace)
			Expect(d.user.Apply(ctx, client.ApplyConfigurationFromUnstructured(manifest), client.FieldOwner("flux"), client.ForceOwnership)).To(Succeed())
			Expect(d.told.take()).To(ContainElement(ContainSubstring(o.operation+" is done once and then removed")), o.kind)
		}
		s := stored(ctx, "adm-annotated", "77777777-7742-3448-3784-8233478200a8")
		d.told.take()
		Expect(edited(ctx, d.user, s, func() {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.OperationAnnotation, v1alpha1.OperationPark)
		})).To(Succeed())
		Expect(d.told.take()).NotTo(ContainElement(ContainSubstring("is done once")))
	})

	It("admits one of many endpoints with one MAC address that come at once", func(ctx SpecContext) {
		errs := make(chan error, 8)
		for i := range cap(errs) {
			go func() {
				errs <- d.user.Create(ctx, device(fmt.Sprint("adm-race-", i), "02:77:00:00:0a:02"))
			}()
		}
		admitted := 0
		for range cap(errs) {
			if err := <-errs; err == nil {
				admitted++
			} else {
				Expect(err).To(refusal("spec.MACAddress", "Duplicate value"))
			}
		}
		Expect(admitted).To(Equal(1))
		for i := range cap(errs) {
			made = append(made, device(fmt.Sprint("adm-race-", i), ""))
		}
	})

	It("admits generated names", func(ctx SpecContext) {
		for i := range 2 {
			e := device("", fmt.Sprintf("02:77:00:00:0b:0%d", i))
			e.GenerateName = "adm-generated-"
			Expect(create(ctx, e)).To(Succeed())
		}
		e := device("", "02:77:00:00:0b:00")
		e.GenerateName = "adm-generated-"
		Expect(create(ctx, e)).To(refusal("spec.MACAddress", "Duplicate value"))
	})

	It("says what is wrong with a MAC address", func(ctx SpecContext) {
		Expect(create(ctx, device("adm-bad", "ff:ff:ff:ff:ff:ff"))).To(refusal("spec.macAddress", "is the broadcast address"))
		d.told.take()
		Expect(create(ctx, device("adm-multicast", "23:11:8a:33:cf:ea"))).To(Succeed(), "upstream's sample")
		Expect(d.told.take()).To(ContainElement(ContainSubstring("is a multicast address")))
		Expect(create(ctx, device("adm-bad", "02:00:00"))).To(MatchError(ContainSubstring("spec.macAddress")))
	})

	It("stores a system UUID in lower case and refuses it a second time", func(ctx SpecContext) {
		s := stored(ctx, "adm-uuid", "7777777A-7742-3448-3784-823347820000")
		Expect(s.Spec.SystemUUID).To(Equal("7777777a-7742-3448-3784-823347820000"))
		Expect(create(ctx, machine("adm-uuid-2", "7777777A-7742-3448-3784-823347820000"))).To(refusal("spec.systemUUID", `Server "adm-uuid" `))
	})

	It("refuses a second BMC at one address", func(ctx SpecContext) {
		bmc := func(name, ip string) *v1alpha1.BMC {
			return &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.BMCSpec{
				Access: &v1alpha1.InlineEndpoint{IP: ip}, BMCSecretRef: corev1.LocalObjectReference{Name: "s"},
				Protocol: v1alpha1.Protocol{Name: v1alpha1.ProtocolRedfish}}}
		}
		Expect(create(ctx, bmc("adm-bmc", "fd77::1"))).To(Succeed())
		Expect(create(ctx, bmc("adm-bmc-2", "fd77:0::1"))).To(refusal("spec.access.ip", `BMC "adm-bmc" `))
	})

	It("moves a state along the edges of the lifecycle only, whoever writes", func(ctx SpecContext) {
		s := stored(ctx, "adm-state", uuid+"1")
		Expect(statusEdited(ctx, d.user, s.DeepCopy(), func() {})).To(Succeed())
		for _, c := range []client.Client{d.user, d.manager} {
			forged := s.DeepCopy()
			Expect(statusEdited(ctx, c, forged, func() { forged.Status.State = v1alpha1.StateAvailable })).
				To(refusal("status.state", "has no rule that leads from no state to it"))
		}
		Expect(statusEdited(ctx, d.manager, s, func() { s.Status.State = v1alpha1.StateReserved })).To(Succeed())
		forged := s.DeepCopy()
		Expect(statusEdited(ctx, d.manager, forged, func() { forged.Status.State = v1alpha1.StateAvailable })).
			To(refusal("status.state", "leads from Reserved to it"))
	})

	It("keeps others off the record of the lifecycle", func(ctx SpecContext) {
		s := stored(ctx, "adm-lifecycle", uuid+"2")
		forged := s.DeepCopy()
		write := func(s *v1alpha1.Server) func() {
			return func() { s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Entry: 1, EnteredAt: metav1.NowMicro()} }
		}
		Expect(statusEdited(ctx, d.user, forged, write(forged))).To(refusal("status.lifecycle", "only the manager writes it"))
		Expect(statusEdited(ctx, d.manager, s, write(s))).To(Succeed())
		Expect(statusEdited(ctx, d.user, s, func() { s.Status.Lifecycle = nil })).To(refusal("status.lifecycle", "only the manager writes it"))
	})

	It("keeps others off the annotations that guard data", func(ctx SpecContext) {
		at := func(name string) string { return "metadata.annotations[" + name + "]" }
		released := machine("adm-restored", uuid+"3", func(s *v1alpha1.Server) {
			s.Annotations = map[string]string{v1alpha1.ClaimUIDAnnotation: "u", v1alpha1.ReleasedClaimAnnotation: "u"}
		})
		Expect(create(ctx, released)).To(refusal(at(v1alpha1.ReleasedClaimAnnotation), "leads to a wipe"))
		s := stored(ctx, "adm-guarded", uuid+"3", func(s *v1alpha1.Server) {
			s.Annotations = map[string]string{v1alpha1.ClaimUIDAnnotation: "u"}
		})
		forged := s.DeepCopy()
		Expect(edited(ctx, d.user, forged, func() { forged.Annotations[v1alpha1.ReleasedClaimAnnotation] = "u" })).
			To(refusal(at(v1alpha1.ReleasedClaimAnnotation), "only the manager changes it"))
		forged = s.DeepCopy()
		Expect(edited(ctx, d.user, forged, func() { delete(forged.Annotations, v1alpha1.ClaimUIDAnnotation) })).
			To(refusal(at(v1alpha1.ClaimUIDAnnotation), "only the manager changes it"))
		for _, name := range []string{v1alpha1.PreParkStateAnnotation, v1alpha1.ParkRequestedAnnotation} {
			forged = s.DeepCopy()
			Expect(edited(ctx, d.user, forged, func() { forged.Annotations[name] = "Available" })).To(refusal(at(name), "only the manager changes it"))
			Expect(edited(ctx, d.manager, s, func() { s.Annotations[name] = "Error" })).To(Succeed())
			forged = s.DeepCopy()
			Expect(edited(ctx, d.user, forged, func() { delete(forged.Annotations, name) })).To(refusal(at(name), "only the manager changes it"))
		}
		Expect(edited(ctx, d.manager, s, func() { s.Annotations[v1alpha1.ReleasedClaimAnnotation] = "u" })).To(Succeed())
	})

	It("keeps a server that holds data, and its finalizer, until somebody says otherwise", func(ctx SpecContext) {
		s := stored(ctx, "adm-data", uuid+"4", func(s *v1alpha1.Server) {
			s.Finalizers = []string{v1alpha1.FinalizerServer}
			s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "a", Name: "b"}
		})
		Expect(d.user.Delete(ctx, s)).To(refusal("metadata.annotations[policy.metalaw.dev/delete-data]", "it is held by a claim"))
		forged := s.DeepCopy()
		Expect(edited(ctx, d.user, forged, func() { forged.Finalizers = nil })).To(refusal("metadata.finalizers", "it is held by a claim"))
		Expect(edited(ctx, d.user, s, func() { metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.DeleteDataAnnotation, "true") })).To(Succeed())
		d.told.take()
		Expect(d.user.Delete(ctx, s)).To(Succeed())
		Expect(d.told.take()).To(ConsistOf(ContainSubstring("nothing erases the disks")))
		Expect(edited(ctx, d.user, s, func() { s.Finalizers = nil })).To(Succeed())
	})

	It("holds an immutable BMCSecret, and lets everything else about it change", func(ctx SpecContext) {
		slashes := []byte{0xfb, 0xff, 0xfe} // +//+ in base64
		s := &v1alpha1.BMCSecret{ObjectMeta: metav1.ObjectMeta{Name: "adm-secret"}, Immutable: ptr.To(true),
			Data: map[string][]byte{"username": []byte("root"), "password": slashes}}
		Expect(create(ctx, s)).To(Succeed())
		Expect(edited(ctx, d.user, s, func() { s.Labels = map[string]string{"rack": "r1"} })).To(Succeed())
		refused := func(at, says string, edit func(*v1alpha1.BMCSecret)) {
			GinkgoHelper()
			forged := s.DeepCopy()
			Expect(edited(ctx, d.user, forged, func() { edit(forged) })).To(refusal(at, says))
		}
		refused("data[password]", "it cannot be changed, because the BMCSecret is immutable", func(s *v1alpha1.BMCSecret) {
			s.Data["password"] = []byte{0xfb, 0xff, 0xff}
		})
		refused("data[realm]", "it cannot be added", func(s *v1alpha1.BMCSecret) { s.Data["realm"] = slashes })
		refused("data[username]", "it cannot be removed", func(s *v1alpha1.BMCSecret) { delete(s.Data, "username") })
		refused("stringData[password]", "it cannot be added", func(s *v1alpha1.BMCSecret) { s.StringData = map[string]string{"password": "b"} })
		forged := s.DeepCopy()
		Expect(edited(ctx, d.user, forged, func() { forged.Immutable = ptr.To(false) })).To(MatchError(ContainSubstring("cannot be taken back")))
		Expect(edited(ctx, d.user, s, func() { metav1.SetMetaDataAnnotation(&s.ObjectMeta, "example.com/note", "unrelated") })).To(Succeed())
	})

	It("refuses a claim that cannot mean anything and warns about one that nothing can satisfy", func(ctx SpecContext) {
		claim := func(edit func(*v1alpha1.ServerClaimSpec)) *v1alpha1.ServerClaim {
			c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "adm-claim"},
				Spec: v1alpha1.ServerClaimSpec{Power: v1alpha1.PowerOff, Image: "os:1"}}
			edit(&c.Spec)
			return c
		}
		Expect(create(ctx, claim(func(s *v1alpha1.ServerClaimSpec) {
			s.ServerRef = &corev1.LocalObjectReference{Name: "no_such_server"}
		}))).To(refusal("spec.serverRef.name", "no Server has such a name"))
		d.told.take()
		Expect(d.user.Create(ctx, claim(func(s *v1alpha1.ServerClaimSpec) {
			s.ServerRef = &corev1.LocalObjectReference{Name: "adm-nothing"}
		}), client.DryRunAll)).To(Succeed())
		Expect(d.told.take()).To(ContainElement(ContainSubstring("there is no Server \"adm-nothing\"; the claim waits")))
		Expect(create(ctx, claim(func(s *v1alpha1.ServerClaimSpec) {
			s.ServerSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "rack", Operator: "Like"}}}
		}))).To(refusal("spec.serverSelector.matchExpressions[0].operator", "not a valid selector operator"))
		Expect(create(ctx, claim(func(s *v1alpha1.ServerClaimSpec) { s.Image = " " }))).To(refusal("spec.image", "a claim needs an image"))
		d.told.take()
		Expect(create(ctx, claim(func(s *v1alpha1.ServerClaimSpec) {
			s.ServerSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "adm-nowhere"}}
		}))).To(Succeed())
		Expect(d.told.take()).To(ConsistOf(MatchRegexp(`^no server of the fleet, in whatever state, can satisfy the claim: 0 of \d+ servers`)))
	})

	It("looks at the placement of a claim whenever it is written, and at nothing else of its annotations", func(ctx SpecContext) {
		const at = "metadata.annotations[" + v1alpha1.PlacementAnnotation + "]"
		c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "adm-placement"},
			Spec: v1alpha1.ServerClaimSpec{Power: v1alpha1.PowerOff, Image: "os:1"}}
		Expect(create(ctx, c)).To(Succeed())
		placed := func(c *v1alpha1.ServerClaim, text string) error {
			return edited(ctx, d.user, c, func() { metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.PlacementAnnotation, text) })
		}
		Expect(placed(c.DeepCopy(), "where: server.gpu > 0")).To(refusal(at, "placement:1:8: error: where: there is no fact \"server.gpu\""))
		Expect(placed(c.DeepCopy(), "")).To(refusal(at, "placement:1:1: error: the placement is empty"))
		Expect(placed(c, "where: server.gpus > 0")).To(Succeed())
		Expect(edited(ctx, d.user, c, func() { c.Annotations["example.com/note"] = "unrelated" })).To(Succeed())
		Expect(edited(ctx, d.user, c, func() { delete(c.Annotations, v1alpha1.PlacementAnnotation) })).To(Succeed())
	})

	It("names a server that was made a moment ago", func(ctx SpecContext) {
		stored(ctx, "adm-fresh", uuid+"5")
		c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "adm-fresh"}, Spec: v1alpha1.ServerClaimSpec{
			Power: v1alpha1.PowerOff, Image: "os:1", ServerRef: &corev1.LocalObjectReference{Name: "adm-fresh"}}}
		Expect(create(ctx, c)).To(Succeed())
	})

	// The last one: it takes the webhooks down.
	It("keeps out of every other write, so that a dead manager blocks none of them", func(ctx SpecContext) {
		s := stored(ctx, "adm-down", uuid+"6", func(s *v1alpha1.Server) {
			s.Annotations = map[string]string{v1alpha1.ClaimUIDAnnotation: "u"}
			s.Finalizers = []string{v1alpha1.FinalizerServer}
		})
		e := device("adm-down", "02:77:00:00:0a:09")
		Expect(create(ctx, e)).To(Succeed())
		c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "adm-down"},
			Spec: v1alpha1.ServerClaimSpec{Power: v1alpha1.PowerOff, Image: "os:1"}}
		Expect(create(ctx, c)).To(Succeed())
		secret := &v1alpha1.BMCSecret{ObjectMeta: metav1.ObjectMeta{Name: "adm-down"}, Immutable: ptr.To(true),
			Data: map[string][]byte{"password": []byte("a")}}
		Expect(create(ctx, secret)).To(Succeed())
		d.stop()

		began := time.Now()
		Expect(edited(ctx, d.user, s, func() {
			s.Labels = map[string]string{"rack": "r1"}
			s.Annotations["example.com/note"] = "unrelated"
			s.Finalizers = append(s.Finalizers, "example.com/mine")
		})).To(Succeed())
		Expect(statusEdited(ctx, d.user, s, func() { s.Status.PowerState = v1alpha1.PowerStateOn })).To(Succeed())
		Expect(edited(ctx, d.manager, s, func() { s.Spec.Unclaimable = true })).To(Succeed(), "the manager's own writes")
		Expect(edited(ctx, d.user, s, func() { s.Finalizers = []string{v1alpha1.FinalizerServer} })).To(Succeed(), "another's finalizer")
		Expect(edited(ctx, d.user, e, func() { e.Labels = map[string]string{"a": "b"} })).To(Succeed())
		Expect(statusEdited(ctx, d.user, e, func() { e.Status.ObservedGeneration = 1 })).To(Succeed())
		Expect(edited(ctx, d.user, c, func() { c.Finalizers = []string{"example.com/mine"} })).To(Succeed())
		Expect(statusEdited(ctx, d.user, c, func() { c.Status.Phase = v1alpha1.PhaseUnbound })).To(Succeed())
		Expect(edited(ctx, d.user, c, func() { c.Finalizers = nil })).To(Succeed())
		Expect(d.user.Delete(ctx, c)).To(Succeed(), "a claim can always be given up")
		Expect(edited(ctx, d.user, secret, func() { secret.Labels = map[string]string{"a": "b"} })).To(Succeed())
		Expect(time.Since(began)).To(BeNumerically("<", 2*time.Second), "none of them waited for a webhook")

		forged := s.DeepCopy()
		Expect(edited(ctx, d.user, forged, func() { delete(forged.Annotations, v1alpha1.ClaimUIDAnnotation) })).
			To(MatchError(ContainSubstring("failed calling webhook")), "what guards data is not open while nobody looks")
		Expect(statusEdited(ctx, d.user, forged, func() { forged.Status.State = v1alpha1.StateAvailable })).
			To(MatchError(ContainSubstring("failed calling webhook")))
		Expect(edited(ctx, d.user, secret, func() { secret.Data["password"] = []byte("b") })).
			To(MatchError(ContainSubstring("failed calling webhook")))
	})
})

var _ = Describe("The webhooks' own certificate", Serial, func() {
	It("is made, mounted, made known to the API server and served", func(ctx SpecContext) {
		d := openDoor(ctx, rotated(ctx))
		Expect(d.user.Create(ctx, device("adm-rotated", "00:00:00:00:00:00"))).To(refusal("spec.macAddress", "all zeros"))
	})
})
