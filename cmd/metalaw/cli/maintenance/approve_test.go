// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

const (
	approvedLabel = "metal.ironcore.dev/maintenance-approved"
	oldApproval   = "metal.ironcore.dev/maintenance-approval"
)

func TestAnApprovalShowsFirstWhatItCovers(t *testing.T) {
	byCloud := labelled("app.kubernetes.io/managed-by", "cloud-provider-metal")
	inShop := func(m *v1alpha1.ServerMaintenance) { m.Namespace = "shop" }
	for name, c := range map[string]struct {
		objects []client.Object
		denied  []string
		dry     bool
		labels  map[string]string
		want    string
	}{
		"those that were asked": {[]client.Object{node1(), web(), aMaintenance("a", waiting, askedOf("c1")), aMaintenance("b", waiting, askedOf("c0")),
			aMaintenance("c", granted)}, nil, false, map[string]string{approvedLabel: "true"}, `Claim shop/web holds server node-1.

An approval covers:
NAMESPACE   NAME   POLICY          PRIORITY   WHY
ops         a      OwnerApproval   0          WaitsForApproval: claim shop/web has not approved

It does not cover these, unless the policy has approval: PerClaim:
NAMESPACE   NAME   POLICY          PRIORITY   WHY
ops         b      OwnerApproval   0          WaitsForApproval: claim shop/web has not approved

approved: claim shop/web has label metal.ironcore.dev/maintenance-approved=true
`},
		"without storing": {[]client.Object{node1(), web(), aMaintenance("a", waiting, askedOf("c1"))}, nil, true, map[string]string{}, `Claim shop/web holds server node-1.

An approval covers:
NAMESPACE   NAME   POLICY          PRIORITY   WHY
ops         a      OwnerApproval   0          WaitsForApproval: claim shop/web has not approved

dry run: claim shop/web would get label metal.ironcore.dev/maintenance-approved=true; nothing was stored
`},
		"and that the cloud controller may take it away": {[]client.Object{node1(), web(), aMaintenance("a", waiting, askedOf("c1")),
			aMaintenance("web", inShop, byCloud, granted)}, nil, false, map[string]string{approvedLabel: "true"}, `Claim shop/web holds server node-1.

An approval covers:
NAMESPACE   NAME   POLICY          PRIORITY   WHY
ops         a      OwnerApproval   0          WaitsForApproval: claim shop/web has not approved

approved: claim shop/web has label metal.ironcore.dev/maintenance-approved=true
warning: a cloud controller mirrors labels between Nodes and the claims of namespace shop. It takes the approval off the claim unless the Node has it. ` +
			`Set it there: kubectl label node NODE metal.ironcore.dev/maintenance-approved=true
`},
		"to a reader who may not list all namespaces": {[]client.Object{node1(), web(), aMaintenance("a", waiting, askedOf("c1"))}, []string{"all servermaintenances"},
			false, map[string]string{approvedLabel: "true"}, `Claim shop/web holds server node-1.

An approval covers:
NAMESPACE   NAME   POLICY          PRIORITY   WHY
ops         a      OwnerApproval   0          WaitsForApproval: claim shop/web has not approved

approved: claim shop/web has label metal.ironcore.dev/maintenance-approved=true
note: maintenances of other namespaces are not known to you (forbidden: User "tina" cannot list resource "servermaintenances" in API group ` +
				`"metal.ironcore.dev" at the cluster scope; it takes the verb "list" on servermaintenances.metal.ironcore.dev; the ClusterRole metalaw-fleet-viewer has it)
`},
		"not where the claim approved before": {[]client.Object{node1(), web(oldApproval, "yes"), aMaintenance("a", waiting, askedOf("c1"))}, nil, false,
			map[string]string{oldApproval: "yes"}, `Claim shop/web holds server node-1.

An approval covers:
NAMESPACE   NAME   POLICY          PRIORITY   WHY
ops         a      OwnerApproval   0          WaitsForApproval: claim shop/web has not approved

unchanged: the claim bears an approval already: label metal.ironcore.dev/maintenance-approval=yes
`},
		"not where an older approval stands": {[]client.Object{node1(), web(approvedLabel, "true"), aMaintenance("a", waiting)}, nil, false,
			map[string]string{approvedLabel: "true"}, `Claim shop/web holds server node-1.

It does not cover these, unless the policy has approval: PerClaim:
NAMESPACE   NAME   POLICY          PRIORITY   WHY
ops         a      OwnerApproval   0          WaitsForApproval: claim shop/web has not approved

refused: the claim bears an approval (label metal.ironcore.dev/maintenance-approved=true) that is older than ops/a; take it away, and approve again ` +
				`once the manager has asked: kubectl label serverclaim -n shop web metal.ironcore.dev/maintenance-approved-
`},
		"not where nothing was asked": {[]client.Object{node1(), web(), aMaintenance("a", in("Pending"), says("Granted", "False", "NothingGrants", "--maintenance=off"))},
			nil, false, map[string]string{}, `Claim shop/web holds server node-1.

It does not cover these, unless the policy has approval: PerClaim:
NAMESPACE   NAME   POLICY          PRIORITY   WHY
ops         a      OwnerApproval   0          NothingGrants: --maintenance=off

refused: the manager has not asked the holder for ops/a, and an approval now would not cover it; it says: NothingGrants: --maintenance=off
`},
		"not where it holds the server": {[]client.Object{node1(handedTo("a", "u-a")), web(), aMaintenance("a", granted, askedOf("c1"))}, nil, false, map[string]string{},
			`Claim shop/web holds server node-1.

refused: ops/a is InMaintenance and waits for no approval
`},
	} {
		t.Run(name, func(t *testing.T) {
			api := cluster(t, c.denied, c.objects...)
			a, err := readApproval(t.Context(), api, types.NamespacedName{Namespace: "ops", Name: "a"})
			if err != nil {
				t.Fatal(err)
			}
			term, out := screen()
			a.before(term)
			if err := a.store(t.Context(), api, "", c.dry); err != nil {
				t.Fatal(err)
			}
			a.after(term)
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
			if diff := cmp.Diff(c.labels, claimNow(t, api).Labels); diff != "" && len(c.labels) > 0 {
				t.Errorf("labels: - want, + got:\n%s", diff)
			}
		})
	}
}

