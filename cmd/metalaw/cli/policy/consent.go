// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/internal/canary"
)

// weigh says before a head is labelled what speaks against it, and asks where somebody has to consent. It is done where what is asked
// for is so already, and where it is on its way already and nobody waits for it.
func (r *rollout) weigh(ctx context.Context, t *terminal.Terminal, c client.Client, head *corev1.ConfigMap, q *request) (done bool, err error) {
	if words := q.standsStill(head); words != "" {
		return false, errors.New(words)
	}
	switch q.stage {
	case policyv1alpha1.LabelActive:
		others, err := headsMeta(ctx, c, head.Namespace)
		if err != nil {
			return false, err
		}
		one := q.already(head, others)
		if one == nil {
			tellHidden(ctx, t, c, q.files)
			return false, r.fit(ctx, t, q)
		}
		if !one.AwaitsReplicas() {
			t.Printf("%s: revision %s is in force already, by promotion %d; nothing was changed\n", head.Name, one.Name, promotion(one))
			return true, nil
		}
		q.onItsWay = true
		why := meta.FindStatusCondition(one.Status.Conditions, policyv1alpha1.ConditionActive).Message
		t.Printf("%s: revision %s is on its way into force already (%s); nothing was changed\n", head.Name, one.Name, terminal.Plain(why))
		return !r.wait, nil
	case policyv1alpha1.LabelCanary:
		tellHidden(ctx, t, c, q.files)
		return false, r.tellScope(ctx, t, c, q)
	}
	return false, nil
}

// fit asks for consent where the revision ought not to come into force for every server.
func (r *rollout) fit(ctx context.Context, t *terminal.Terminal, q *request) error {
	for i := range q.before {
		if one := &q.before[i]; q.concerns(one) {
			if words := r.unfit(one); words != "" {
				return r.consent(ctx, t, words, "promote "+one.Name+" to every server all the same")
			}
		}
	}
	return nil
}

// consent says what speaks against something, and wants a yes, where nobody has said so on the command line.
func (r *rollout) consent(ctx context.Context, t *terminal.Terminal, words, what string) error {
	if !r.yes && !t.Asks {
		return fmt.Errorf("nothing was changed: %s\nTo %s, add --yes", words, what)
	}
	t.Notef("%s", words)
	if !r.yes && !t.Confirm(ctx, what+"?") {
		return errors.New("nothing was changed")
	}
	return nil
}

// keeper is a program that keeps an object as it is in a repository; an edit by hand would be undone. It is known by a mark, which
// stays when the program goes: verb is what kubectl takes to remove it, and key its name.
type keeper struct {
	program, object, verb, key string
}

// keeperOf finds out whether Argo CD, Flux or Helm manages an object, by the marks that they document:
// https://argo-cd.readthedocs.io/en/stable/user-guide/resource_tracking/, https://fluxcd.io/flux/components/kustomize/kustomizations/
// and https://fluxcd.io/flux/components/helm/helmreleases/. Argo CD leaves no mark of its own where it tracks by the usual label, as its
// releases before 3.0 do: that counts where Argo CD wrote the object. Alone its writing says nothing, as it is remembered for good.
func keeperOf(o client.Object) (keeper, bool) {
	for _, mark := range []struct {
		program, verb, key string
		in                 map[string]string
		counts             bool
	}{
		{"Argo CD", "annotate", "argocd.argoproj.io/tracking-id", o.GetAnnotations(), true},
		{"Argo CD", "label", "argocd.argoproj.io/instance", o.GetLabels(), true},
		{"Flux", "label", "kustomize.toolkit.fluxcd.io/name", o.GetLabels(), true},
		{"Flux", "label", "helm.toolkit.fluxcd.io/name", o.GetLabels(), true},
		{"Helm", "annotate", "meta.helm.sh/release-name", o.GetAnnotations(), true},
		{"Argo CD", "label", "app.kubernetes.io/instance", o.GetLabels(), slices.ContainsFunc(o.GetManagedFields(), byArgoCD)},
	} {
		if value := mark.in[mark.key]; value != "" && mark.counts {
			name, _, _ := strings.Cut(value, ":")
			return keeper{mark.program, name, mark.verb, mark.key}, true
		}
	}
	return keeper{}, false
}

