// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/bundle"
)

func rollbackCommand() *cobra.Command {
	r := &rollout{}
	var to string
	cmd := &cobra.Command{
		Use:   "rollback [--to REVISION]",
		Short: "Bring the revision that was in force before back into force, beside canaries that stay",
		Long: "Promotes the revision that was in force before the present one, the built-in one where only one was ever promoted, or the one " +
			"that --to names. Called again while that waits for a manager it changes nothing, and --wait follows it. Called again " +
			"once it is in force it goes forward again to where it came from, and says so. Its ConfigMap is labelled active " +
			"again; where it is gone, or holds something else by now, one is made of what the PolicyRevision holds. Servers that the present " +
			"revision halted adopt the former one at once, others where they rest.\n\n" +
			"It ends no canary: the servers that one governs stay under it. It goes back to a revision that is a canary now only where --to " +
			"names it, and promotes that to every server. For a canary that has paused itself it needs a confirmation or --yes. A new " +
			"promotion that waits is overtaken by it, and over. Where there is either, it names the command that ends it, and goes back only " +
			"after a confirmation, with --yes, or where --to names a revision.\n\n" +
			"It takes the verb activate on policyrevisions, for the bundle and for the one in force. A ConfigMap that Argo CD, Flux or " +
			"Helm keeps is not changed: the change for the repository is printed.\n\n" +
			"Exit codes: 0 it is promoted, and with --wait in force. 1 it was refused, is kept by another program, was interrupted, did not " +
			"come about in time, or there is nothing to go back to. 2 the command line makes no sense.",
		Example: "  {{.}} policy rollback --wait\n  {{.}} policy rollback --to fleet-1.3.0-9b1d0a77c2",
		Args:    cobra.MatchAll(usage.NoArgs, r.check),
		RunE: r.flags.Run(r.tell(told{Stage: policyv1alpha1.LabelActive},
			func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, _ []string) error {
				return r.goBack(ctx, t, c, to)
			})),
	}
	r.register(cmd)
	cmd.Flags().StringVar(&to, "to", "", "the PolicyRevision to go back to; the one before the present one where it is left out")
	// The error is about a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("to", r.flags.Complete(0, revisionNames))
	return cmd
}

// goBack promotes the former revision, or the one that is named.
func (r *rollout) goBack(ctx context.Context, t *terminal.Terminal, c client.Client, to string) error {
	all, err := revisions(ctx, c)
	if err != nil {
		return untouched(ctx, err)
	}
	target, err := r.target(ctx, t, all, to)
	if err != nil {
		return untouched(ctx, err)
	}
	if words := forward(all, target, to); words != "" {
		t.Notef("%s", words)
	}
	head, err := r.headOf(ctx, c, all, target)
	if err != nil {
		return untouched(ctx, err)
	}
	if head == nil {
		return r.restore(ctx, t, c, target)
	}
	return r.apply(ctx, t, c, head, change{stage: policyv1alpha1.LabelActive}, target.Name)
}

// target is the revision to go back to. Where a canary or a promotion is under way, that is what may be meant to end, and to go back
// does more than that: whoever named no revision is asked. Of the target's own promotion nobody is asked again.
func (r *rollout) target(ctx context.Context, t *terminal.Terminal, all []policyv1alpha1.PolicyRevision, to string) (
	*policyv1alpha1.PolicyRevision, error,
) {
	target, err := former(all, to)
	if err != nil {
		return nil, errors.New(strings.Join(append(r.underWay(all, nil), err.Error()), "\n"))
	}
	words := r.underWay(all, target)
	if len(words) == 0 {
		return target, nil
	}
	if to != "" {
		t.Notef("%s", strings.Join(words, "\n"))
		return target, nil
	}
	return target, r.consent(ctx, t, strings.Join(words, "\n"),
		fmt.Sprintf("go back from %s to %s all the same, for every server", all[0].Name, target.Name))
}

