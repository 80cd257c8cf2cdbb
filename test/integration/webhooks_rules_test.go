// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

var _ = Describe("Admission by the rules and settings of a bundle", Serial, Ordered, func() {
	const uuid = "79777777-7742-3448-3784-82334782000"
	var d *door
	var made []client.Object
	create := func(ctx context.Context, o client.Object) error {
		err := d.user.Create(ctx, o)
		if err == nil {
			made = append(made, o)
		}
		return err
	}
	edited := func(ctx context.Context, c client.Client, o client.Object, edit func()) error {
		GinkgoHelper()
		before := o.DeepCopyObject().(client.Object)
		edit()
		return c.Patch(ctx, o, client.MergeFrom(before))
	}
	claim := func(namespace, name string, edit ...func(*v1alpha1.ServerClaim)) *v1alpha1.ServerClaim {
		c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: v1alpha1.ServerClaimSpec{Power: v1alpha1.PowerOff, Image: "os:1"}}
		for _, e := range edit {
			e(c)
		}
		return c
	}
	annotation := func(key, value string) func(*v1alpha1.ServerClaim) {
		return func(c *v1alpha1.ServerClaim) { metav1.SetMetaDataAnnotation(&c.ObjectMeta, key, value) }
	}
	naming := func(server string) func(*v1alpha1.ServerClaim) {
		return func(c *v1alpha1.ServerClaim) { c.Spec.ServerRef = &corev1.LocalObjectReference{Name: server} }
	}
	boot := func(name string) *v1alpha1.ServerBootConfiguration {
		return &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec: v1alpha1.ServerBootConfigurationSpec{ServerRef: corev1.LocalObjectReference{Name: "adm-rules"}, Image: "os:1"}}
	}
	secret := func(name string) *v1alpha1.BMCSecret {
		return &v1alpha1.BMCSecret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"username": []byte("root"), "password": []byte("s3cret")}}
	}

	BeforeAll(func(ctx SpecContext) {
		files, err := policies.Shipped(policies.DefaultBundle)
		Expect(err).NotTo(HaveOccurred())
		files[bundle.BundleFile] = []byte(strings.Replace(string(files[bundle.BundleFile]), "settings:\n",
			"settings:\n  claims: {onUnsatisfiable: Deny, quota: {namespaces: {adm-quota: 3}}}\n", 1))
		files[bundle.AdmissionFile] = []byte(`package metalaw.admission

deny contains {"code": "forbidden", "message": sprintf("the bundle forbids this %s on %s", [input.kind, input.operation])} if {
	input.object.metadata.labels.forbidden == "true"
}

warn contains {"code": "seen", "message": sprintf("the password is <%s>", [input.object.data.password])} if input.kind == "BMCSecret"
`)
		files["admission_test.rego"] = []byte("package metalaw.admission_test\n")
		b, found, err := bundle.Compile(files, policies.Vocabulary())
		Expect(err).NotTo(HaveOccurred())
		Expect(b).NotTo(BeNil(), "%v", found)
		d = openDoorWith(ctx, b, givenFiles(ctx))
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "adm-quota"}}
		Expect(admin.Create(ctx, namespace)).To(Succeed())
		s := machine("adm-rules", uuid+"0", func(s *v1alpha1.Server) { s.Labels = map[string]string{"adm-rules": "true"} })
		Expect(create(ctx, s)).To(Succeed())
		s.Status.State = v1alpha1.StateReserved // what it is is known
		Expect(admin.Status().Update(ctx, s)).To(Succeed())
		Eventually(func(g Gomega) { // the index learns of the server
			g.Expect(d.user.Create(ctx, claim("default", "adm-any"), client.DryRunAll)).To(Succeed())
		}).Should(Succeed())
	})
	AfterAll(func(ctx SpecContext) {
		d.stop()
		Expect(controlPlane.RemoveWebhooks(ctx)).To(Succeed())
		for _, o := range made {
			Expect(client.IgnoreNotFound(admin.Delete(ctx, o))).To(Succeed())
		}
	})

	It("asks the bundle's rules about every kind, when it is created and when it changes", func(ctx SpecContext) {
		type change struct {
			object client.Object
			edit   func()
		}
		e, s, b := device("adm-rules", "02:79:00:00:00:01"), machine("adm-rules-2", uuid+"1"), secret("adm-rules")
		bmc := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: "adm-rules"}, Spec: v1alpha1.BMCSpec{
			Access: &v1alpha1.InlineEndpoint{IP: "fd79::1"}, BMCSecretRef: corev1.LocalObjectReference{Name: "s"},
			Protocol: v1alpha1.Protocol{Name: v1alpha1.ProtocolRedfish}}}
		c, sbc := claim("default", "adm-rules"), boot("adm-rules")
		for kind, o := range map[string]change{
			"Endpoint":                {e, func() { e.Spec.IP = "10.79.0.2" }},
			"BMC":                     {bmc, func() { bmc.Spec.BMCSecretRef.Name = "t" }},
			"BMCSecret":               {b, func() { b.Data["password"] = []byte("other") }},
			"Server":                  {s, func() { s.Spec.Unclaimable = true }},
			"ServerBootConfiguration": {sbc, func() { sbc.Spec.Image = "os:2" }},
			"ServerClaim":             {c, func() { c.Spec.Image = "os:2" }},
		} {
			forbid := func(o client.Object) { o.SetLabels(map[string]string{"forbidden": "true"}) }
			forbidden := o.object.DeepCopyObject().(client.Object)
			forbid(forbidden)
			Expect(create(ctx, forbidden)).To(MatchError(ContainSubstring("the bundle forbids this "+kind+" on CREATE")), kind)
			Expect(create(ctx, o.object)).To(Succeed(), kind)
			before := o.object.DeepCopyObject().(client.Object)
			o.edit()
			forbid(o.object)
			Expect(d.user.Patch(ctx, o.object, client.MergeFrom(before))).
				To(MatchError(ContainSubstring("the bundle forbids this "+kind+" on UPDATE")), kind)
		}
	})

	It("does not ask about what the manager boots, and shows no rule a password", func(ctx SpecContext) {
		own := boot("adm-rules-own")
		own.Labels = map[string]string{"forbidden": "true"}
		Expect(d.manager.Create(ctx, own)).To(Succeed())
		made = append(made, own)
		d.told.take()
		Expect(create(ctx, secret("adm-rules-shown"))).To(Succeed())
		Expect(d.told.take()).To(ConsistOf("the password is <> [seen]"))
	})

	It("refuses a claim that no server of the fleet could ever satisfy, also when it comes to ask for that", func(ctx SpecContext) {
		mine := func(c *v1alpha1.ServerClaim) {
			c.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"adm-rules": "true"}}
		}
		nowhere := func(c *v1alpha1.ServerClaim) {
			c.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"adm-rules": "never"}}
		}
		Expect(create(ctx, claim("default", "adm-never", nowhere))).To(refusal("spec", "can satisfy the claim: 0 of "))
		gpus := annotation(v1alpha1.PlacementAnnotation, "where: server.gpus > 0")
		Eventually(func() error { return d.user.Create(ctx, claim("default", "adm-gpus", mine, gpus), client.DryRunAll) }).
			Should(refusal("spec", "placement 1"))
		c := claim("default", "adm-gpus", mine)
		Expect(create(ctx, c)).To(Succeed())
		Expect(edited(ctx, d.user, c.DeepCopy(), func() {})).To(Succeed())
		changed := c.DeepCopy()
		Expect(edited(ctx, d.user, changed, func() { gpus(changed) })).To(refusal("spec", "placement 1"))
	})

	It("warns of an annotation that nothing reads, also when it comes to be written", func(ctx SpecContext) {
		c := claim("default", "adm-annotated")
		Expect(create(ctx, c)).To(Succeed())
		d.told.take()
		Expect(edited(ctx, d.user, c, func() { annotation("policy.metalaw.dev/protected", "true")(c) })).To(Succeed())
		Expect(d.told.take()).To(ConsistOf(ContainSubstring("did you mean policy.metalaw.dev/protect?")))
		Expect(edited(ctx, d.user, c, func() { annotation("example.com/note", "mine")(c) })).To(Succeed())
		Expect(edited(ctx, d.user, c, func() { c.Spec.Image = "os:2" })).To(Succeed())
		Expect(d.told.take()).To(BeEmpty(), "what was told once is not told again")
	})

	It("refuses a name that no server can have", func(ctx SpecContext) {
		Expect(create(ctx, claim("default", "adm-up", naming("../x")))).To(refusal("spec.serverRef.name", "no Server has such a name"))
	})

	It("refuses a member of a gang that names its server", func(ctx SpecContext) {
		named := naming("adm-rules")
		gang := annotation(v1alpha1.PlacementAnnotation, "gang: {name: adm, size: 2}")
		Expect(create(ctx, claim("default", "adm-gang", named, gang))).
			To(refusal("spec.serverRef.name", "cannot name its server"))
		c := claim("default", "adm-gang", gang)
		Expect(create(ctx, c)).To(Succeed())
		Expect(edited(ctx, d.user, c.DeepCopy(), func() {})).To(Succeed())
		changed := c.DeepCopy()
		Expect(edited(ctx, d.user, changed, func() { named(changed) })).To(refusal("spec.serverRef.name", "cannot name its server"))
	})

	It("admits as many claims at once as the namespace may have", func(ctx SpecContext) {
		errs := make(chan error, 8)
		for i := range cap(errs) {
			go func() { errs <- d.user.Create(ctx, claim("adm-quota", fmt.Sprint("adm-", i))) }()
		}
		admitted := 0
		for range cap(errs) {
			if err := <-errs; err == nil {
				admitted++
			} else {
				Expect(err).To(refusal("metadata.namespace", `exceeded quota: namespace "adm-quota" has 3 of 3 claims`))
			}
		}
		Expect(admitted).To(Equal(3))
		var all v1alpha1.ServerClaimList
		Expect(admin.List(ctx, &all, client.InNamespace("adm-quota"))).To(Succeed())
		Expect(admin.Delete(ctx, &all.Items[0])).To(Succeed())
		Eventually(func() error { return d.user.Create(ctx, claim("adm-quota", "adm-after")) }).Should(Succeed(), "room for one more")

		Expect(create(ctx, machine("adm-kept", uuid+"6", func(s *v1alpha1.Server) {
			s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "adm-quota", Name: "adm-gone"}
		}))).To(Succeed())
		Eventually(func() error { return d.user.Create(ctx, claim("adm-quota", "adm-gone")) }).Should(refusal("metadata.namespace",
			"a server is held for a former claim of this name: a claim that names it in spec.serverRef has it back"))
		Expect(d.user.Create(ctx, claim("adm-quota", "adm-gone", naming("adm-kept")))).To(Succeed(), "it comes back to its server")
		Expect(admin.DeleteAllOf(ctx, &v1alpha1.ServerClaim{}, client.InNamespace("adm-quota"))).To(Succeed())
	})

	It("notes on a Server who ends the claim that holds it, and nothing for a dry run", func(ctx SpecContext) {
		c := claim("default", "adm-ends", naming("adm-ended"))
		c.Finalizers = []string{"example.com/stays"}
		s := machine("adm-ended", uuid+"7")
		Expect(create(ctx, s)).To(Succeed())
		Expect(create(ctx, c)).To(Succeed())
		Expect(edited(ctx, d.manager, s, func() { metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ClaimUIDAnnotation, string(c.UID)) })).To(Succeed())
		noted := func() string {
			stored := &v1alpha1.Server{}
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(s), stored)).To(Succeed())
			return stored.Annotations[v1alpha1.ClaimEndedByAnnotation]
		}
		Expect(edited(ctx, d.user, s, func() {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ClaimEndedByAnnotation, "forged")
		})).To(refusal("metadata.annotations["+v1alpha1.ClaimEndedByAnnotation+"]", "only the manager changes it"))
		Expect(d.user.Delete(ctx, c, client.DryRunAll)).To(Succeed())
		Expect(noted()).To(BeEmpty())
		Expect(d.user.Delete(ctx, c)).To(Succeed())
		Expect(noted()).To(HavePrefix(string(c.UID) + " "))
		Expect(edited(ctx, d.user, c, func() { c.Finalizers = nil })).To(Succeed())
	})

	// The last one: it takes the webhooks down.
	It("keeps what is protected until the protection is taken away, also while the manager is dead", func(ctx SpecContext) {
		const at = "metadata.annotations[" + v1alpha1.ProtectAnnotation + "]"
		protect := annotation(v1alpha1.ProtectAnnotation, "true")
		c, free := claim("default", "adm-protected", protect), claim("default", "adm-free")
		Expect(create(ctx, c)).To(Succeed())
		Expect(create(ctx, free)).To(Succeed())
		s := machine("adm-protected", uuid+"5", func(s *v1alpha1.Server) {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ProtectAnnotation, "true")
		})
		Expect(create(ctx, s)).To(Succeed())
		Expect(d.user.Delete(ctx, c)).To(refusal(at, "kubectl annotate serverclaim -n default adm-protected policy.metalaw.dev/protect-"))
		Expect(d.user.DeleteAllOf(ctx, &v1alpha1.ServerClaim{}, client.InNamespace("default"), client.MatchingFields{"metadata.name": "adm-protected"})).
			To(refusal(at, "it is protected from deletion"))
		Expect(d.user.Delete(ctx, s)).To(refusal(at, "kubectl annotate server adm-protected policy.metalaw.dev/protect-"))
		forged := free.DeepCopy()
		Expect(edited(ctx, d.user, forged, func() { annotation(v1alpha1.ProtectAnnotation, "yes")(forged) })).To(refusal(at, "Unsupported value"))
		Expect(edited(ctx, d.user, s, func() { delete(s.Annotations, v1alpha1.ProtectAnnotation) })).To(Succeed())
		Expect(d.user.Delete(ctx, s)).To(Succeed())

		d.stop()
		Expect(d.user.Delete(ctx, c)).To(MatchError(ContainSubstring("failed calling webhook")))
		Expect(d.user.Delete(ctx, free)).To(Succeed(), "a claim that nobody protects can always be given up")
		Expect(d.user.Create(ctx, boot("adm-dead"))).To(Succeed())
		made = append(made, boot("adm-dead"))
		b := secret("adm-dead")
		Expect(create(ctx, b)).To(Succeed())
		Expect(edited(ctx, d.user, b, func() { b.Immutable = ptr.To(true) })).To(Succeed())
		Expect(edited(ctx, d.user, c, func() { delete(c.Annotations, v1alpha1.ProtectAnnotation) })).To(Succeed())
		Expect(d.user.Delete(ctx, c)).To(Succeed())
	})
})