// byArgoCD knows the names under which Argo CD writes.
func byArgoCD(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == "argocd-controller" || entry.Manager == "argocd-application-controller"
}

// tell says who keeps a head, the change for its repository, and how to go on where the keeper is gone.
func (k keeper) tell(t *terminal.Terminal, head *corev1.ConfigMap, to change) error {
	t.Notef("ConfigMap %s is kept by %s (%s), which would undo a change made here. %s",
		head.Name, k.program, terminal.Plain(k.object), to.advice(head))
	t.Printf("%s", to.forGit(head))
	t.Notef("Where %s does not keep it any more, take its mark away, and ask again: `kubectl %s configmap %s -n %s %s-`",
		k.program, k.verb, head.Name, head.Namespace, k.key)
	return terminal.ErrIncomplete
}

// tellScope counts the servers in the scope of a canary, and warns where there are none, or where another canary has them as well.
// Whoever may not see servers can still ask for the canary.
func (r *rollout) tellScope(ctx context.Context, t *terminal.Terminal, c client.Client, q *request) error {
	var list v1alpha1.ServerList
	if err := c.List(ctx, &list); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		t.Notef("how many servers are in its scope is not known: %v", access.Explain(err, "list", access.Servers))
		return nil
	}
	t.Notef("%s", r.reach(q, list.Items))
	return nil
}

// reach says whom a canary would govern among servers. Of two canaries that would have a server that one has it which began later in its
// scope.
func (r *rollout) reach(q *request, servers []v1alpha1.Server) string {
	scope := canary.Scope{Selector: q.servers, Percent: int32(q.percent)}
	mine := within(servers, scope, q.bundle)
	var began *policyv1alpha1.CanaryStatus // it governs in this scope already, and its time counts
	for i := range q.before {
		if one := &q.before[i]; q.concerns(one) && isCanary(one) && scopeOf(one) == scope {
			began = one.Status.Canary
		}
	}
	words := fmt.Sprintf("in its scope (%s) are now %d of %s", scope, len(mine), terminal.Count(len(servers), "server"))
	if len(mine) == 0 {
		words += "\nWarning: the canary governs no server until one comes into its scope; " +
			"look at the labels with `kubectl get servers --show-labels`"
	}
	for i := range q.before {
		other := &q.before[i]
		if !isCanary(other) || isPaused(other) || q.concerns(other) {
			continue
		}
		both := len(within(mine, scopeOf(other), other.Spec.Bundle))
		if both == 0 {
			continue
		}
		later := "this one"
		if began != nil && other.Status.Canary != nil && other.Status.Canary.Since.After(began.Since.Time) {
			later = "that one"
		}
		words += fmt.Sprintf("\nWarning: canary %s (%s) has %d of them in its scope as well, and %s, which began later, governs these. "+
			"To end that one: %s", other.Name, scopeOf(other), both, later, r.ending(other))
	}
	return words
}

func within(servers []v1alpha1.Server, scope canary.Scope, bundle string) []v1alpha1.Server {
	matcher := scope.Matcher(bundle)
	return slices.DeleteFunc(slices.Clone(servers), func(s v1alpha1.Server) bool { return !matcher.Covers(s.Labels, s.Spec.SystemUUID) })
}

func isCanary(r *policyv1alpha1.PolicyRevision) bool {
	return r.Status.Stage == policyv1alpha1.StageCanary
}

// isPaused says that a revision is a canary that has cost more than its budget.
func isPaused(r *policyv1alpha1.PolicyRevision) bool {
	return isCanary(r) && r.Status.Canary != nil && r.Status.Canary.Paused
}

func scopeOf(r *policyv1alpha1.PolicyRevision) canary.Scope {
	if r.Status.Canary == nil {
		return canary.Scope{}
	}
	return canary.Scope{Selector: r.Status.Canary.Selector, Percent: r.Status.Canary.Percent}
}