func claimNow(t *testing.T, api client.Client) *v1alpha1.ServerClaim {
	t.Helper()
	claim := &v1alpha1.ServerClaim{}
	if err := api.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, claim); err != nil {
		t.Fatal(err)
	}
	return claim
}

func TestAnApprovalThatCannotBe(t *testing.T) {
	inShop := func(m *v1alpha1.ServerMaintenance) { m.Namespace = "shop" }
	for name, c := range map[string]struct {
		objects []client.Object
		denied  []string
		want    string
	}{
		"for no maintenance": {nil, nil, "there is no ServerMaintenance a in namespace shop; -n names another namespace"},
		"for a server without a claim": {[]client.Object{node1(unclaimed), aMaintenance("a", inShop, waiting)}, nil,
			"no claim holds server node-1, so the maintenance needs no approval; metalaw explain maintenance a -n shop says what it waits for"},
		"for another claim of the name": {[]client.Object{node1(func(s *v1alpha1.Server) { s.Annotations[v1alpha1.ClaimUIDAnnotation] = "c9" }), web(), aMaintenance("a", inShop, waiting)},
			nil, "the claim that holds server node-1 is not known: claim shop/web is not the one that holds the server: the UIDs differ"},
		"for a claim that vanished": {[]client.Object{node1(), aMaintenance("a", inShop, waiting)}, nil, "the claim that holds server node-1 does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readApproval(t.Context(), cluster(t, c.denied, c.objects...), types.NamespacedName{Namespace: "shop", Name: "a"})
			if err == nil || err.Error() != c.want {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestATenantApprovesWithoutSeeingServers(t *testing.T) {
	inShop := func(m *v1alpha1.ServerMaintenance) { m.Namespace = "shop" }
	api := cluster(t, []string{"servers", "all servermaintenances"}, node1(), web(), aMaintenance("a", inShop, waiting, askedOf("c1")))
	a, err := readApproval(t.Context(), api, types.NamespacedName{Namespace: "shop", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.store(t.Context(), api, "drained", false); err != nil {
		t.Fatal(err)
	}
	claim := claimNow(t, api)
	if claim.Labels[approvedLabel] != "true" || claim.Annotations["policy.metalaw.dev/approval-reason"] != "drained" {
		t.Errorf("labels %v, annotations %v", claim.Labels, claim.Annotations)
	}
}

func TestAnApprovalIsNotStoredOnAClaimThatChanged(t *testing.T) {
	api := cluster(t, nil, node1(), web(), aMaintenance("a", waiting, askedOf("c1")))
	a, err := readApproval(t.Context(), api, types.NamespacedName{Namespace: "ops", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	claim := claimNow(t, api)
	metav1.SetMetaDataLabel(&claim.ObjectMeta, "by", "somebody")
	if err := api.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	const want = "claim shop/web changed meanwhile, and nothing was stored; look at it again"
	if err := a.store(t.Context(), api, "", false); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestACloudControllerIsKnownByWhatItWrote(t *testing.T) {
	written := web()
	written.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "metal-cloud-controller-manager"}}
	if !mirrored(written, nil) || mirrored(web(), []v1alpha1.ServerMaintenance{*aMaintenance("a", labelled("app.kubernetes.io/managed-by", "cloud-provider-metal"))}) {
		t.Error("a maintenance of another namespace counts, or a writer of the claim does not")
	}
}
