// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// longName is as long as admission records one, with the digest behind it; its letters have three bytes each.
var longName = strings.Repeat("界", 253) + "_sha256:" + strings.Repeat("0", 64)

func TestPromotion(t *testing.T) {
	const builtIn = "default Superseded Superseded"
	for name, c := range map[string]struct {
		// Each step sets the labels that there are, or does what its word says; then somebody looks.
		steps []string
		want  string
	}{
		"a cluster without bundles is governed by the built-in one": {
			[]string{""}, "default Embedded InForce"},
		"a draft, a shadow and a canary are not in force": {
			[]string{"1.0.0=Draft 1.1.0=Shadow 2.0.0=Canary"},
			"default Embedded InForce, 1.0.0 Draft NotPromoted, 1.1.0 Shadow NotPromoted, 2.0.0 Canary NotPromoted"},
		"a bundle that is labelled active comes into force": {
			[]string{"1.0.0=Active"}, builtIn + ", 1.0.0 Active InForce"},
		"the latest promotion wins whatever its version": {
			[]string{"2.0.0=Active", "2.0.0=Active 1.0.0=Active"}, builtIn + ", 2.0.0 Superseded Superseded, 1.0.0 Active InForce"},
		"of two new ones at once the higher version stays": {
			[]string{"1.1.0=Active 1.10.0=Active"}, builtIn + ", 1.1.0 Draft Conflict, 1.10.0 Active InForce"},
		"of two at once the incumbent stays": {
			[]string{"1.0.0=Active", "1.0.0=Shadow", "1.0.0=Active 2.0.0=Active"}, builtIn + ", 1.0.0 Active InForce, 2.0.0 Draft Conflict"},
		"a conflict lasts while the label stays": {
			[]string{"1.1.0=Active 1.10.0=Active", "1.1.0=Active 1.10.0=Active", "1.1.0=Active 1.10.0=Draft"},
			builtIn + ", 1.1.0 Draft Conflict, 1.10.0 Active InForce"},
		"a conflict ends when the label is set anew": {
			[]string{"1.1.0=Active 1.10.0=Active", "1.1.0=Draft 1.10.0=Active", "1.1.0=Active 1.10.0=Active"},
			builtIn + ", 1.1.0 Active InForce, 1.10.0 Superseded Superseded"},
		"both labels swapped in one look": {
			[]string{"1.0.0=Active 1.1.0=Shadow", "1.0.0=Shadow 1.1.0=Active"}, builtIn + ", 1.0.0 Shadow NotPromoted, 1.1.0 Active InForce"},
		"both labels swapped, the new one first": {
			[]string{"1.0.0=Active 1.1.0=Shadow", "1.0.0=Active 1.1.0=Active", "1.0.0=Draft 1.1.0=Active"},
			builtIn + ", 1.0.0 Superseded Superseded, 1.1.0 Active InForce"},
		"both labels swapped, the old one first: it governs in between": {
			[]string{"1.0.0=Active 1.1.0=Shadow", "1.0.0=Shadow 1.1.0=Shadow"}, builtIn + ", 1.0.0 Active InForce, 1.1.0 Shadow NotPromoted"},
		"both labels swapped, the old one first: the new one follows": {
			[]string{"1.0.0=Active 1.1.0=Shadow", "1.0.0=Shadow 1.1.0=Shadow", "1.0.0=Shadow 1.1.0=Active"},
			builtIn + ", 1.0.0 Shadow NotPromoted, 1.1.0 Active InForce"},
		"a label that is applied again unchanged is no promotion": {
			[]string{"1.0.0=Active", "1.0.0=Active 1.1.0=Active", "1.0.0=Active 1.1.0=Active"},
			builtIn + ", 1.0.0 Superseded Superseded, 1.1.0 Active InForce"},
		"going back is one relabel of the older head": {
			[]string{"1.0.0=Active 1.1.0=Shadow", "1.0.0=Shadow 1.1.0=Active", "1.0.0=Active 1.1.0=Active"},
			builtIn + ", 1.0.0 Active InForce, 1.1.0 Superseded Superseded"},
		"going back by a revert in Git, which deletes one and makes the other": {
			[]string{"1.0.0=Active", "1.1.0=Active", "1.0.0=Active"}, builtIn + ", 1.0.0 Active InForce, 1.1.0 Superseded Superseded"},
		"the label of the one in force taken away changes nothing": {
			[]string{"1.0.0=Active", "1.0.0=Draft"}, builtIn + ", 1.0.0 Active InForce"},
		"the one in force demoted, with an older one labelled active still, stays": {
			[]string{"1.0.0=Active", "1.0.0=Active 1.1.0=Active", "1.0.0=Active 1.1.0=Shadow"},
			builtIn + ", 1.0.0 Superseded Superseded, 1.1.0 Active InForce"},
		"the one in force demoted, then the older one labelled anew": {
			[]string{"1.0.0=Active", "1.0.0=Active 1.1.0=Active", "1.0.0=Active 1.1.0=Draft", "1.0.0=Shadow 1.1.0=Draft", "1.0.0=Active 1.1.0=Draft"},
			builtIn + ", 1.0.0 Active InForce, 1.1.0 Superseded Superseded"},
		"the ConfigMap of the one in force deleted changes nothing": {
			[]string{"1.0.0=Active", ""}, builtIn + ", 1.0.0 Active InForce"},
		"the ConfigMap of the one in force broken changes nothing": {
			[]string{"1.0.0=Active", "1.0.0!=Active", "1.0.0=Active"}, builtIn + ", 1.0.0 Active InForce"},
		"a broken head that is labelled active changes nothing": {
			[]string{"1.0.0=Active", "1.0.0=Active 1.1.0!=Active"}, builtIn + ", 1.0.0 Active InForce"},
		"a superseded head that was half-written for a while is not promoted by that": {
			[]string{"1.0.0=Active", "1.0.0=Active 1.1.0=Active", "1.0.0!=Active 1.1.0=Active", "1.0.0=Active 1.1.0=Active"},
			builtIn + ", 1.0.0 Superseded Superseded, 1.1.0 Active InForce"},
		"the same content under another ConfigMap's name is the same revision": {
			[]string{"1.0.0@a=Active", "1.0.0@b=Active", "1.0.0@a=Draft 1.0.0@b=Active"}, builtIn + ", 1.0.0 Active InForce"},
		"going back within one look, which sees the record alone": {
			[]string{"1.0.0=Active~jane-1", "1.0.0=Active~jane-1 1.1.0=Active~jane-2", "1.0.0=Active~jane-3 1.1.0=Active~jane-2"},
			builtIn + ", 1.0.0 Active InForce, 1.1.0 Superseded Superseded"},
		"also of somebody whose name takes all the room that a name has": {
			[]string{"1.0.0=Active~" + longName + "-1", "1.0.0=Active~" + longName + "-1 1.1.0=Active~jane-2",
				"1.0.0=Active~" + longName + "-3 1.1.0=Active~jane-2"},
			builtIn + ", 1.0.0 Active InForce, 1.1.0 Superseded Superseded"},
		"a conflict ends when the label is set anew within one look": {
			[]string{"1.1.0=Active~jane-1 1.10.0=Active~jane-1", "1.1.0=Active~jane-2 1.10.0=Active~jane-1"},
			builtIn + ", 1.1.0 Active InForce, 1.10.0 Superseded Superseded"},
		"a record that goes is no promotion": {
			[]string{"1.0.0=Active~jane-1", "1.0.0=Active~jane-1 1.1.0=Active~jane-2", "1.0.0=Active 1.1.0=Active~jane-2"},
			builtIn + ", 1.0.0 Superseded Superseded, 1.1.0 Active InForce"},
		"a second ConfigMap with the same content that is active still hides no rollback": {
			[]string{"1.0.0@a=Active 1.0.0@b=Active", "1.0.0@a=Active 1.0.0@b=Active 1.1.0=Active", "1.0.0@a=Active 1.0.0@b=Shadow 1.1.0=Active",
				"1.0.0@a=Active 1.0.0@b=Active 1.1.0=Active"}, builtIn + ", 1.0.0 Active InForce, 1.1.0 Superseded Superseded"},
		"nor does the rollback of one wake the other": {
			[]string{"1.0.0@a=Active 1.0.0@b=Active", "1.0.0@a=Active 1.0.0@b=Active 1.1.0=Active", "1.0.0@b=Active 1.1.0=Active"},
			builtIn + ", 1.0.0 Superseded Superseded, 1.1.0 Active InForce"},
		"the built-in bundle as a ConfigMap is promoted like any other": {
			[]string{"1.0.0=Active", "1.0.0=Active default=Active"}, "default Active InForce, 1.0.0 Superseded Superseded"},
		"what was promoted elsewhere governs nothing, and nor does the built-in one": {
			[]string{"1.0.0=Active", "1.0.0=Active 1.1.0=Active", "restore"},
			builtIn + ", 1.0.0 Superseded Superseded, 1.1.0 Superseded PromotionMissing"},
		"also where the ConfigMaps come one by one, without records": {
			[]string{"1.0.0=Active", "1.0.0=Active 1.1.0=Active", "", "restore", "1.0.0=Draft", "1.0.0=Draft 1.1.0=Draft"},
			builtIn + ", 1.0.0 Superseded Superseded, 1.1.0 Superseded PromotionMissing"},
		"also where they come with the records of their activation": {
			[]string{"1.0.0=Active", "1.0.0=Active 1.1.0=Active", "", "restore", "1.1.0=Active~jane-2+", "1.0.0=Active~jane-1+ 1.1.0=Active~jane-2+"},
			builtIn + ", 1.0.0 Superseded Superseded, 1.1.0 Superseded PromotionMissing"},
		"a label that was there at the first look after it is no promotion": {
			[]string{"1.0.0=Active 1.1.0=Active", "restore"}, builtIn + ", 1.0.0 Draft Conflict, 1.1.0 Superseded PromotionMissing"},
		"until one of them is promoted here": {
			[]string{"1.0.0=Active", "1.0.0=Active 1.1.0=Active", "", "restore", "1.0.0=Active~jane-1+ 1.1.0=Active~jane-2+",
				"1.0.0=Active~jane-3 1.1.0=Active~jane-2+"},
			builtIn + ", 1.0.0 Active InForce, 1.1.0 Superseded Superseded"},
		"or made anew, as by a revert in Git": {
			[]string{"1.0.0=Active", "1.0.0=Active 1.1.0=Active", "", "restore", "1.1.0=Active~jane-2+", "1.0.0=Active~jane-3 1.1.0=Active~jane-2+"},
			builtIn + ", 1.0.0 Active InForce, 1.1.0 Superseded Superseded"},
		"or the built-in one is, by a ConfigMap": {
			[]string{"1.0.0=Active", "", "restore", "default=Active~jane-3"}, "default Active InForce, 1.0.0 Superseded Superseded"},
		"a draft, a shadow and a canary keep nothing from governing": {
			[]string{"1.0.0=Draft 1.1.0=Shadow 2.0.0=Canary", "restore", "1.0.0=Draft 1.1.0=Shadow 2.0.0=Canary"},
			"default Embedded InForce, 1.0.0 Draft NotPromoted, 1.1.0 Shadow NotPromoted, 2.0.0 Canary NotPromoted"},
		"a ConfigMap that is restored where its revision was promoted here is a promotion": {
			[]string{"1.0.0=Active", "1.0.0=Active 1.1.0=Active", "1.1.0=Active", "1.0.0=Active~jane-3+ 1.1.0=Active"},
			builtIn + ", 1.0.0 Active InForce, 1.1.0 Superseded Superseded"},
		"a promotion after a restore is one": {
			[]string{"1.0.0=Active", "restore", "1.0.0=Active 1.1.0=Active"}, builtIn + ", 1.0.0 Superseded Superseded, 1.1.0 Active InForce"},
	} {
		t.Run(name, func(t *testing.T) {
			world := newCluster(t)
			for _, step := range c.steps {
				if step == "restore" {
					world.restore()
				} else {
					world.label(step)
				}
				world.look()
			}
			if diff := cmp.Diff(c.want, world.shows()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestInForceOnlyWhenEveryRunningManagerHasCompiledIt(t *testing.T) {
	w := newCluster(t)
	w.manager("m2", "1.1.0")
	w.label("1.0.0=Active 1.1.0=Canary")
	w.look()
	w.label("1.0.0=Active 1.1.0=Active")
	o := w.look()
	shows := func(want string) {
		t.Helper()
		if diff := cmp.Diff(want, w.shows()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	shows("default Superseded Superseded, 1.0.0 Active InForce, 1.1.0 Draft AwaitingReplicas")
	if o.InForce != "1.0.0" || o.Again != 90*time.Second {
		t.Errorf("in force %s, again in %s", o.InForce, o.Again)
	}
	const why = "it waits until every running manager has compiled it: m2 refuses it: lifecycle.yaml:3:1: error: unknown effect"
	if got := message(w.revision("1.1.0")); got != why {
		t.Errorf("the message is %q, want %q", got, why)
	}

	w.now = epoch.Add(91 * time.Second) // m2 is gone, and its lease has expired
	w.manager("m1")
	w.look()
	shows("default Superseded Superseded, 1.0.0 Superseded Superseded, 1.1.0 Active InForce")
}

func TestAPromotionThatWaitsEndsWithItsLabelOrALaterOne(t *testing.T) {
	for name, c := range map[string]struct{ next, want string }{
		"its label taken away":       {"1.0.0=Active 1.1.0=Shadow", "1.0.0 Active InForce, 1.1.0 Shadow NotPromoted"},
		"its ConfigMap deleted":      {"1.0.0=Active", "1.0.0 Active InForce, 1.1.0 Draft NotPromoted"},
		"another one promoted":       {"1.0.0=Active 1.1.0=Active 2.0.0=Active", "1.0.0 Superseded Superseded, 1.1.0 Superseded Superseded, 2.0.0 Active InForce"},
		"its ConfigMap half-written": {"1.0.0=Active 1.1.0!=Active", "1.0.0 Active InForce, 1.1.0 Draft AwaitingReplicas"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCluster(t)
			w.manager("m2", "1.1.0")
			for _, heads := range []string{"1.0.0=Active", "1.0.0=Active 1.1.0=Active", c.next} {
				w.label(heads)
				w.look()
			}
			if diff := cmp.Diff("default Superseded Superseded, "+c.want, w.shows()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAPromotionThatWasOvertakenWhileItWaitedDoesNotRevive(t *testing.T) {
	w := newCluster(t)
	w.manager("m2", "1.1.0", "2.0.0")
	for _, heads := range []string{"1.0.0=Active", "1.0.0=Active 1.1.0=Active", "1.0.0=Active 1.1.0=Active 2.0.0=Active",
		"1.0.0=Active 1.1.0=Active 2.0.0=Shadow"} {
		w.label(heads)
		w.look()
	}
	const want = "default Superseded Superseded, 1.0.0 Active InForce, 1.1.0 Superseded Superseded, 2.0.0 Shadow NotPromoted"
	if diff := cmp.Diff(want, w.shows()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	w.manager("m2") // it refuses nothing any more
	w.look()
	if diff := cmp.Diff(want, w.shows()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestACanaryThatIsPromotedStaysOneWhileItWaits(t *testing.T) {
	w := newCluster(t)
	w.label("1.0.0=Canary")
	w.look()
	w.manager("m2", "1.0.0") // a newer manager, which does not understand it
	w.look()
	w.label("1.0.0=Active")
	w.look()
	if got := w.shows(); got != "default Embedded InForce, 1.0.0 Canary AwaitingReplicas" {
		t.Error(got)
	}
	if c := w.revision("1.0.0").Status.Canary; c == nil || c.Selector != "rack=r1" {
		t.Errorf("its scope is %+v", c)
	}
}

func TestNothingIsPromotedWhileNoManagerHasSaidWhatItCompiled(t *testing.T) {
	w := newCluster(t)
	w.replicas = nil
	w.label("1.0.0=Active")
	w.look()
	if got := w.shows(); got != "default Embedded InForce, 1.0.0 Draft AwaitingReplicas" {
		t.Error(got)
	}
}

func TestARevisionThatAnUpgradeRefusesIsHeldAndStaysInForce(t *testing.T) {
	w := newCluster(t)
	w.label("1.0.0=Active 1.1.0=Canary 2.0.0=Shadow")
	w.look()
	for _, name := range []string{"1.0.0", "1.1.0", "2.0.0"} {
		w.revision(name).Test = &Test{Compiled: name == "1.1.0", Refused: "scenario fails", Findings: []string{"scenario fails"}, Total: 1}
	}
	w.manager("m1", "1.0.0", "1.1.0", "2.0.0")
	o := w.look()
	if o.InForce != "1.0.0" {
		t.Errorf("in force: %s", o.InForce)
	}
	if got := w.shows(); got != "default Superseded Superseded, 1.0.0 Active RevisionHeld, 1.1.0 Canary RevisionHeld, 2.0.0 Shadow RevisionHeld" {
		t.Error(got)
	}
	var got []string
	for _, c := range w.revision("1.1.0").Status.Conditions {
		got = append(got, c.Type+" "+string(c.Status)+" "+c.Reason)
	}
	if diff := cmp.Diff([]string{"Compiled True Compiled", "Verified False VerifyFailed", "Active False RevisionHeld"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTheMessageOfWhatIsInForceTellsOfItsConfigMap(t *testing.T) {
	for name, c := range map[string]struct{ heads, want string }{
		"as promoted":  {"1.0.0=Active", "servers adopt this revision since promotion 2"},
		"relabelled":   {"1.0.0=Shadow", "servers adopt this revision since promotion 2; ConfigMap cm-1.0.0 asks for stage Shadow, and it stays in force until another is promoted"},
		"deleted":      {"", "servers adopt this revision since promotion 2; ConfigMap cm-1.0.0 does not hold it any more"},
		"half-written": {"1.0.0!=Active", "servers adopt this revision since promotion 2; ConfigMap cm-1.0.0 changes nothing: lifecycle.yaml is half-written"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCluster(t)
			w.label("1.0.0=Active")
			w.look()
			w.label(c.heads)
			w.look()
			if got := message(w.revision("1.0.0")); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestADemotionSaysThatAnOlderLabelIsNoPromotion(t *testing.T) {
	w := newCluster(t)
	for _, heads := range []string{"1.0.0=Active", "1.0.0=Active 1.1.0=Active", "1.0.0=Active 1.1.0=Draft"} {
		w.label(heads)
		w.look()
	}
	const want = "servers adopt this revision since promotion 3; ConfigMap cm-1.1.0 asks for stage Draft, and it stays in force until another is promoted; " +
		"that ConfigMap cm-1.0.0 is labelled active since earlier is no promotion: change its stage and set it to active again"
	if got := message(w.revision("1.1.0")); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func message(r *Revision) string {
	for _, c := range r.Status.Conditions {
		if c.Type == policyv1alpha1.ConditionActive {
			return c.Message
		}
	}
	return ""
}

func TestNoPromotionIsNumberedBeyondWhatCanBeRead(t *testing.T) {
	w := newCluster(t)
	w.store("1.0.0")
	w.revision("1.0.0").Promotion = policyv1alpha1.MaxPromotion
	w.look()
	w.label("1.1.0=Active")
	w.look()
	if got := w.shows(); got != "default Draft NotPromoted, 1.0.0 Active InForce, 1.1.0 Draft Conflict" || w.revision("1.1.0").Promotion != 0 {
		t.Error(got)
	}
	const want = "no number is left for a promotion: 1.0.0 has 9007199254740992, and no other can come after that. " +
		"The runbook of Conflict says how to give it a lower one"
	for range 2 { // it stays so
		if got := message(w.revision("1.1.0")); got != want {
			t.Error(got)
		}
		w.look()
	}
}