// underWay says what is on its way into force, or governs a part of the fleet, and how that is ended: a rollback of what is in force
// ends no canary. The promotion of the target waits because it is what is asked for, and is left out; nil for no target.
func (r *rollout) underWay(all []policyv1alpha1.PolicyRevision, target *policyv1alpha1.PolicyRevision) []string {
	var words []string
	for i := range all {
		one := &all[i]
		switch {
		case one.AwaitsReplicas() && one == target:
		case one.AwaitsReplicas():
			active := meta.FindStatusCondition(one.Status.Conditions, policyv1alpha1.ConditionActive)
			words = append(words, fmt.Sprintf("the promotion of revision %s has not come into force yet (%s); to withdraw it: %s",
				one.Name, active.Message, r.ending(one)))
		case isCanary(one):
			is := "governs as a canary: " + scopeOf(one).String()
			if isPaused(one) {
				is = "is a canary that has paused itself: " + one.Status.Canary.Cost()
			}
			words = append(words, fmt.Sprintf("revision %s %s; to end it: %s", one.Name, is, r.ending(one)))
		}
	}
	return words
}

// ending is the command that takes a revision back into the shadow.
func (r *rollout) ending(one *policyv1alpha1.PolicyRevision) string {
	return r.command("promote " + one.Status.Head + " --stage " + policyv1alpha1.LabelShadow)
}

// command is a command line of this group of commands, for bundles in the same namespace.
func (r *rollout) command(words string) string {
	if r.namespace != "" && r.namespace != defaultNamespace {
		words += " -n " + r.namespace
	}
	return "`metalaw policy " + words + "`"
}

// unfit says why a revision ought not to come into force for every server; empty where nothing speaks against it.
func (r *rollout) unfit(one *policyv1alpha1.PolicyRevision) string {
	if !isPaused(one) {
		return ""
	}
	return fmt.Sprintf("revision %s is a canary that has paused itself: %s. Promoted as it is, it governs the whole fleet. To end the canary: %s; "+
		"then mend the bundle, and try the new version", one.Name, one.Status.Canary.Cost(), r.ending(one))
}

// standsStill says of a canary that has paused itself that to ask for the same scope again changes nothing; empty where it does.
func (q *request) standsStill(head client.Object) string {
	if q.stage != policyv1alpha1.LabelCanary || head.GetLabels()[policyv1alpha1.StageLabel] != q.stage {
		return ""
	}
	for i := range q.before {
		if one := &q.before[i]; q.concerns(one) && isPaused(one) && scopeOf(one) == (canary.Scope{Selector: q.servers, Percent: int32(q.percent)}) {
			return fmt.Sprintf("nothing was changed: revision %s is a canary with this scope already, and has paused itself: %s. "+
				"It takes no further server. Give it another scope, or end it with --stage shadow and mend the bundle. If it was "+
				"not to blame, --stage canary after that begins it anew", one.Name, one.Status.Canary.Cost())
		}
	}
	return ""
}

// already is the revision that is asked for, where it is in force by the label of this head or its promotion by that waits, and nothing was
// asked for since; nil else. To label the head anew would be another promotion, where the first one comes into force in between.
func (q *request) already(head client.Object, others []metav1.PartialObjectMetadata) *policyv1alpha1.PolicyRevision {
	is := policyv1alpha1.InForce(q.before)
	waiting := 0
	for i := range q.before {
		if q.before[i].AwaitsReplicas() {
			waiting++
			is = &q.before[i]
		}
	}
	if is == nil || waiting > 1 || !q.concerns(is) || head.GetLabels()[policyv1alpha1.StageLabel] != policyv1alpha1.LabelActive ||
		labelOf(is, head.GetName()) != policyv1alpha1.LabelledActive {
		return nil
	}
	at := activatedAt(head)
	for i := range others {
		o := &others[i]
		if o.Name == head.GetName() || o.Labels[policyv1alpha1.StageLabel] != policyv1alpha1.LabelActive {
			continue
		}
		// The manager may not have seen yet what was asked for later.
		if later := activatedAt(o).Compare(at); later > 0 || later == 0 && waiting == 0 {
			return nil
		}
	}
	return is
}

// activatedAt is when a head was activated last, as admission recorded it; the beginning of time where it recorded nothing.
func activatedAt(o client.Object) time.Time {
	record := strings.TrimSuffix(o.GetAnnotations()[policyv1alpha1.ActivatedByAnnotation], policyv1alpha1.ActivationRestored)
	at, err := time.Parse(time.RFC3339Nano, record[strings.LastIndex(record, " ")+1:])
	if err != nil {
		return time.Time{}
	}
	return at
}
