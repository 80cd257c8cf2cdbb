// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/canary"
)

// request is a stage that was asked for, and what there was when it was.
type request struct {
	change
	// head is the ConfigMap that was labelled, bundle and digest what it holds.
	head, bundle, digest string
	// revision is the one that has to come of it; empty where any that holds what the head holds will do.
	revision string
	// before are the revisions as they were.
	before []policyv1alpha1.PolicyRevision
	// files are what the head holds; nil where they are not whole.
	files bundle.Files
	// anew says that the head was labelled active before, and record is what admission wrote of this activation; empty where it wrote
	// nothing.
	anew   bool
	record string
	// onItsWay says that the same was asked for before and is on its way, so that the head was left as it is.
	onItsWay bool
}

// concerns says that a revision is the one that was asked for.
func (q *request) concerns(r *policyv1alpha1.PolicyRevision) bool {
	if q.revision != "" {
		return r.Name == q.revision
	}
	return r.Holds(q.bundle, q.digest)
}

// was is a revision as it was before; an empty one where there was none.
func (q *request) was(name string) *policyv1alpha1.PolicyRevision {
	was := lists.Find(q.before, func(r *policyv1alpha1.PolicyRevision) bool { return r.Name == name })
	return cmp.Or(was, &policyv1alpha1.PolicyRevision{})
}

// progress is how far a request has come.
type progress struct {
	done, failed bool
	words        string
	// waits says that it has failed for now, and comes about once the cause is gone.
	waits bool
}

// look says how far a request has come. It has failed where waiting on is of no use.
func (q *request) look(all []policyv1alpha1.PolicyRevision) progress {
	var found *progress
	for i := range all {
		one := &all[i]
		if q.concerns(one) {
			if p := q.reached(one); found == nil || p.done {
				found = &p
			}
			continue
		}
		if one.Status.Head != q.head {
			continue
		}
		if was := q.was(one.Name); one.Status.LabelledStage == labels[q.stage] &&
			(was.Status.Head != q.head || was.Status.LabelledStage != labels[q.stage]) {
			return progress{failed: true, words: fmt.Sprintf("ConfigMap %s holds revision %s by now, which is not what it was labelled %s for: "+
				"it has changed in between; see `metalaw policy history`", q.head, one.Name, q.stage)}
		}
		if words := q.refusal(one); words != "" {
			return progress{failed: true, words: words}
		}
	}
	switch {
	case found != nil:
		return *found
	case q.stage == policyv1alpha1.LabelDraft:
		return progress{done: true, words: "the manager keeps no revision of a draft"}
	}
	return progress{words: "the manager has made no PolicyRevision of it; is one running, and what do the Events of ConfigMap " + q.head + " say?"}
}

// refusal is why the manager makes nothing of the head, as the revision says that it held before; empty where it says nothing new.
func (q *request) refusal(r *policyv1alpha1.PolicyRevision) string {
	problem := r.ProblemOf(q.head)
	if problem == "" || problem == q.was(r.Name).ProblemOf(q.head) {
		return ""
	}
	return fmt.Sprintf("ConfigMap %s changes nothing: %s", q.head, problem)
}

// labels is what a revision says of the label of its ConfigMap.
var labels = map[string]policyv1alpha1.LabelledStage{
	policyv1alpha1.LabelDraft: policyv1alpha1.LabelledDraft, policyv1alpha1.LabelShadow: policyv1alpha1.LabelledShadow,
	policyv1alpha1.LabelCanary: policyv1alpha1.LabelledCanary, policyv1alpha1.LabelActive: policyv1alpha1.LabelledActive,
}

func labelOf(r *policyv1alpha1.PolicyRevision, head string) policyv1alpha1.LabelledStage {
	if known := headIn(r, head); known != nil {
		return known.Stage
	}
	return r.Status.LabelledStage
}

// headIn is what the manager saw last of a ConfigMap that holds a revision; nil where it saw none of that name.
func headIn(r *policyv1alpha1.PolicyRevision, name string) *policyv1alpha1.LabelledHead {
	return lists.Find(r.Status.Heads, func(h *policyv1alpha1.LabelledHead) bool { return h.Name == name })
}

// seen says that the manager has seen the label that was asked for.
func (q *request) seen(r *policyv1alpha1.PolicyRevision) bool {
	if head := headIn(r, q.head); q.anew && q.record != "" && head != nil {
		known := strings.TrimSuffix(head.ActivatedBy, "...") // a long one is cut
		if known == "" || !strings.HasPrefix(q.record, known) {
			return false // it knows of the former activation only
		}
	}
	return labelOf(r, q.head) == labels[q.stage]
}

