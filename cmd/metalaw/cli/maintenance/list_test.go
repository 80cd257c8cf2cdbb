// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

func deleted(m *v1alpha1.ServerMaintenance) {
	at := ago(time.Minute)
	m.DeletionTimestamp, m.Finalizers = &at, []string{v1alpha1.FinalizerServerMaintenance}
}

// several are one maintenance of each state.
func several() []v1alpha1.ServerMaintenance {
	enforced := func(m *v1alpha1.ServerMaintenance) { m.Spec.Policy = "Enforced" }
	return []v1alpha1.ServerMaintenance{
		*aMaintenance("waits", waiting),
		*aMaintenance("new"),
		*aMaintenance("serves", granted, enforced, says("Served", "True", "Served", "")),
		*aMaintenance("boots", granted, says("Served", "False", "BootFailed", "the boot operator cannot prepare flash"), says("Overdue", "True", "Overdue", "")),
		*aMaintenance("late", granted, says("Served", "True", "Served", ""), says("Overdue", "True", "Overdue", "45m were expected")),
		*aMaintenance("goes", granted, deleted, says("Served", "False", "Ending", "the machine shuts down")),
		*aMaintenance("stopped", in("Failed"), says("Granted", "False", "Aborted", "wrong image")),
		*aMaintenance("long", in("Pending"), says("Granted", "False", "LimitReached", strings.Repeat("x", 200))),
	}
}

func TestMaintenancesAreListedWithWhyTheyWait(t *testing.T) {
	const head = "NAMESPACE   NAME"
	for name, c := range map[string]struct {
		all     []v1alpha1.ServerMaintenance
		waiting bool
		want    string
	}{
		"none, in the namespace that was looked at": {nil, false, "no maintenance matches in namespace ops; -A lists those of all namespaces\n"},
		"one of each state": {several(), false, head + `      SERVER   POLICY          STATE           SINCE   WHY
ops         boots     node-1   OwnerApproval   InMaintenance   5m      BootFailed: the boot operator cannot prepare flash
ops         goes      node-1   OwnerApproval   Ending          5m      Ending: the machine shuts down
ops         late      node-1   OwnerApproval   InMaintenance   5m      Overdue: 45m were expected
ops         long      node-1   OwnerApproval   Pending         10m     LimitReached: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...
ops         new       node-1   OwnerApproval   -               10m     the manager has not answered
ops         serves    node-1   Enforced        InMaintenance   5m      Served
ops         stopped   node-1   OwnerApproval   Failed          10m     Aborted: wrong image
ops         waits     node-1   OwnerApproval   Pending         10m     WaitsForApproval: claim shop/web has not approved
`},
		"those that wait": {several(), true, head + `    SERVER   POLICY          STATE     SINCE   WHY
ops         long    node-1   OwnerApproval   Pending   10m     LimitReached: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...
ops         new     node-1   OwnerApproval   -         10m     the manager has not answered
ops         waits   node-1   OwnerApproval   Pending   10m     WaitsForApproval: claim shop/web has not approved
`},
	} {
		t.Run(name, func(t *testing.T) {
			term, out := screen()
			showList(term, "ops", entriesOf(c.all, c.waiting), terminal.OutputAs(terminal.Text))
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
		})
	}
}

func TestAListInJSONIsOneDocument(t *testing.T) {
	term, out := screen()
	showList(term, "", entriesOf([]v1alpha1.ServerMaintenance{*aMaintenance("waits", waiting)}, false), terminal.OutputAs(terminal.AsJSON))
	const want = `{
  "maintenances": [
    {
      "namespace": "ops",
      "name": "waits",
      "server": "node-1",
      "policy": "OwnerApproval",
      "priority": 0,
      "state": "Pending",
      "since": "2026-01-31T11:50:00Z",
      "reason": "WaitsForApproval",
      "message": "claim shop/web has not approved"
    }
  ]
}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}

func TestAPauseShowsWhatIsUnderWay(t *testing.T) {
	selector, err := labels.Parse("rack=r1")
	if err != nil {
		t.Fatal(err)
	}
	racked := func(s *v1alpha1.Server) { s.Labels = map[string]string{"rack": "r1"} }
	for name, c := range map[string]struct {
		server *v1alpha1.Server
		denied []string
		want   string
	}{
		"on a server that it covers": {node1(racked, handedTo("serves", "u-serves")), nil, `
Under way, and they keep their servers:
NAMESPACE   NAME     SERVER   SINCE   STATE
ops         serves   node-1   5m      InMaintenance
`},
		"on no server that it covers": {node1(handedTo("serves", "u-serves")), nil, "No maintenance holds one of these servers now.\n"},
		"on no server":                {node1(racked), nil, "No maintenance holds one of these servers now.\n"},
		"but not to a reader without rights": {node1(racked), []string{"servermaintenances"}, `note: which maintenances are under way is not known to you (forbidden: ` +
			`User "tina" cannot list resource "servermaintenances" in API group "metal.ironcore.dev" at the cluster scope; ` +
			`it takes the verb "list" on servermaintenances.metal.ironcore.dev; the ClusterRole metalaw-fleet-viewer has it)` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			term, out := screen()
			underWay(t.Context(), term, cluster(t, c.denied, c.server, aMaintenance("serves", granted)), selector)
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
		})
	}
}
