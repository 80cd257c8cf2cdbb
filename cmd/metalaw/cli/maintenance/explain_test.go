// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

// inForceWith is the default bundle as the revision in force, with windows, limits and waves of maintenance.
func inForceWith(t *testing.T, windows, limits, waves string) *policyv1alpha1.PolicyRevision {
	t.Helper()
	files, err := policies.Shipped("default")
	if err != nil {
		t.Fatal(err)
	}
	text := files["bundle.yaml"]
	at := bytes.Index(text, []byte("    windows: []"))
	if at < 0 {
		t.Fatal("the bundle has another form")
	}
	files["bundle.yaml"] = append(text[:at:at], []byte("    windows: "+windows+"\n    limits: "+limits+"\n    waves: "+waves+"\n")...)
	content, err := files.Pack()
	if err != nil {
		t.Fatal(err)
	}
	r := &policyv1alpha1.PolicyRevision{ObjectMeta: metav1.ObjectMeta{Name: "fleet-3"}}
	r.Spec.Content, r.Spec.Digest = content, files.Digest()
	r.Status.Conditions = []metav1.Condition{{Type: policyv1alpha1.ConditionActive, Status: metav1.ConditionTrue}}
	return r
}

// atNight is a window from ten in the evening; noon is outside.
const atNight = `[{name: nights, opens: "0 22 * * *", lasts: 8h, zone: UTC}]`

func boots(owner types.UID, state v1alpha1.ServerBootConfigurationState) *v1alpha1.ServerBootConfiguration {
	b := &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "a",
		OwnerReferences: []metav1.OwnerReference{{UID: owner, Controller: new(true)}}}}
	b.Status.State = state
	return b
}

