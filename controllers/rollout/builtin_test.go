// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheRevisionBuiltIntoANewerManagerGovernsOnlyWhenItIsPromoted(t *testing.T) {
	w := newCluster(t)
	for _, step := range []struct{ do, want, message string }{
		{"", "default Embedded InForce", "servers adopt this revision; it is built in, and no other was promoted"},
		{"upgrade", "default Embedded InForce, default-2 Draft NotPromoted", "servers adopt this revision; it was built into the version of the manager " +
			"that governed first, and no other was promoted. default-2 is built into this version, and governs only when an operator promotes it"},
		{"default-2=Active", "default Superseded Superseded, default-2 Active InForce", "another revision was promoted later"},
	} {
		if step.do == "upgrade" {
			w.embedded = "default-2"
			w.store("default-2")
		} else {
			w.label(step.do)
		}
		w.look()
		if diff := cmp.Diff([]string{step.want, step.message}, []string{w.shows(), message(w.revision("default"))}); diff != "" {
			t.Errorf("after %q (-want +got)\n%s", step.do, diff)
		}
	}
	if first, second := w.revision("default").Promotion, w.revision("default-2").Promotion; first != 1 || second != 2 {
		t.Errorf("the promotions are %d and %d", first, second)
	}
}

func TestAPromotionComesAfterThatOfARevisionThatIsGone(t *testing.T) {
	w := newCluster(t)
	w.label("1.0.0=Active")
	w.look()
	w.label("1.0.0=Active 1.1.0=Active")
	w.apply(Decide(Look{Now: w.now, Embedded: "default", Heads: w.heads, Revisions: w.revisions, Replicas: w.replicas, Last: 7}))
	if got := w.revision("1.1.0").Promotion; got != 8 {
		t.Errorf("it is promotion %d", got)
	}
}

func TestAPromotionThatWaitedBeforeTheBuiltInRevisionWasNumberedComesAfterIt(t *testing.T) {
	w := newCluster(t)
	w.manager("m2", "1.0.0")
	w.label("1.0.0=Active")
	w.look()
	w.revision("default").Promotion, w.revision("default").Status.Promotion = 0, 0 // a manager that numbers none
	w.revision("1.0.0").Status.Promotion = 1
	w.look()
	w.manager("m2")
	w.look()
	if got := w.shows(); got != "default Superseded Superseded, 1.0.0 Active InForce" {
		t.Error(got)
	}
}

func TestAManagerThatIsStoppedBetweenTwoPromotionsLeavesNoneWithoutItsNumber(t *testing.T) {
	w := newCluster(t)
	w.label("fleet=Active")
	o := w.decide()
	o.Writes = o.Writes[:1]
	w.apply(o)
	w.look()
	first, second := w.revision("default").Promotion, w.revision("fleet").Promotion
	if got := w.shows(); got != "default Superseded Superseded, fleet Active InForce" || first != 1 || second != 2 {
		t.Errorf("%s, by promotions %d and %d", got, first, second)
	}
}
