// SPDX-License-Identifier: Apache-2.0

package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// theirs is an object as a client of metal-operator sends it.
func theirs(kind, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: kind})
	o.SetName(name)
	return o
}

var _ = Describe("What clients of metal-operator write", func() {
	It("is accepted: a BMC without an address is not asked, and says so", func(ctx SpecContext) {
		r := newRig(ctx)
		bmc := theirs("BMC", "no-address", map[string]any{
			"access":       map[string]any{"macAddress": "b0:7b:25:00:0a:01", "ip": nil},
			"bmcSecretRef": map[string]any{"name": "none"}, "protocol": map[string]any{"name": "Redfish", "port": int64(443)}})
		Expect(admin.Create(ctx, bmc)).To(Succeed())
		r.start(ctx)
		Eventually(bmcCondition(ctx, "no-address", "Ready")).Should(Equal("False/EndpointMissing"))
	})

	It("is kept: taints of one key and effect by two appliers, and words of the BMC for the state of its parts", func(ctx SpecContext) {
		const name = "two-values"
		server := theirs("Server", name, map[string]any{"systemUUID": "38947555-7742-3448-3784-823347823899"})
		Expect(admin.Create(ctx, server)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(admin.Delete(ctx, server))).To(Succeed()) })
		stored := &v1alpha1.Server{}
		for manager, value := range map[string]string{"one": "psu", "other": "fan"} {
			applied := theirs("Server", name, map[string]any{"systemUUID": "38947555-7742-3448-3784-823347823899",
				"taints": []any{map[string]any{"key": "example.com/broken", "value": value, "effect": "NoBind"}}})
			Expect(admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(manager),
				client.ForceOwnership)).To(Succeed())
		}
		Expect(admin.Get(ctx, types.NamespacedName{Name: name}, stored)).To(Succeed())
		Expect(stored.Spec.Taints).To(ConsistOf(
			v1alpha1.Taint{Key: "example.com/broken", Value: "psu", Effect: v1alpha1.TaintEffectNoBind},
			v1alpha1.Taint{Key: "example.com/broken", Value: "fan", Effect: v1alpha1.TaintEffectNoBind}))

		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"storages":[{"name":"a","state":"StandbyOffline",`+
			`"drives":[{"name":"d","state":"Quiesced"}],"volumes":[{"name":"v","state":"InTest"}]}]}}`))
		Expect(admin.Status().Patch(ctx, stored, patch)).To(Succeed())
		metav1.SetMetaDataAnnotation(&stored.ObjectMeta, "example.com/seen", "yes")
		Expect(admin.Update(ctx, stored)).To(Succeed(), "later writes pass too")
		Expect(string(stored.Status.Storages[0].State)).To(Equal("StandbyOffline"))
	})
})
