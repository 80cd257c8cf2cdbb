// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestAServerThatCameUpIsNotForgottenWhereItsClaimIsWrittenMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.addClaim(aClaim("claim"))
	w.deliver(9)
	w.must(w.pass())
	w.addServer(aServer("a"))
	c := w.claims()[0]
	c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionBound, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonPending}}
	w.must(w.api.Status().Update(t.Context(), c))
	w.shown(c)
	w.deliver(9)
	w.must(w.pass())
	if got := w.onServers(); len(got) != 1 {
		t.Errorf("%v are written", got)
	}
}

func TestAServerIsTakenBackThatWasWrittenForAClaimWhichNamesItAndIsGone(t *testing.T) {
	w := newWorld(t)
	w.addServer(aServer("a"))
	w.addClaim(aClaim("claim", naming("a")))
	w.deliver(9)
	w.before = func(client.Object) error { // the claim goes, and the watch shows it, while the server is being written
		w.before = nil
		w.endClaim(w.claims()[0])
		w.deliver(9)
		return nil
	}
	w.must(w.pass())
	w.deliver(9)
	w.must(w.pass())
	if got := w.onServers(); got != nil {
		t.Errorf("%v stay written", got)
	}
}
