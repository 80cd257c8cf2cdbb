// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// emptyDigest is that of headAt, which holds no file.
var emptyDigest = func() string {
	digest, _, err := digestOf(context.Background(), nil, headAt("shadow"))
	if err != nil {
		panic(err)
	}
	return digest
}()

// pausedOf is a canary of a share of the servers that has cost more than its budget.
func pausedOf(r policyv1alpha1.PolicyRevision, percent int32) policyv1alpha1.PolicyRevision {
	r.Status.Canary = &policyv1alpha1.CanaryStatus{Percent: percent, Paused: true, Errors: 2, MaxHalts: new(int32), MaxErrors: new(int32)}
	return r
}

const (
	pausedWords = "revision a is a canary that has paused itself: 0 servers were halted under it (its budget is 0) and 2 entered Error (its budget is 0)"
	endCanary   = "to end it: `metalaw policy promote fleet-1 --stage shadow`"
)

// quiet is a terminal at which nobody answers.
func quiet() (t *terminal.Terminal, out, err *bytes.Buffer) {
	out, err = &bytes.Buffer{}, &bytes.Buffer{}
	return &terminal.Terminal{In: &bytes.Buffer{}, Out: out, Err: err}, out, err
}

func TestPromotingACanaryThatHasPausedItself(t *testing.T) {
	for name, c := range map[string]struct {
		to             change
		yes            bool
		fails          string
		stages         []string
		tells, answers string
	}{
		"to all is refused": {change{stage: "active"}, false, "nothing was changed: " + pausedWords + ". Promoted as it is, it governs the whole fleet. " +
			"To end the canary: `metalaw policy promote fleet-1 --stage shadow`; then mend the bundle, and try the new version\n" +
			"To promote a to every server all the same, add --yes", []string{}, "", ""},
		"to all passes with consent": {change{stage: "active"}, true, "", []string{"active"}, pausedWords + ". Promoted", "fleet-1: active\n"},
		"to the same scope is refused": {change{stage: "canary", percent: 5}, true, "nothing was changed: revision a is a canary with this scope already, " +
			"and has paused itself: 0 servers were halted under it (its budget is 0) and 2 entered Error (its budget is 0). " +
			"It takes no further server. Give it another scope, or end it with --stage shadow and mend the bundle. If it was not to blame, " +
			"--stage canary after that begins it anew", []string{}, "", ""},
		"to another scope passes": {change{stage: "canary", percent: 10}, false, "", []string{"canary"}, "", "fleet-1: canary\n"},
		"to the shadow passes":    {change{stage: "shadow"}, false, "", []string{"shadow"}, "", "fleet-1: shadow\n"},
	} {
		t.Run(name, func(t *testing.T) {
			paused := pausedOf(at("a", emptyDigest, "fleet-1", "Canary", "Canary", "NotPromoted", "", ""), 5)
			head := headAt("canary")
			api, stages := admitting(t, true, nil, head, &paused)
			term, out, said := quiet()
			err := (&rollout{namespace: defaultNamespace, yes: c.yes, timeout: time.Minute}).apply(t.Context(), term, api, head, c.to, "")
			if got := failure(err); got != c.fails {
				t.Errorf("%s", cmp.Diff(c.fails, got))
			}
			if diff := cmp.Diff(c.stages, *stages) + cmp.Diff(c.answers, out.String()); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(said.String(), c.tells) {
				t.Error(said)
			}
		})
	}
}