// reached says how far the revision has come that was asked for.
func (q *request) reached(r *policyv1alpha1.PolicyRevision) progress {
	active := meta.FindStatusCondition(r.Status.Conditions, policyv1alpha1.ConditionActive)
	var reason string
	p := progress{words: fmt.Sprintf("revision %s is %s", r.Name, r.Status.Stage)}
	if active != nil {
		reason = active.Reason
		p.words += fmt.Sprintf(" (%s: %s)", active.Reason, active.Message)
	}
	if words := q.refusal(r); words != "" {
		p.failed, p.words = true, words
		return p
	}
	if !q.seen(r) {
		return p
	}
	if reason == policyv1alpha1.ReasonRevisionHeld {
		p.failed = true
		return p
	}
	switch q.stage {
	case policyv1alpha1.LabelActive:
		p.done, p.failed = q.active(r, reason)
		p.waits = reason == policyv1alpha1.ReasonAwaitingReplicas
	case policyv1alpha1.LabelCanary:
		its := isCanary(r) && scopeOf(r) == canary.Scope{Selector: q.servers, Percent: int32(q.percent)}
		p.done, p.failed = its && !isPaused(r), its && isPaused(r)
	case policyv1alpha1.LabelDraft:
		p.done = r.Status.Stage == policyv1alpha1.StageDraft || r.Status.Stage == policyv1alpha1.StageSuperseded
	default:
		p.done = r.Status.Stage == policyv1alpha1.StageShadow
	}
	// What is in force stays it until another is promoted.
	p.failed = p.failed || !p.done && q.stage != policyv1alpha1.LabelActive && reason == policyv1alpha1.ReasonInForce
	return p
}

// active says whether a revision that is labelled active came into force, or will not.
func (q *request) active(r *policyv1alpha1.PolicyRevision, reason string) (done, failed bool) {
	was := q.was(r.Name)
	switch reason {
	case policyv1alpha1.ReasonInForce:
		// Where its label was active before, by another ConfigMap with the same content, nothing is promoted.
		return promotion(r) > promotion(was) || !q.anew && was.Status.LabelledStage == policyv1alpha1.LabelledActive, false
	case policyv1alpha1.ReasonSuperseded, policyv1alpha1.ReasonConflict:
		return false, true
	case policyv1alpha1.ReasonAwaitingReplicas:
		return false, r.IsRefused()
	}
	return false, false
}

// see waits until what was asked for is so, where that is asked for; else it tells only of what does not come about at once, and what it
// waits for.
func (r *rollout) see(ctx context.Context, t *terminal.Terminal, c client.Client, q *request) error {
	if r.wait {
		return r.follow(ctx, t, c, q)
	}
	if r.glance == 0 || !q.governs() {
		return nil
	}
	last, err := q.until(ctx, c, r.glance/10, r.glance)
	if err != nil && !wait.Interrupted(err) {
		last.words = err.Error()
	}
	if last.done || ctx.Err() != nil {
		return nil //nolint:nilerr // Whoever interrupts it has what was asked for: the label is set.
	}
	t.Printf("%s: not in effect so far: %s. `metalaw policy history` tells how far it is\n", q.head, terminal.Plain(last.so()))
	return nil
}

// until looks how far a request has come until that is decided, or time is over.
func (q *request) until(ctx context.Context, c client.Client, every, timeout time.Duration) (last progress, err error) {
	err = wait.PollUntilContextTimeout(ctx, every, timeout, true, func(ctx context.Context) (bool, error) {
		all, err := revisions(ctx, c)
		if err != nil {
			return false, err
		}
		last = q.look(all)
		return last.done || last.failed, nil
	})
	return last, err
}

// follow waits until what was asked for is so, and says what it waits for when it gives up.
func (r *rollout) follow(ctx context.Context, t *terminal.Terminal, c client.Client, q *request) error {
	began := time.Now()
	last, err := q.until(ctx, c, time.Second, r.timeout)
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("interrupted after %s: %s. %s", time.Since(began).Round(time.Second), last.so(), r.remains(q))
	case wait.Interrupted(err):
		return fmt.Errorf("it did not come about within %s: %s. %s", r.timeout, last.so(), r.remains(q))
	case err != nil:
		return fmt.Errorf("how far it has come is not known: %w. %s", err, r.remains(q))
	case last.failed && last.waits:
		return fmt.Errorf("it did not come about: %s. %s", last.words, r.remains(q))
	case last.failed:
		return fmt.Errorf("it did not come about: %s", last.words)
	}
	t.Printf("%s\n", last.words)
	return nil
}

// so is how far a request had come when it was looked at last.
func (p progress) so() string {
	if p.words == "" {
		return "the API server has not said yet how far it has come"
	}
	return p.words
}

// remains says that what was asked for stays so when nobody waits for it any more, and how it is withdrawn.
func (r *rollout) remains(q *request) string {
	words := fmt.Sprintf("ConfigMap %s is labelled %s, so that it stays asked for", q.head, q.stage)
	shadow := r.command("promote " + q.head + " --stage " + policyv1alpha1.LabelShadow)
	switch q.stage {
	case policyv1alpha1.LabelActive:
		words += "; to withdraw it while it is not in force: " + shadow
	case policyv1alpha1.LabelCanary:
		words += "; to withdraw it: " + shadow
	}
	return words
}

// ask remembers what there is before a head is brought to a stage.
func ask(ctx context.Context, c client.Client, head *corev1.ConfigMap, to change, revision string) (*request, error) {
	files, err := filesOf(ctx, c, head)
	if err != nil {
		return nil, err
	}
	digest := ""
	if files != nil {
		digest = files.Digest()
	}
	all, err := revisions(ctx, c)
	return &request{change: to, head: head.Name, bundle: head.Labels[policyv1alpha1.BundleLabel], digest: digest, revision: revision,
		before: all, files: files}, err
}
