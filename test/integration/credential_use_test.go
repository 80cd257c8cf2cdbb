// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/test/env"
	"github.com/metalaw/metalaw/webhooks"
	"github.com/metalaw/metalaw/webhooks/credentials"
)

var _ = Describe("The user who decides where a password goes", Serial, Ordered, func() {
	const lacks = `lacks the verb use on bmcsecrets.metal.ironcore.dev "cu-pass", which ClusterRole metalaw-credential-user gives`
	var d *door
	var made []client.Object
	keep := func(ctx context.Context, c client.Client, o client.Object) error {
		err := c.Create(ctx, o)
		if err == nil {
			made = append(made, o)
		}
		return err
	}
	// as is a client of a user who has some ClusterRoles and no other right.
	as := func(ctx context.Context, user env.User, roles ...string) client.Client {
		GinkgoHelper()
		for _, role := range roles {
			Expect(keep(ctx, admin, &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "cu-"},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user.Name}},
			})).To(Succeed())
		}
		config, err := controlPlane.ConfigFor(user)
		Expect(err).NotTo(HaveOccurred())
		c, err := client.New(config, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		return c
	}
	// patched changes an object as a user. It asks as a dry run, so that the next user finds what this one found.
	patched := func(ctx context.Context, c client.Client, o client.Object, edit func(client.Object)) error {
		after := o.DeepCopyObject().(client.Object)
		edit(after)
		return c.Patch(ctx, after, client.MergeFrom(o), client.DryRunAll)
	}
	bmc := func(name string, spec v1alpha1.BMCSpec) *v1alpha1.BMC {
		spec.BMCSecretRef.Name, spec.Protocol.Name = "cu-pass", v1alpha1.ProtocolRedfish
		return &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	}
	port := func(o client.Object) { o.(*v1alpha1.BMC).Spec.Protocol.Port = 8443 }
	address := func(o client.Object) { o.(*v1alpha1.Endpoint).Spec.IP = "10.78.0.9" }
	ref := func(name string) *corev1.LocalObjectReference { return &corev1.LocalObjectReference{Name: name} }

	var direct, verified *v1alpha1.BMC
	var moving, safe *v1alpha1.Endpoint
	var inline *v1alpha1.Server
	BeforeAll(func(ctx SpecContext) {
		embedded, err := policies.Default()
		Expect(err).NotTo(HaveOccurred())
		d = openDoorWith(ctx, embedded, givenFiles(ctx), func(o *webhooks.Options) { o.CredentialUse = credentials.On })
		direct = bmc("cu-direct", v1alpha1.BMCSpec{Access: &v1alpha1.InlineEndpoint{IP: "10.78.0.1"}})
		moving, safe = device("cu-moving", "02:78:00:00:00:01"), device("cu-safe", "02:78:00:00:00:02")
		moving.Spec.IP, safe.Spec.IP = "10.78.0.4", "10.78.0.5"
		verified = bmc("cu-safe", v1alpha1.BMCSpec{EndpointRef: ref("cu-safe"), Trust: &v1alpha1.BMCTrust{CertificateSHA256: strings.Repeat("0", 64)}})
		inline = machine("cu-inline", "78787878-7742-3448-3784-823347820001", func(s *v1alpha1.Server) {
			s.Spec.BMC = &v1alpha1.BMCAccess{Address: "10.78.0.3", BMCSecretRef: *ref("cu-pass"), Protocol: v1alpha1.Protocol{Name: v1alpha1.ProtocolRedfish}}
		})
		for _, o := range []client.Object{
			&v1alpha1.BMCSecret{ObjectMeta: metav1.ObjectMeta{Name: "cu-pass"}, StringData: map[string]string{"username": "root", "password": "s3cret"}},
			moving, safe, direct, verified, inline, bmc("cu-moving", v1alpha1.BMCSpec{EndpointRef: ref("cu-moving")}),
		} {
			Expect(keep(ctx, d.user, o)).To(Succeed())
		}
	})
	AfterAll(func(ctx SpecContext) {
		d.stop()
		Expect(controlPlane.RemoveWebhooks(ctx)).To(Succeed())
		for _, o := range made {
			Expect(client.IgnoreNotFound(admin.Delete(ctx, o))).To(Succeed())
		}
	})

	It("is no assigner of UUIDs, however the BMC is changed", func(ctx SpecContext) {
		uma := as(ctx, env.User{Name: "cu-uma"}, "metalaw-uuid-assigner")
		annotate := func(key, value string) func(client.Object) {
			return func(o client.Object) { metav1.SetMetaDataAnnotation(&o.(*v1alpha1.BMC).ObjectMeta, key, value) }
		}
		Eventually(func() error { // the authorizer learns of the role a moment later
			return patched(ctx, uma, direct, annotate(v1alpha1.SystemUUIDsAnnotation, "/redfish/v1/Systems/1: {uuid: 0a000000-0000-4000-8000-0000000000cc, serial: S}"))
		}).Should(Succeed())
		for field, edit := range map[string]func(client.Object){
			"spec.protocol": port,
			"spec.hostname": func(o client.Object) { o.(*v1alpha1.BMC).Spec.Hostname = "evil.example" },
			"spec.trust": func(o client.Object) {
				o.(*v1alpha1.BMC).Spec.Trust = &v1alpha1.BMCTrust{CertificateSHA256: strings.Repeat("1", 64)}
			},
			"metadata.annotations[policy.metalaw.dev/accept-certificate]": annotate(v1alpha1.AcceptCertificateAnnotation, strings.Repeat("1", 64)),
			"metadata.annotations[policy.metalaw.dev/old-tls]":            annotate(v1alpha1.OldTLSAnnotation, "rsa-key-exchange"),
		} {
			Expect(patched(ctx, uma, direct, edit)).To(refusal(field, `user "cu-uma" `+lacks), field)
		}
	})

	It("is no user who may only force, sanitize, decommission or attest", func(ctx SpecContext) {
		for _, role := range []string{"metalaw-server-forcer", "metalaw-server-sanitizer", "metalaw-server-decommissioner", "metalaw-disk-attester"} {
			one := as(ctx, env.User{Name: "cu-" + role}, role)
			Eventually(func() error { return one.Get(ctx, client.ObjectKeyFromObject(inline), &v1alpha1.Server{}) }).Should(Succeed())
			Eventually(func() error {
				return patched(ctx, one, inline, func(o client.Object) { o.(*v1alpha1.Server).Spec.BMC.Address = "10.78.0.66" })
			}).Should(refusal("spec.bmc.bmcSecretRef", lacks), role)
		}
	})

	It("runs the fleet or brings machines in", func(ctx SpecContext) {
		for _, role := range []string{"metalaw-fleet-operator", "metalaw-onboarder"} {
			one := as(ctx, env.User{Name: "cu-" + role}, role)
			Eventually(func() error { return patched(ctx, one, direct, port) }).Should(Succeed(), role)
			Expect(patched(ctx, one, moving, address)).To(Succeed(), role)
			Expect(one.Create(ctx, bmc("cu-new", v1alpha1.BMCSpec{Access: &v1alpha1.InlineEndpoint{IP: "10.78.0.7"}}), client.DryRunAll)).To(Succeed(), role)
		}
		onboarder := as(ctx, env.User{Name: "cu-metalaw-onboarder"})
		Expect(apierrors.IsForbidden(onboarder.Get(ctx, client.ObjectKey{Name: "cu-pass"}, &v1alpha1.BMCSecret{}))).To(BeTrue())
	})

	It("is FeDHCP once its binding is applied", func(ctx SpecContext) {
		Expect(keep(ctx, admin, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "cu-fedhcp"}, Rules: []rbacv1.PolicyRule{ // its own
			{APIGroups: []string{"metal.ironcore.dev"}, Resources: []string{"endpoints"}, Verbs: []string{"*"}},
		}})).To(Succeed())
		fedhcp := as(ctx, env.ServiceAccount("fedhcp", "fedhcp"), "cu-fedhcp")
		Eventually(func() error { return patched(ctx, fedhcp, safe, address) }).Should(Succeed(), "only the BMC of that certificate gets the password")
		Expect(fedhcp.Create(ctx, device("cu-unknown", "02:78:00:00:00:05"), client.DryRunAll)).To(Succeed(), "no password goes there")
		Expect(patched(ctx, fedhcp, moving, address)).To(refusal("spec.ip", lacks))
		Expect(patched(ctx, fedhcp, moving, address)).To(MatchError(ContainSubstring("kubectl apply -k config/fedhcp")))
		Expect(fedhcp.Create(ctx, device("cu-pass", "02:78:00:00:00:06"), client.DryRunAll)).To(refusal("metadata.name", lacks))

		Expect(controlPlane.ApplyKustomize(ctx, "config/fedhcp")).To(Succeed())
		made = append(made, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "metalaw-fedhcp"}})
		Eventually(func() error { return patched(ctx, fedhcp, moving, address) }).Should(Succeed())
		Expect(fedhcp.Create(ctx, device("cu-pass", "02:78:00:00:00:06"), client.DryRunAll)).To(Succeed())
	})
})