func failure(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestWaitingForACanaryThatHasPausedItself(t *testing.T) {
	paused := pausedOf(at("a", "da", "ha", "Canary", "Canary", "NotPromoted", "", "the canary is paused"), 5)
	q := request{change: change{stage: "canary", percent: 5}, head: "ha", bundle: "fleet", digest: "da"}
	if p := q.look([]policyv1alpha1.PolicyRevision{paused}); p.done || !p.failed || !strings.Contains(p.words, "the canary is paused") {
		t.Errorf("%+v", p)
	}
	q.percent = 10
	if p := q.look([]policyv1alpha1.PolicyRevision{paused}); p.done || p.failed {
		t.Errorf("the manager has not seen the new scope yet: %+v", p)
	}
}

func TestRollbackWhileSomethingIsUnderWay(t *testing.T) {
	inForce := stored(at("b", "db", "fleet-2", "Active", "Active", "InForce", "3", ""), 3)
	before := stored(at("z", "dz", "fleet-0", "Active", "Superseded", "Superseded", "1", ""), 1)
	canary := stored(canaryOf(at("a", "da", "fleet-1", "Canary", "Canary", "NotPromoted", "2", ""), "rack=r1", 0), 2)
	newCanary := pausedOf(stored(at("a", "da", "fleet-1", "Canary", "Canary", "NotPromoted", "", ""), 4), 5)
	pending := stored(at("a", "da", "fleet-1", "Active", "Superseded", "AwaitingReplicas", "2",
		"it waits until every running manager has compiled it: m-1 has not compiled it yet"), 2)
	newPending := stored(at("a", "da", "fleet-1", "Active", "Shadow", "AwaitingReplicas", "",
		"it waits until every running manager has compiled it: m-1 has not compiled it yet"), 4)
	between := stored(at("y", "dy", "fleet-9", "Active", "Superseded", "Superseded", "2", ""), 2)
	canaryY := stored(canaryOf(at("y", "dy", "fleet-9", "Canary", "Canary", "NotPromoted", "", ""), "rack=r1", 0), 4)
	canaryYWords := "revision y governs as a canary: servers with rack=r1; to end it: `metalaw policy promote fleet-9 --stage shadow`"
	builtInPending := at("e", "de", "e", "Active", "Superseded", "AwaitingReplicas", "", "m-1 has not compiled it yet")
	canaryWords := "revision a governs as a canary: servers with rack=r1; " + endCanary
	pendingWords := "the promotion of revision a has not come into force yet (it waits until every running manager has compiled it: " +
		"m-1 has not compiled it yet); to withdraw it: `metalaw policy promote fleet-1 --stage shadow`"
	allTheSame := "\nTo go back from b to z all the same, for every server, add --yes"
	for name, c := range map[string]struct {
		all                      []policyv1alpha1.PolicyRevision
		to                       string
		yes                      bool
		want, fails, tells, note string
	}{
		"a canary that was in force before is not what rollback promotes": {all: []policyv1alpha1.PolicyRevision{inForce, canary, before},
			fails: "nothing was changed: " + canaryWords + allTheSame},
		"with consent it goes to the one before":  {all: []policyv1alpha1.PolicyRevision{inForce, canary, before}, yes: true, want: "z", tells: canaryWords},
		"with a name it goes there, and tells it": {all: []policyv1alpha1.PolicyRevision{inForce, canary, before}, to: "a", want: "a", tells: canaryWords},
		"a new canary that has paused itself is named": {all: []policyv1alpha1.PolicyRevision{inForce, before, newCanary},
			fails: "nothing was changed: " + pausedWords + "; " + endCanary + allTheSame},
		"a new promotion that waits is named": {all: []policyv1alpha1.PolicyRevision{inForce, before, newPending},
			fails: "nothing was changed: " + pendingWords + allTheSame},
		"a new promotion that waits is passed by with consent": {all: []policyv1alpha1.PolicyRevision{inForce, before, newPending}, yes: true, want: "z",
			tells: pendingWords},
		"a rollback that waits is gone on with, and nobody is asked": {all: []policyv1alpha1.PolicyRevision{inForce, pending, before}, want: "a"},
		"with consent it is the same rollback":                       {all: []policyv1alpha1.PolicyRevision{inForce, pending, before}, yes: true, want: "a"},
		"a rollback further back that waits is gone on with":         {all: []policyv1alpha1.PolicyRevision{inForce, between, withPromotion(pending, "1")}, want: "a"},
		"a rollback to the built-in one that waits is gone on with":  {all: []policyv1alpha1.PolicyRevision{inForce, builtInPending}, want: "e"},
		"a canary beside a rollback that waits is named": {all: []policyv1alpha1.PolicyRevision{inForce, pending, canaryY},
			fails: "nothing was changed: " + canaryYWords + "\nTo go back from b to a all the same, for every server, add --yes"},
		"another than the rollback that waits goes there, and tells it": {all: []policyv1alpha1.PolicyRevision{inForce, pending, before}, to: "z", want: "z",
			tells: pendingWords},
		"a canary is all there was": {all: []policyv1alpha1.PolicyRevision{inForce, canary},
			fails: canaryWords + "\nthere is nothing to go back to but a, which is on its way to more servers as it is: --to a promotes it"},
		"nothing is under way": {all: []policyv1alpha1.PolicyRevision{inForce, before}, want: "z"},
	} {
		t.Run(name, func(t *testing.T) {
			term, _, said := quiet()
			got, err := (&rollout{namespace: defaultNamespace, yes: c.yes}).target(t.Context(), term, c.all, c.to)
			if diff := cmp.Diff(c.fails, failure(err)); diff != "" {
				t.Error(diff)
			}
			if err == nil && got.Name != c.want {
				t.Errorf("it goes to %s", got.Name)
			}
			if !strings.Contains(said.String(), c.tells) {
				t.Error(said)
			}
		})
	}
}

func TestRollbackOnAFreshInstallation(t *testing.T) {
	fresh := revision("default-1", "1")
	fresh.Status.Stage = policyv1alpha1.StageEmbedded
	_, err := former([]policyv1alpha1.PolicyRevision{fresh}, "")
	const want = "there is nothing to go back to: default-1, which is built in, is in force, and no other ever was"
	if failure(err) != want {
		t.Error(err)
	}
}

func TestTheEndingOfABundleInAnotherNamespaceNamesIt(t *testing.T) {
	r := &rollout{namespace: "ns"}
	if got := r.command("promote x --stage shadow"); got != "`metalaw policy promote x --stage shadow -n ns`" {
		t.Error(got)
	}
}

func TestWhatIsInForceAlreadyIsLeftAsItIs(t *testing.T) {
	const mine, later = "jane sha256:1 2026-11-22T13:00:00.5Z", "jane sha256:1 2026-11-22T13:00:00.6Z restored"
	inForce := at("a", emptyDigest, "fleet-1", "Active", "Active", "InForce", "2", "")
	for name, c := range map[string]struct {
		stage  string
		others []client.Object
		stages []string
		says   string
	}{
		"by this label":                          {"active", nil, []string{}, "fleet-1: revision a is in force already, by promotion 2; nothing was changed\n"},
		"but not where the label says otherwise": {"shadow", nil, []string{"active"}, "fleet-1: active\n"},
		"nor where another was labelled since":   {"active", []client.Object{headBeside(later)}, []string{"draft", "active"}, "fleet-1: active\n"},
		"nor while another promotion waits": {"active", []client.Object{pointer(at("b", "db", "fleet-2", "Active", "Shadow", "AwaitingReplicas", "", ""))},
			[]string{"draft", "active"}, "fleet-1: active\n"},
	} {
		t.Run(name, func(t *testing.T) {
			head := headAt(c.stage)
			head.Annotations[policyv1alpha1.ActivatedByAnnotation] = mine
			api, stages := admitting(t, true, nil, append(c.others, head, pointer(inForce))...)
			term, out, _ := quiet()
			err := (&rollout{timeout: time.Minute}).apply(t.Context(), term, api, head, change{stage: policyv1alpha1.LabelActive}, "")
			if diff := cmp.Diff(c.stages, *stages) + cmp.Diff(c.says, out.String()); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

func pointer(r policyv1alpha1.PolicyRevision) *policyv1alpha1.PolicyRevision { return &r }

func headBeside(record string) *corev1.ConfigMap {
	head := headAt("active")
	head.Name, head.Annotations[policyv1alpha1.ActivatedByAnnotation] = "fleet-2", record
	return head
}

func TestAWaitThatIsInterruptedSaysWhatBecomesOfIt(t *testing.T) {
	const stays = "ConfigMap fleet-1 is labelled active, so that it stays asked for; to withdraw it while it is not in force: " +
		"`metalaw policy promote fleet-1 --stage shadow`"
	waits := at("a", "da", "fleet-1", "Active", "Shadow", "AwaitingReplicas", "", "m-1 has not compiled it yet")
	refused := refused(at("a", "da", "fleet-1", "Active", "Shadow", "AwaitingReplicas", "", "m-1 refuses it: no"))
	for name, c := range map[string]struct {
		revision policyv1alpha1.PolicyRevision
		timeout  time.Duration
		// interrupts says at which look somebody interrupts the command; 0 for never.
		interrupts int
		want       string
	}{
		"before the first answer": {waits, time.Minute, 1, "^interrupted after 0s: the API server has not said yet how far it has come\\. " + regexp.QuoteMeta(stays) + "$"},
		"after the time is over": {waits, time.Millisecond, 0, "^it did not come about within 1ms: revision a is Shadow \\(AwaitingReplicas: m-1 has not compiled it yet\\)\\. " +
			regexp.QuoteMeta(stays) + "$"},
		"where a manager refuses it": {refused, time.Minute, 0, "^it did not come about: revision a is Shadow \\(AwaitingReplicas: m-1 refuses it: no\\)\\. " + regexp.QuoteMeta(stays) + "$"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			api, _ := admitting(t, true, nil, headAt("active"), &c.revision)
			looks := 0
			watched := interceptor.NewClient(api.(client.WithWatch), interceptor.Funcs{
				List: func(ctx context.Context, from client.WithWatch, all client.ObjectList, opts ...client.ListOption) error {
					if looks++; looks == c.interrupts {
						interrupt()
						return ctx.Err()
					}
					return from.List(ctx, all, opts...)
				}})
			term, _, _ := quiet()
			q := &request{change: change{stage: policyv1alpha1.LabelActive}, head: "fleet-1", bundle: "fleet", digest: "da"}
			err := (&rollout{namespace: defaultNamespace, timeout: c.timeout}).follow(ctx, term, watched, q)
			if !regexp.MustCompile(c.want).MatchString(failure(err)) {
				t.Error(err)
			}
		})
	}
}

func TestAnInterruptionBeforeTheChangeSaysThatThereIsNone(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	head := headAt("shadow")
	api, stages := admitting(t, true, nil, head)
	interrupt()
	term, out, _ := quiet()
	err := (&rollout{timeout: time.Minute}).apply(ctx, term, api, head, change{stage: policyv1alpha1.LabelActive}, "")
	if failure(err) != "interrupted before anything was changed" || len(*stages) > 0 || out.Len() > 0 {
		t.Error(err, *stages, out)
	}
}

func TestATimeoutThatIsNoTime(t *testing.T) {
	for _, timeout := range []time.Duration{0, -time.Second} {
		if err := (&rollout{timeout: timeout}).check(nil, nil); err == nil {
			t.Errorf("%s is accepted", timeout)
		}
	}
}

func TestWhomACanaryWouldGovern(t *testing.T) {
	servers := []v1alpha1.Server{inRack("r1"), inRack("r1"), inRack("r2")}
	since := func(r policyv1alpha1.PolicyRevision, at int64) policyv1alpha1.PolicyRevision {
		r.Status.Canary.Since = metav1.Unix(at, 0)
		return r
	}
	other := since(canaryOf(at("b", "db", "fleet-2", "Canary", "Canary", "NotPromoted", "", ""), "rack in (r1, r3)", 0), 5)
	same := since(canaryOf(at("a", "da", "fleet-1", "Canary", "Canary", "NotPromoted", "", ""), "rack=r1", 0), 4)
	for name, c := range map[string]struct {
		selector string
		before   []policyv1alpha1.PolicyRevision
		want     string
	}{
		"some": {"rack=r1", nil, "in its scope (servers with rack=r1) are now 2 of 3 servers\n"},
		"nobody": {"rack=nope", nil, "in its scope (servers with rack=nope) are now 0 of 3 servers\n" +
			"Warning: the canary governs no server until one comes into its scope; look at the labels with `kubectl get servers --show-labels`\n"},
		"those of another canary": {"rack=r1", []policyv1alpha1.PolicyRevision{other}, "in its scope (servers with rack=r1) are now 2 of 3 servers\n" +
			"Warning: canary b (servers with rack in (r1, r3)) has 2 of them in its scope as well, and this one, which began later, governs these. " +
			"To end that one: `metalaw policy promote fleet-2 --stage shadow`\n"},
		"those of another canary that began later": {"rack=r1", []policyv1alpha1.PolicyRevision{other, same}, "in its scope (servers with rack=r1) are now 2 of 3 servers\n" +
			"Warning: canary b (servers with rack in (r1, r3)) has 2 of them in its scope as well, and that one, which began later, governs these. " +
			"To end that one: `metalaw policy promote fleet-2 --stage shadow`\n"},
		"others than another canary": {"rack=r2", []policyv1alpha1.PolicyRevision{other}, "in its scope (servers with rack=r2) are now 1 of 3 servers\n"},
	} {
		t.Run(name, func(t *testing.T) {
			q := &request{change: change{stage: "canary", servers: c.selector}, head: "fleet-1", bundle: "fleet", digest: "da", before: c.before}
			if diff := cmp.Diff(c.want, (&rollout{namespace: defaultNamespace}).reach(q, servers)+"\n"); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func inRack(rack string) v1alpha1.Server {
	return v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"rack": rack}}}
}