func TestAMaintenanceIsExplained(t *testing.T) {
	asksMuch := func(m *v1alpha1.ServerMaintenance) {
		m.Spec.Policy, m.Spec.Priority = "Enforced", 10
		annotated("metal.ironcore.dev/maintenance-reason", "BIOS 2.9", "policy.metalaw.dev/expected-duration", "45m",
			"policy.metalaw.dev/maker", `{"username":"jane"}`)(m)
	}
	inShop := func(m *v1alpha1.ServerMaintenance) { m.Namespace = "shop" }
	const deletes = "its maker deletes it: kubectl delete servermaintenance -n ops a"
	for name, c := range map[string]struct {
		objects []client.Object
		denied  []string
		want    string
	}{
		"that waits for an approval": {[]client.Object{node1(), web("metal.ironcore.dev/maintenance-needed", "true"), inForceWith(t, "[]", "[]", "[]"),
			aMaintenance("a", waiting, askedOf("c1"), booting, asksMuch), aMaintenance("b", waiting)}, nil, `Maintenance ops/a is Pending since 10m (WaitsForApproval)

Asks for:    server node-1, policy Enforced, priority 10; boot of registry.example/flash:1 with Ignition of Secret flash-ignition; power On; light Blinking; for about 45m
Because:     BIOS 2.9
Granted:     no, since 2m (WaitsForApproval): claim shop/web has not approved
In the way:  ServerNotReady: No maintenance begins on the server now: its lifecycle has not begun.
In the way:  WaitsForApproval: The holder of claim shop/web is to approve by label metal.ironcore.dev/maintenance-approved.
Server:      node-1 is Reserved, power On
Beside it:   ops/b: WaitsForApproval: claim shop/web has not approved (OwnerApproval, priority 0)
Claim:       shop/web holds the server
Consent:     its holder was asked 8m ago; it has not approved
Maker:       jane; it takes maintain, enforce, boot-maintenance on servers (ClusterRole metalaw-maintainer, metalaw-maintenance-enforcer, metalaw-maintenance-booter)
Window:      none of policy fleet-3 covers the server, so it is always open
Ends:        ` + deletes + "\n"},
		"that waits behind another one, with an old approval": {[]client.Object{node1(handedTo("h", "u-h")), web(approvedLabel, "true"), inForceWith(t, atNight, "[]", "[]"),
			aMaintenance("a", in("Pending"), says("Granted", "False", "ServerHeld", "ops/h holds it")), aMaintenance("h", granted)}, nil, `Maintenance ops/a is Pending since 10m (ServerHeld)

Asks for:    server node-1, policy OwnerApproval, priority 0
Granted:     no, since 2m (ServerHeld): ops/h holds it
In the way:  ServerHeld: Maintenance ops/h holds the server. This one waits until it ends.
In the way:  ServerNotReady: No maintenance begins on the server now: its lifecycle has not begun.
In the way:  ApprovalOlder: The approval of claim shop/web is older than this maintenance. Take it away, and approve anew.
In the way:  WindowClosed: Window nights is closed and opens at 2026-01-31T22:00Z.
Server:      node-1 is Maintenance, power On
Held by:     ops/h, InMaintenance since 5m; ServerGranted: approved by claim shop/web
Claim:       shop/web holds the server
Consent:     its holder was not asked yet; it bears label metal.ironcore.dev/maintenance-approved=true, which does not cover this maintenance unless the policy has approval: PerClaim
Maker:       not recorded by admission, so it counts as OwnerApproval; it takes maintain on servers (ClusterRole metalaw-maintainer)
Window:      nights is closed; it opens at 2026-01-31T22:00:00Z
Ends:        ` + deletes + "\n"},
		"that holds its server": {[]client.Object{node1(handedTo("a", "u-a"), unclaimed, func(s *v1alpha1.Server) { s.Status.State = "Maintenance" }), boots("u-a", "Ready"),
			aMaintenance("a", granted, booting, says("Served", "True", "Served", "the machine is On"), says("Overdue", "True", "Overdue", "1h was expected"))}, nil,
			`Maintenance ops/a is InMaintenance since 5m (Overdue)

Asks for:    server node-1, policy OwnerApproval, priority 0; boot of registry.example/flash:1 with Ignition of Secret flash-ignition; power On; light Blinking
Granted:     yes, since 2m (ServerGranted): approved by claim shop/web
Served:      yes, since 2m (Served): the machine is On
Overdue:     yes, since 2m (Overdue): 1h was expected
Server:      node-1 is Maintenance, power On
Consent:     no claim holds the server
Maker:       not recorded by admission, so it counts as OwnerApproval; it takes maintain on servers (ClusterRole metalaw-maintainer)
Boot:        configuration ops/a is Ready
Ends:        its maker deletes it when the work is done: kubectl delete servermaintenance -n ops a
`},
		"that found a boot configuration of its name": {[]client.Object{node1(handedTo("a", "u-a"), unclaimed), boots("u-other", ""),
			aMaintenance("a", granted, booting, in("Failed"), says("Served", "False", "BootFailed", "ops/a has another owner"))}, nil,
			`Maintenance ops/a is Failed since 5m (BootFailed)

Asks for:    server node-1, policy OwnerApproval, priority 0; boot of registry.example/flash:1 with Ignition of Secret flash-ignition; power On; light Blinking
Granted:     yes, since 2m (ServerGranted): approved by claim shop/web
Served:      no, since 2m (BootFailed): ops/a has another owner
Server:      node-1 is Available, power On
Consent:     no claim holds the server
Maker:       not recorded by admission, so it counts as OwnerApproval; it takes maintain on servers (ClusterRole metalaw-maintainer)
Boot:        configuration ops/a is not answered by the boot operator yet; another object owns it, and the manager never changes it
Ends:        it failed and keeps its server until its maker deletes it: kubectl delete servermaintenance -n ops a
`},
		"that is aborted": {[]client.Object{node1(handedTo("a", "u-a")), web(), aMaintenance("a", granted, booting, askedOf("c1"),
			annotated(v1alpha1.AbortAnnotation, "wrong image"), says("Served", "False", "Ending", "the machine shuts down"))}, nil,
			`Maintenance ops/a is Ending since 5m (Ending)

Asks for:    server node-1, policy OwnerApproval, priority 0; boot of registry.example/flash:1 with Ignition of Secret flash-ignition; power On; light Blinking
Granted:     yes, since 2m (ServerGranted): approved by claim shop/web
Served:      no, since 2m (Ending): the machine shuts down
Server:      node-1 is Maintenance, power On
Claim:       shop/web holds the server
Consent:     its holder was asked 8m ago; it has not approved
Maker:       not recorded by admission, so it counts as OwnerApproval; it takes maintain, boot-maintenance on servers (ClusterRole metalaw-maintainer, metalaw-maintenance-booter)
Aborted:     wrong image
Ends:        it ends when the machine is off: its operating system is asked to shut down, and the power is never cut; --force-off allows that
`},
		"that is over, and whose server is not back yet": {[]client.Object{node1(unclaimed), aMaintenance("a", granted, deleted,
			says("Served", "False", "CheckFails", "back-on: the power is Off"))}, nil, `Maintenance ops/a is Ending since 5m (CheckFails)

Asks for:    server node-1, policy OwnerApproval, priority 0
Granted:     yes, since 2m (ServerGranted): approved by claim shop/web
Served:      no, since 2m (CheckFails): back-on: the power is Off
Server:      node-1 is Available, power On
Consent:     no claim holds the server
Maker:       not recorded by admission, so it counts as OwnerApproval; it takes maintain on servers (ClusterRole metalaw-maintainer)
Ends:        it is over and holds no server; the object goes once the check of the policy holds, or its time is over
`},
		"to a tenant, who may see no server": {[]client.Object{node1(), web(), aMaintenance("a", inShop, waiting, askedOf("c1"))}, []string{"servers", "all servermaintenances"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := "ops"
			if c.want == "" {
				namespace, c.want = "shop", tenantSees
			}
			e, err := explain(t.Context(), cluster(t, c.denied, c.objects...), types.NamespacedName{Namespace: namespace, Name: "a"}, noon)
			if err != nil {
				t.Fatal(err)
			}
			term, out := screen()
			e.text(term)
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
		})
	}
}

