// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

func TestACanaryPausesItself(t *testing.T) {
	for name, c := range map[string]struct {
		maxHalts, maxErrors int32
		counts              []Troubles
		want                string
	}{
		"not within its budget":             {1, 2, []Troubles{{1, 2}}, "1 halts, 2 errors"},
		"once halts are beyond its budget":  {1, 2, []Troubles{{2, 0}}, "2 halts, 0 errors, paused"},
		"once errors are":                   {1, 2, []Troubles{{0, 3}}, "0 halts, 3 errors, paused"},
		"at the first, where no budget is":  {0, 0, []Troubles{{1, 0}}, "1 halts, 0 errors, paused"},
		"and stays so when servers recover": {0, 0, []Troubles{{1, 0}, {0, 0}}, "1 halts, 0 errors, paused"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCluster(t)
			w.label("1.0.0=Canary")
			w.look()
			r := w.revision("1.0.0")
			r.Test = &Test{Compiled: true, MaxHalts: c.maxHalts, MaxErrors: c.maxErrors}
			for _, r.Troubles = range c.counts {
				w.look()
			}
			if got := canaryText(r); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func canaryText(r *Revision) string {
	c := r.Status.Canary
	if c == nil {
		return "none"
	}
	text := fmt.Sprintf("%d halts, %d errors", c.Halts, c.Errors)
	if c.Paused {
		text += ", paused"
	}
	return text
}

func TestACanaryNamesTheServersThatItWaitsFor(t *testing.T) {
	const scope = "it governs as a canary: servers with rack=r1"
	const waits = scope + "; before more servers come under it, it waits for those to rest that came first: "
	for name, c := range map[string]struct {
		unshown []string
		want    string
	}{
		"where there are none": {nil, scope},
		"all of a few":         {[]string{"a", "b"}, waits + "a, b"},
		"five of many":         {[]string{"a", "b", "c", "d", "e", "f", "g"}, waits + "a, b, c, d, e and 2 more"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCluster(t)
			w.label("1.0.0=Canary")
			w.look()
			r := w.revision("1.0.0")
			r.Unshown = c.unshown
			w.look()
			if got := message(r); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestACanaryThatNoErrorCanPauseSaysSo(t *testing.T) {
	w := newCluster(t)
	w.label("1.0.0=Canary")
	w.look()
	w.revision("1.0.0").Test = &Test{Compiled: true, NoError: true}
	w.look()
	const want = "it governs as a canary: servers with rack=r1; it has no state Error, so that maxErrors bounds nothing and only halts pause it"
	if got := message(w.revision("1.0.0")); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAPausedCanaryGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*cluster)
		want   string
	}{
		"not by a look":                                {func(*cluster) {}, "1 halts, 0 errors, paused"},
		"when its scope changes":                       {func(w *cluster) { w.heads[0].Canary.Percent = 10 }, "0 halts, 0 errors"},
		"when it is labelled anew":                     {func(w *cluster) { w.label("1.0.0=Shadow"); w.look(); w.label("1.0.0=Canary") }, "0 halts, 0 errors"},
		"when it was labelled anew between two looks":  {func(w *cluster) { w.label("1.0.0=Canary~jane_sha256:0_2027-01-15T09:00:00Z") }, "0 halts, 0 errors"},
		"not when it loses the record of who began it": {func(w *cluster) { w.label("1.0.0=Canary") }, "1 halts, 0 errors, paused"},
		"not when it is half-written":                  {func(w *cluster) { w.label("1.0.0!=Canary") }, "1 halts, 0 errors, paused"},
		"never once it is deleted":                     {func(w *cluster) { w.label("") }, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCluster(t)
			w.label("1.0.0=Canary~jane_sha256:0_2027-01-15T08:00:00Z")
			w.look()
			r := w.revision("1.0.0")
			r.Troubles.Halts = 1
			w.look()
			r.Troubles.Halts = 0 // those counted belong to the time before
			c.change(w)
			w.look()
			if got := canaryText(r); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestShadowDifferencesAddUp(t *testing.T) {
	w := newCluster(t)
	w.label("1.0.0=Shadow")
	w.look()
	r := w.revision("1.0.0")
	seen := func(rule, server string, count int64) policyv1alpha1.ShadowDifference {
		return policyv1alpha1.ShadowDifference{State: "Discovery", Rule: rule, LastServer: server, Count: count, LastAt: metav1.Time{Time: epoch}}
	}
	for _, delta := range []ShadowDelta{
		{Evaluated: 10, Differences: []policyv1alpha1.ShadowDifference{seen("A", "s1", 1)}},
		{Evaluated: 5},
		{Evaluated: 7, Differences: []policyv1alpha1.ShadowDifference{seen("A", "s2", 1), seen("B", "s3", 5)}},
	} {
		r.Shadow = delta
		w.apply(w.decide())
	}
	want := &policyv1alpha1.ShadowStatus{Evaluated: 22, DifferencesTotal: 7,
		Differences: []policyv1alpha1.ShadowDifference{seen("B", "s3", 5), seen("A", "s2", 2)}}
	if diff := cmp.Diff(want, r.Status.Shadow); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	r.Shadow = ShadowDelta{Evaluated: 3, Differences: []policyv1alpha1.ShadowDifference{seen("B", "s4", 1)}}
	w.label("1.0.0=Draft")
	w.apply(w.decide())
	if got := r.Status.Shadow; r.Status.Stage != policyv1alpha1.StageDraft || got.Evaluated != 25 || got.DifferencesTotal != 8 {
		t.Errorf("in stage %s what it has shown last is not added: %+v", r.Status.Stage, got)
	}
	w.apply(w.decide())
	if got := r.Status.Shadow; got.Evaluated != 25 {
		t.Errorf("what comes once it is no shadow any more is added: %+v", got)
	}
	r.Shadow = ShadowDelta{}
	w.label("1.0.0=Shadow")
	w.look()
	if r.Status.Shadow != nil {
		t.Errorf("another time in the shadow begins with %+v", r.Status.Shadow)
	}
}

func TestShadowDifferencesAreBounded(t *testing.T) {
	w := newCluster(t)
	w.label("1.0.0=Shadow")
	w.look()
	r := w.revision("1.0.0")
	for i := range 60 {
		r.Shadow.Differences = append(r.Shadow.Differences, policyv1alpha1.ShadowDifference{Rule: fmt.Sprintf("R%02d", i), Count: int64(i + 1)})
	}
	w.apply(w.decide())
	sh := r.Status.Shadow
	if len(sh.Differences) != 50 || sh.Differences[0].Rule != "R59" || sh.DifferencesTotal != 60*61/2 {
		t.Errorf("%d differences, the first %+v, %d in all", len(sh.Differences), sh.Differences[0], sh.DifferencesTotal)
	}
}

func TestScope(t *testing.T) {
	const servers, percent = policyv1alpha1.CanaryServersAnnotation, policyv1alpha1.CanaryPercentAnnotation
	for name, c := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"servers by label": {map[string]string{servers: "rack in (r1, r2)"}, "servers with rack in (r1, r2)"},
		"a share":          {map[string]string{percent: "5"}, "5 % of all servers"},
		"both":             {map[string]string{servers: "rack=r1", percent: "50"}, "50 % of the servers with rack=r1"},
		"neither":          {nil, `annotation policy.metalaw.dev/servers: "": a canary says whom it governs: a label selector here, such as rack in (r1, r2), or a share in policy.metalaw.dev/percent, or both`},
		"a selector that names all": {map[string]string{servers: " "},
			`annotation policy.metalaw.dev/servers: " ": it selects every server; to govern all, label the bundle policy.metalaw.dev/stage=active, and for a share of all leave this annotation out and write policy.metalaw.dev/percent`},
		"a share of nothing": {map[string]string{percent: "0"}, `annotation policy.metalaw.dev/percent: "0": it is no share; write a whole number from 1 to 100, without a sign`},
		"a share in words":   {map[string]string{percent: "half"}, `annotation policy.metalaw.dev/percent: "half": it is no share; write a whole number from 1 to 100, without a sign`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := ParseScope(c.annotations)
			got := s.String()
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if _, err := ParseScope(map[string]string{servers: "rack in"}); err == nil {
		t.Error("a selector that cannot be read is accepted")
	}
}

func TestACanaryOfARevisionThatWasInForceIsCompiledByEveryManager(t *testing.T) {
	w := newCluster(t)
	w.label("1.0.0=Active")
	w.look()
	w.label("1.0.0=Active 1.1.0=Active")
	w.look()
	r := w.revision("1.0.0")
	if InUse(&r.Status, r.Promotion) {
		t.Error("a revision that was superseded is in use, though its ConfigMap is only labelled active still")
	}
	w.manager("m2")
	delete(w.replicas[1].Compiled, "1.0.0") // it has started since
	w.label("1.0.0=Canary 1.1.0=Active")
	w.look()
	if got := w.shows(); got != "default Superseded Superseded, 1.0.0 Superseded AwaitingReplicas, 1.1.0 Active InForce" {
		t.Error(got)
	}
	if !InUse(&r.Status, r.Promotion) {
		t.Error("nobody compiles the revision that is to be a canary")
	}
	w.manager("m2")
	w.look()
	if r.Status.Stage != policyv1alpha1.StageCanary {
		t.Error(w.shows())
	}
}

func TestShadowsAreBounded(t *testing.T) {
	const eight = "1.0.0=Shadow 1.0.1=Shadow 1.0.2=Shadow 1.0.3=Shadow 1.0.4=Shadow 1.0.5=Shadow 1.0.6=Shadow 1.0.7=Shadow"
	for name, c := range map[string]struct {
		steps []string
		last  string
		want  policyv1alpha1.PolicyStage
	}{
		"eight are evaluated": {[]string{eight}, "1.0.7", policyv1alpha1.StageShadow},
		"a ninth is not":      {[]string{eight + " 1.0.8=Shadow"}, "1.0.8", policyv1alpha1.StageDraft},
		"nor one that comes later and whose name is before": {[]string{eight, eight + " 0.9.0=Shadow"}, "0.9.0", policyv1alpha1.StageDraft},
		"it takes the place of one that leaves": {[]string{eight, eight + " 0.9.0=Shadow", strings.Replace(eight, "1.0.3=Shadow", "1.0.3=Draft", 1) + " 0.9.0=Shadow"},
			"0.9.0", policyv1alpha1.StageShadow},
		"also where that is promoted": {[]string{eight + " 1.0.8=Shadow", strings.Replace(eight, "1.0.3=Shadow", "1.0.3=Active", 1) + " 1.0.8=Shadow"},
			"1.0.8", policyv1alpha1.StageShadow},
		"nor one that was in force": {[]string{"0.9.0=Active", eight + " 1.1.0=Active 0.9.0=Active", eight + " 1.1.0=Active 0.9.0=Shadow"},
			"0.9.0", policyv1alpha1.StageSuperseded},
		"what is in force needs no place": {[]string{"0.9.0=Active", eight + " 0.9.0=Shadow"}, "1.0.7", policyv1alpha1.StageShadow},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCluster(t)
			for i := range 10 {
				w.replicas[0].Compiled[fmt.Sprint("1.0.", i)], w.replicas[0].Compiled["0.9.0"] = true, true
			}
			for i, step := range c.steps {
				w.now = epoch.Add(time.Duration(i) * time.Second)
				w.label(step)
				w.look()
			}
			r := w.revision(c.last)
			if r.Status.Stage != c.want {
				t.Errorf("%s: %s", r.Status.Stage, w.shows())
			}
			if crowded := strings.HasPrefix(message(r), "8 revisions are evaluated in shadow, and no more are at once: 1.0.0, 1.0.1, "); crowded != (c.want != policyv1alpha1.StageShadow) {
				t.Errorf("it says %q", message(r))
			}
			if InUse(&r.Status, r.Promotion) != (c.want == policyv1alpha1.StageShadow) {
				t.Error("the managers compile what is not evaluated, or do not compile what is")
			}
		})
	}
}
