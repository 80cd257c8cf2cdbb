// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// checkKept is what must hold between passes: a server is assumed for a claim only where it is kept for its gang, or a write of it is
// in doubt.
func (w *world) checkKept() {
	w.t.Helper()
	known := map[string]types.UID{}
	for _, g := range w.s.gangs {
		maps.Copy(known, g.kept)
	}
	for uid, server := range w.s.doubts {
		known[server] = uid
	}
	if diff := cmp.Diff(known, w.s.fleet.Assumed()); diff != "" {
		w.t.Fatalf("servers are assumed that nobody keeps, or kept and not assumed: %s", diff)
	}
}

// waitingGang has so many servers free for a gang of three that has waited for long, and enough that are not free.
func waitingGang(t *testing.T, free int) *world {
	w := gangOfThree(t, free)
	for i := range 3 {
		w.addServer(aServer(fmt.Sprintf("t-busy%d", i), inState("Cleanup")))
	}
	w.now = w.now.Add(gangPatience)
	w.deliver(len(w.events))
	w.tick()
	return w
}

func TestWhatIsKeptForAGangIsReleasedThoughItIsWokenLate(t *testing.T) {
	w := waitingGang(t, 1)
	if got := len(w.s.fleet.Assumed()); got != 1 {
		t.Fatalf("%d servers are kept", got)
	}
	r := w.s.newRun(w.now) // a pass that has looked at the gangs already
	w.addServer(aServer("s9"))
	w.deliver(9)
	r.serveGang(context.Background(), gangKey{"ns", "db"})
	w.checkKept()
	want := map[string]types.UID{"s0": "uid-db-0", "s9": "uid-db-1"}
	if diff := cmp.Diff(want, w.s.fleet.Assumed()); diff != "" {
		t.Error(diff)
	}
}
