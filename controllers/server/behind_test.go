// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/redfish"
)

func TestAServerInAStateThatIsDroppedSaysSo(t *testing.T) {
	good, err := defaultBundle()
	if err != nil {
		t.Fatal(err)
	}
	attic := variant(t, "2.0.0", "  Observing:\n", "  Attic:\n    means: Nobody comes here.\n    stable: true\n    exits:\n"+
		"    - {rule: Down, to: Initial, when: parkAsked}\n\n  Observing:\n")
	const behind = "PolicyBehind StateDropped: policy revision %s neither defines nor migrates state %s, so the server stays under %s; " +
		"promote a version that says migrate: {%[2]s: ...}"
	for name, c := range map[string]struct {
		state          v1alpha1.ServerState
		pinned, target *bundle.Bundle
		want           string
	}{
		"in which it rests":          {"Attic", attic, good, fmt.Sprintf(behind, good.Revision.Name, "Attic", attic.Revision.Name)},
		"which is no news elsewhere": {v1alpha1.StateAvailable, attic, good, ""},
		"in which it is halted": {v1alpha1.StateCleanup, halting(t), without(t, "3.0.0", ""),
			fmt.Sprintf(behind, without(t, "3.0.0", "").Revision.Name, "Cleanup", halting(t).Revision.Name)},
		"which it passes through": {v1alpha1.StateCleanup, good, without(t, "3.0.0", ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				change := []func(*v1alpha1.Server){pinnedTo(c.pinned)}
				if c.state == v1alpha1.StateCleanup {
					change = append(change, toWipe)
				}
				w := inWorld(t, newMachine(redfish.PowerOff), serverIn(c.state, change...), dirtyInventory(&policyv1alpha1.Holder{Namespace: "shop", Name: "web", UID: "uid-web"}))
				if c.state != v1alpha1.StateCleanup {
					w = inWorld(t, newMachine(redfish.PowerOff), serverIn(c.state, change...))
				}
				r := &rules{target: c.target, pinned: map[string]*bundle.Bundle{c.pinned.Revision.Name: c.pinned, c.target.Revision.Name: c.target}}
				w.manager.Bundles = r
				w.manager.run(10 * time.Second)
				got := ""
				if s := meta.FindStatusCondition(w.server().Status.Conditions, v1alpha1.ConditionPolicyBehind); s != nil {
					got = s.Type + " " + s.Reason + ": " + s.Message
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				r.target = c.pinned // it is gone back to
				w.manager.run(time.Minute)
				if c := meta.FindStatusCondition(w.server().Status.Conditions, v1alpha1.ConditionPolicyBehind); c != nil {
					t.Errorf("it is told still: %s", c.Message)
				}
			})
		})
	}
}
