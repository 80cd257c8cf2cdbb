// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/admission"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/test/env"
)

var _ = Describe("What a bundle refuses by the object alone", Ordered, func() {
	const namespace, allowed, other = "shop", "registry.example.com/os/linux:1", "registry.example.com/other/linux:1"
	var rules *bundle.Bundle
	var printed said
	claim := func(name string, change func(*v1alpha1.ServerClaim)) *v1alpha1.ServerClaim {
		c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: v1alpha1.ServerClaimSpec{Power: v1alpha1.PowerOn, Image: allowed}}
		change(c)
		return c
	}
	image := func(image string) func(*v1alpha1.ServerClaim) {
		return func(c *v1alpha1.ServerClaim) { c.Spec.Image = image }
	}
	stored := claim("stored-before", image(other))

	BeforeAll(func(ctx SpecContext) {
		Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
		Expect(admin.Create(ctx, stored)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { // other specs count the claims that wait
			Expect(admin.DeleteAllOf(ctx, &v1alpha1.ServerClaim{}, client.InNamespace(namespace))).To(Succeed())
		})
		dir := filepath.Join(GinkgoT().TempDir(), "fleet")
		Expect(nobody.says(ctx, "policy", "init", dir).code).To(BeZero())
		added := nobody.says(ctx, "policy", "add", dir, "images-per-namespace", "--set", `images={"shop": ["registry.example.com/os/*"]}`)
		Expect(added.code).To(BeZero(), added.out+added.err)
		printed = nobody.says(ctx, "policy", "vap", "-f", dir)
		Expect(printed.code).To(BeZero(), printed.err)
		objects := []*unstructured.Unstructured{}
		for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(printed.out), 4096); ; {
			o := &unstructured.Unstructured{}
			err := decoder.Decode(o)
			if errors.Is(err, io.EOF) {
				break
			}
			Expect(err).NotTo(HaveOccurred())
			if len(o.Object) > 0 {
				objects = append(objects, o)
			}
		}
		Expect(objects).To(HaveLen(4))
		Expect(controlPlane.Apply(ctx, objects)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			for _, o := range objects {
				Expect(client.IgnoreNotFound(admin.Delete(ctx, o))).To(Succeed())
			}
		})
		files := bundle.Files{}
		entries, err := os.ReadDir(dir)
		Expect(err).NotTo(HaveOccurred())
		for _, e := range entries {
			if e.Name() != "kustomization.yaml" {
				files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name()))
				Expect(err).NotTo(HaveOccurred())
			}
		}
		rules, _, err = bundle.Compile(files, policies.Vocabulary())
		Expect(err).NotTo(HaveOccurred())
		Expect(rules).NotTo(BeNil())
		Eventually(func() error { // the API server takes a policy up within a second or so
			return admin.Create(ctx, claim("probe", image(other)), client.DryRunAll)
		}).Should(MatchError(ContainSubstring("may not boot this image")))
	})

	It("is refused by the API server in the words of the bundle's rules", func(ctx SpecContext) {
		for name, c := range map[string]*v1alpha1.ServerClaim{
			"image-not-allowed": claim("a", image(other)),
			"image-missing":     claim("b", image(" ")),
			"image-malformed":   claim("c", image("registry.example.com/os/linux :1")),
		} {
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
			Expect(err).NotTo(HaveOccurred())
			verdict, err := rules.Admission.Admit(ctx, admission.Input{Operation: "CREATE", Kind: "ServerClaim", Object: object})
			Expect(err).NotTo(HaveOccurred())
			said := ""
			for _, d := range verdict.Denials {
				if d.Code == name {
					said = d.Message
				}
			}
			Expect(said).NotTo(BeEmpty())
			err = admin.Create(ctx, c)
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(ContainSubstring("spec.image: "+said)), name)
		}
	})

	It("is refused by metalaw's own rules", func(ctx SpecContext) {
		for words, change := range map[string]func(*v1alpha1.ServerClaim){
			"write the name of a Secret": func(c *v1alpha1.ServerClaim) { c.Spec.UserDataRef = &corev1.LocalObjectReference{} },
			"without a key it tolerates nothing": func(c *v1alpha1.ServerClaim) {
				c.Spec.Tolerations = []v1alpha1.Toleration{{Value: "x"}}
			},
			"the operator Exists tolerates every value": func(c *v1alpha1.ServerClaim) {
				c.Spec.Tolerations = []v1alpha1.Toleration{{Key: "k", Operator: v1alpha1.TolerationOpExists, Value: "x"}}
			},
			`supported values: "true", "false"`: func(c *v1alpha1.ServerClaim) {
				c.Annotations = map[string]string{v1alpha1.ProtectAnnotation: "yes"}
			},
		} {
			Expect(admin.Create(ctx, claim("d", change))).To(MatchError(ContainSubstring(words)))
		}
	})

	It("passes what metalaw admits", func(ctx SpecContext) {
		Expect(admin.Create(ctx, claim("good", func(c *v1alpha1.ServerClaim) {
			c.Annotations = map[string]string{v1alpha1.ProtectAnnotation: "false"}
			c.Spec.Tolerations = []v1alpha1.Toleration{{Operator: v1alpha1.TolerationOpExists}, {Key: "k", Value: "v"}}
		}))).To(Succeed())
		elsewhere := claim("elsewhere", image(other))
		elsewhere.Namespace = "default"
		Expect(admin.Create(ctx, elsewhere)).To(Succeed())
		Expect(admin.Delete(ctx, elsewhere)).To(Succeed())

		stored.Spec.Power = v1alpha1.PowerOff // what is stored is not held against another change
		Expect(admin.Update(ctx, stored)).To(Succeed())
		stored.Spec.Image = "registry.example.com/other/linux:2"
		Expect(admin.Update(ctx, stored.DeepCopy())).To(MatchError(ContainSubstring("may not boot this image")))

		config, err := controlPlane.ConfigFor(env.Manager)
		Expect(err).NotTo(HaveOccurred())
		manager, err := client.New(config, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		stored.Spec.Image = other
		before := stored.DeepCopy()
		stored.Spec.Tolerations = []v1alpha1.Toleration{{Value: "x"}}
		Expect(manager.Patch(ctx, stored, client.MergeFrom(before))).To(Succeed())
	})

	It("is pruned with what another bundle has", func(ctx SpecContext) {
		rights, err := controlPlane.KubeconfigFor(env.User{Name: "root", Groups: []string{"system:masters"}})
		Expect(err).NotTo(HaveOccurred())
		const all = "validatingadmissionpolicies,validatingadmissionpolicybindings"
		kubectl := func(ctx SpecContext, input string, args ...string) string {
			GinkgoHelper()
			cmd := exec.CommandContext(ctx, controlPlane.Kubectl(), append([]string{"--kubeconfig", rights}, args...)...)
			cmd.Stdin = strings.NewReader(input)
			out, err := cmd.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), string(out))
			return string(out)
		}
		const ours = "policy.metalaw.dev/printed-by=policy-vap"
		apply := []string{"apply", "-f", "-", "--prune", "-l", ours,
			"--prune-allowlist=admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy",
			"--prune-allowlist=admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding"}
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "", "delete", all, "-l", ours) })
		kubectl(ctx, printed.out, apply...)
		Expect(kubectl(ctx, "", "get", all, "-l", ours, "-o", "name")).To(ContainSubstring("metalaw-bundle-fleet-serverclaim"))
		kubectl(ctx, nobody.says(ctx, "policy", "vap").out, apply...)
		const kind = "validatingadmissionpolicy.admissionregistration.k8s.io/"
		const binding = "validatingadmissionpolicybinding.admissionregistration.k8s.io/"
		Expect(strings.Fields(kubectl(ctx, "", "get", all, "-l", ours, "-o", "name"))).To(ConsistOf(
			kind+"metalaw-serverclaim", kind+"metalaw-bundle-default-serverclaim",
			binding+"metalaw-serverclaim", binding+"metalaw-bundle-default-serverclaim"))
	})
})