const tenantSees = `Maintenance shop/a is Pending since 10m (WaitsForApproval)

Asks for:    server node-1, policy OwnerApproval, priority 0
Granted:     no, since 2m (WaitsForApproval): claim shop/web has not approved
Claim:       shop/web holds the server
Consent:     its holder was asked 8m ago; it has not approved
Maker:       not recorded by admission, so it counts as OwnerApproval
Ends:        its maker deletes it: kubectl delete servermaintenance -n shop a
note: you cannot see the Server node-1 (forbidden: User "tina" cannot get resource "servers" in API group "metal.ironcore.dev" at the cluster scope; it takes the verb "get" on servers.metal.ironcore.dev; the ClusterRole metalaw-fleet-viewer has it)
note: maintenances of other namespaces are not known to you (forbidden: User "tina" cannot list resource "servermaintenances" in API group "metal.ironcore.dev" at the cluster scope; it takes the verb "list" on servermaintenances.metal.ironcore.dev; the ClusterRole metalaw-fleet-viewer has it)
`

func TestAnExplanationInJSONHasLists(t *testing.T) {
	e, err := explain(t.Context(), cluster(t, nil, aMaintenance("a")), types.NamespacedName{Namespace: "ops", Name: "a"}, noon)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(e)
	want := `{"namespace":"ops","name":"a","server":"node-1","policy":"OwnerApproval","priority":0,"state":"-","since":"2026-01-31T11:50:00Z",` +
		`"created":"2026-01-31T11:50:00Z","asks":{},"others":[],"rights":[],` +
		`"ends":"its maker deletes it: kubectl delete servermaintenance -n ops a","notes":["there is no Server node-1"]}`
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Error(diff, err)
	}
}