// former is the revision to go back to: the one named, or else the one to which a rollback is under way, or else the one that was in
// force before the present one. Before the first promotion that was the built-in one. One that is a canary now is on its way up and not
// the one before.
func former(all []policyv1alpha1.PolicyRevision, name string) (*policyv1alpha1.PolicyRevision, error) {
	if name != "" {
		if named := lists.Find(all, func(r *policyv1alpha1.PolicyRevision) bool { return r.Name == name }); named != nil {
			return named, nil
		}
		return nil, fmt.Errorf("there is no PolicyRevision %s; `metalaw policy history` lists them", name)
	}
	if missing := policyv1alpha1.PromotionMissing(all); missing != nil {
		return nil, fmt.Errorf("no revision is in force: those of a backup were promoted in another cluster; "+
			"--to %s promotes the one that was in force there, and `metalaw policy history` lists the others", missing.Name)
	}
	if len(all) == 0 || promotion(&all[0]) == 0 {
		return nil, fmt.Errorf("there is nothing to go back to: no revision was ever promoted, and the built-in one is in force")
	}
	others := all[1:]
	if r := lists.Find(others, returns); r != nil {
		return r, nil
	}
	var builtIn, rises *policyv1alpha1.PolicyRevision
	for i := range others {
		r := &others[i]
		switch {
		case promotion(r) > 0 && isCanary(r):
			rises = r
		case promotion(r) > 0:
			return r, nil
		case wasBuiltIn(r) && (builtIn == nil || since(r).After(since(builtIn))):
			builtIn = r
		}
	}
	if builtIn == nil {
		return nil, nothingFormer(&all[0], rises)
	}
	return builtIn, nil
}

// returns says of a revision other than the one in force that it was in force before and its promotion waits: a rollback that is under way.
func returns(r *policyv1alpha1.PolicyRevision) bool {
	return r.AwaitsReplicas() && !isCanary(r) && (promotion(r) > 0 || wasBuiltIn(r))
}

// wasBuiltIn says that a revision governed because it is built in, before the first promotion.
func wasBuiltIn(r *policyv1alpha1.PolicyRevision) bool {
	return r.Spec.Source == nil && r.Status.Stage == policyv1alpha1.StageSuperseded
}

// nothingFormer says why there is no revision to go back to from the one in force. rises is one that was in force before and is on its way
// up again; nil where there is none.
func nothingFormer(inForce, rises *policyv1alpha1.PolicyRevision) error {
	switch {
	case rises != nil:
		return fmt.Errorf("there is nothing to go back to but %s, which is on its way to more servers as it is: --to %s promotes it",
			rises.Name, rises.Name)
	case inForce.Spec.Source == nil:
		return fmt.Errorf("there is nothing to go back to: %s, which is built in, is in force, and no other ever was", inForce.Name)
	}
	return fmt.Errorf("there is nothing to go back to: one revision was ever promoted, and the built-in one that was in force before " +
		"is gone. `metalaw policy history` lists the revisions; --to REVISION goes to one of them")
}

func since(r *policyv1alpha1.PolicyRevision) time.Time {
	if r.Status.StageSince == nil {
		return time.Time{}
	}
	return r.Status.StageSince.Time
}

// forward says that a revision which nobody named is younger than the one in force, as it is after a rollback: to go to it is to
// undo that. Empty where it is older.
func forward(all []policyv1alpha1.PolicyRevision, target *policyv1alpha1.PolicyRevision, named string) string {
	if named != "" || len(all) == 0 || !target.CreationTimestamp.After(all[0].CreationTimestamp.Time) {
		return ""
	}
	older := "; `metalaw policy history` lists older ones for --to"
	for i := range all {
		if r := &all[i]; r.Name != target.Name && i > 0 && promotion(r) > 0 && !isCanary(r) {
			older = fmt.Sprintf("; for the older %s give --to %s", r.Spec.Version, r.Name)
			break
		}
	}
	return fmt.Sprintf("this goes forward again to %s, which is younger than %s, the one in force%s", target.Name, all[0].Name, older)
}

// headOf finds a ConfigMap that holds a revision: the one that it came from, or the one that restore made of it, which the revision may not
// know of yet. It is nil where none of these exists and holds the revision still.
func (r *rollout) headOf(ctx context.Context, c client.Client, all []policyv1alpha1.PolicyRevision, revision *policyv1alpha1.PolicyRevision) (
	*corev1.ConfigMap, error,
) {
	name := revision.Status.Head
	if name == "" && revision.Spec.Source != nil {
		name = revision.Spec.Source.Name
	}
	if name != "" {
		if head, _, err := r.holding(ctx, c, all, revision, name); head != nil || err != nil {
			return head, err
		}
	}
	for i := 1; i <= mostNames; i++ {
		head, exists, err := r.holding(ctx, c, all, revision, restoredName(revision, i))
		if apierrors.IsForbidden(err) { // by a role that names its ConfigMaps; to make one anew it takes another right
			return nil, nil
		}
		if head != nil || !exists || err != nil {
			return head, err
		}
	}
	return nil, nil
}

// holding is the ConfigMap with a name, where it holds a revision; nil where it does not. It says whether there is one of that name.
func (r *rollout) holding(ctx context.Context, c client.Client, all []policyv1alpha1.PolicyRevision, revision *policyv1alpha1.PolicyRevision,
	name string,
) (head *corev1.ConfigMap, exists bool, err error) {
	head = &corev1.ConfigMap{}
	err = c.Get(ctx, types.NamespacedName{Namespace: r.namespace, Name: name}, head)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, access.Explain(err, "get", access.ConfigMaps)
	}
	digest, whole, err := digestOf(ctx, c, head)
	if err != nil || !whole || !only(all, revision, head.Labels[policyv1alpha1.BundleLabel], digest) {
		return nil, true, err
	}
	return head, true, nil
}

// only says that a revision, and no other, is what the manager makes of files with a digest.
func only(all []policyv1alpha1.PolicyRevision, revision *policyv1alpha1.PolicyRevision, bundleName, digest string) bool {
	for i := range all {
		if r := &all[i]; r.Holds(bundleName, digest) && r.Name != revision.Name {
			return false
		}
	}
	return revision.Holds(bundleName, digest)
}

// digestOf is the digest of what a head holds, as the manager puts it together; false where that is not whole.
func digestOf(ctx context.Context, c client.Client, head *corev1.ConfigMap) (digest string, whole bool, err error) {
	files, err := filesOf(ctx, c, head)
	if err != nil || files == nil {
		return "", false, err
	}
	return files.Digest(), true, nil
}

// filesOf are the files of a head, as the manager puts them together; nil where they are not whole.
func filesOf(ctx context.Context, c client.Client, head *corev1.ConfigMap) (_ bundle.Files, err error) {
	files, found := bundle.Assemble(head.Name, head.Data, func(holder, file string) (string, bool) {
		part := &corev1.ConfigMap{}
		if getErr := c.Get(ctx, types.NamespacedName{Namespace: head.Namespace, Name: holder}, part); getErr != nil {
			if !apierrors.IsNotFound(getErr) {
				err = access.Explain(getErr, "get", access.ConfigMaps)
			}
			return "", false
		}
		text, ok := part.Data[file]
		return text, ok && part.Labels[policyv1alpha1.BundlePartLabel] == head.Labels[policyv1alpha1.BundleLabel]
	})
	if err != nil || found.HasErrors() || len(head.BinaryData) > 0 {
		return nil, err
	}
	return files, nil
}

// mostNames is how many names are tried for a ConfigMap that is made anew.
const mostNames = 20

// restoredName is the i-th name, counted from 1, that is tried for the ConfigMap which is made of a revision.
func restoredName(revision *policyv1alpha1.PolicyRevision, i int) string {
	if i == 1 {
		return revision.Name
	}
	return fmt.Sprintf("%s-%d", revision.Name, i)
}

// restore makes the ConfigMap of a revision anew, under a name that is free, with the whole content that the revision holds.
func (r *rollout) restore(ctx context.Context, t *terminal.Terminal, c client.Client, revision *policyv1alpha1.PolicyRevision) error {
	files, err := bundle.Unpack(revision.Spec.Content)
	if err != nil {
		return err
	}
	head := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Labels: map[string]string{
			policyv1alpha1.BundleLabel: revision.Spec.Bundle, policyv1alpha1.StageLabel: policyv1alpha1.LabelActive}},
		Data: make(map[string]string, len(files)),
	}
	for name, data := range files {
		head.Data[name] = string(data)
	}
	asked, err := ask(ctx, c, head, change{stage: policyv1alpha1.LabelActive}, revision.Name)
	if err == nil {
		err = r.fit(ctx, t, asked)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return untouched(ctx, err)
	}
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), changesTime)
	defer cancel()
	for i := 1; i == 1 || apierrors.IsAlreadyExists(err) && i <= mostNames; i++ {
		head.ObjectMeta = metav1.ObjectMeta{Namespace: head.Namespace, Name: restoredName(revision, i), Labels: head.Labels}
		err = c.Create(whole, head, client.FieldOwner(access.FieldManager))
	}
	if err != nil {
		return access.Explain(err, "create", access.ConfigMaps)
	}
	asked.head = head.Name
	why := "the ConfigMap that it came from is gone or holds something else, and this one is made of the PolicyRevision"
	if revision.Spec.Source == nil {
		why = "it is built in, and this ConfigMap is made of the PolicyRevision"
	}
	t.Printf("%s: active; %s\n", head.Name, why)
	return r.see(ctx, t, c, asked)
}
