// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/internal/canary"
)

// rollout is what promote and rollback share.
type rollout struct {
	flags     access.Flags
	namespace string
	wait      bool
	yes       bool
	timeout   time.Duration
	// glance is how long to look, without wait, whether it comes about at once; 0 does not look.
	glance time.Duration
	output terminal.Output
}

// glanceTime is longer than managers take that compile a bundle and have nothing else to do.
const glanceTime = 3 * time.Second

func (r *rollout) register(cmd *cobra.Command) {
	r.flags.Register(cmd)
	r.glance = glanceTime
	f := cmd.Flags()
	f.StringVarP(&r.namespace, "namespace", "n", defaultNamespace, "namespace of the manager, where bundles are kept")
	f.BoolVar(&r.wait, "wait", false, "wait until the manager says that it is so")
	f.DurationVar(&r.timeout, "timeout", 2*time.Minute, "how long to wait")
	f.BoolVarP(&r.yes, "yes", "y", false, "do not ask for a confirmation")
	r.output.Register(cmd)
}

// check says what of the flags makes no sense.
func (r *rollout) check(*cobra.Command, []string) error {
	if r.timeout <= 0 {
		return usage.Errorf("--timeout=%s: write a time above zero, such as 2m", r.timeout)
	}
	return nil
}

func promoteCommand() *cobra.Command {
	r := &rollout{}
	to := change{stage: policyv1alpha1.LabelActive}
	cmd := &cobra.Command{
		Use:   "promote CONFIGMAP [--stage shadow|canary|active] [--servers SELECTOR] [--percent N]",
		Short: "Bring a bundle a stage further: beside the one in force, to some servers, or to all",
		Long: "Sets the label " + policyv1alpha1.StageLabel + " of a bundle's ConfigMap. As shadow it is evaluated beside the one in force and " +
			"only counts what it would have done otherwise. As canary it governs the servers in its scope. As active it comes into force " +
			"for all, once every running manager has compiled it. A server adopts it where it rests. Canary and active take the verb activate on " +
			"policyrevisions. " +
			"A ConfigMap that Argo CD, Flux or Helm keeps is not changed: the change for the repository is printed. A canary that has paused " +
			"itself comes into force for all only after a confirmation, or with --yes. Where " +
			"the revision is in force already, it says so and leaves it as it is. A canary or a promotion that does not come about within " +
			"three seconds says what it waits for. " +
			"Of a bundle with wipe.hidden: Fail it says how many servers that would stop, and of how many it is not known.\n\n" +
			"Exit codes: 0 the label is set, and with --wait the manager agrees. 1 it was refused, is kept by another program, " +
			"did not come about in time, or was interrupted. 2 the command line makes no sense.",
		Example: "  {{.}} policy promote fleet-1.4.0 --stage shadow\n" +
			"  {{.}} policy promote fleet-1.4.0 --stage canary --servers 'rack in (r1, r2)'\n  {{.}} policy promote fleet-1.4.0 --wait",
		Args: cobra.MatchAll(usage.OneArg("promote takes the name of one ConfigMap; `metalaw policy history` lists them"),
			func(*cobra.Command, []string) error { return to.check(policyv1alpha1.Stages()) }, r.check),
		RunE: r.flags.Run(func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, args []string) error {
			return r.tell(told{Stage: to.stage}, func(ctx context.Context, t *terminal.Terminal, c client.WithWatch,
				args []string) error {
				head, err := findHead(ctx, c, r.namespace, args[0])
				if err != nil {
					return untouched(ctx, err)
				}
				return r.apply(ctx, t, c, head, to, "")
			})(ctx, t, c, args)
		}),
	}
	r.register(cmd)
	f := cmd.Flags()
	f.StringVar(&to.stage, "stage", to.stage, "the stage to bring it to: draft, shadow, canary or active")
	f.StringVar(&to.servers, "servers", "", "labels of the servers that a canary governs")
	f.IntVar(&to.percent, "percent", 0, "share of the servers that a canary governs, 1 to 100; with --servers, of those")
	terminal.Offer(cmd, "stage", policyv1alpha1.Stages())
	cmd.ValidArgsFunction = r.flags.Complete(1, headNames(&r.namespace))
	return cmd
}

// check says what of the change cannot be asked for.
func (c change) check(stages []string) error {
	scope := c.scope()
	switch {
	case !slices.Contains(stages, c.stage):
		return usage.Errorf("--stage=%s: there are draft, shadow, canary and active", c.stage)
	case c.stage != policyv1alpha1.LabelCanary && len(scope) > 0:
		return usage.Errorf("--servers and --percent belong to --stage canary")
	case c.stage != policyv1alpha1.LabelCanary:
		return nil
	}
	_, faults := canary.Parse(scope)
	for _, f := range faults {
		switch f.Kind {
		case canary.NoScope:
			return usage.Errorf("whom does the canary govern? Give --servers, --percent, or both")
		case canary.NoSelector:
			return usage.Errorf("--servers=%q: %v", f.Value, f.Cause)
		case canary.SelectsAll:
			return usage.Errorf("--servers=%q selects every server; for all take --stage active, and for a share of all --percent alone", f.Value)
		case canary.TooLong:
			return usage.Errorf("--servers=%q: %v; give the servers a label of their own to select by, or take --percent", f.Value, f.Cause)
		case canary.NoShare:
			return usage.Errorf("--percent=%s: write 1 to 100", f.Value)
		}
	}
	return nil
}

// apply relabels a head, unless another program keeps it as it is, or somebody has to consent first and does not. The revision is the
// one that has to come of it; empty for the one of what the head holds.
func (r *rollout) apply(ctx context.Context, t *terminal.Terminal, c client.Client, head *corev1.ConfigMap, to change, revision string) error {
	asked := &request{change: to, head: head.Name}
	if r.wait || to.governs() {
		var err error
		if asked, err = ask(ctx, c, head, to, revision); err != nil {
			return untouched(ctx, err)
		}
	}
	if done, err := r.weigh(ctx, t, c, head, asked); done || err != nil {
		return untouched(ctx, err)
	}
	if asked.onItsWay {
		return r.follow(ctx, t, c, asked)
	}
	if k, kept := keeperOf(head); kept {
		return k.tell(t, head, to)
	}
	if ctx.Err() != nil {
		return untouched(ctx, ctx.Err())
	}
	anew, record := to.again(head), head.Annotations[policyv1alpha1.ActivatedByAnnotation]
	if err := r.label(ctx, c, head, to); err != nil {
		return err
	}
	if anew {
		asked.anew = true
		if now := head.Annotations[policyv1alpha1.ActivatedByAnnotation]; now != record {
			asked.record = now
		}
	}
	t.Printf("%s: %s\n", head.Name, to.stage)
	return r.see(ctx, t, c, asked)
}

// untouched says of an error before anything was changed that somebody has interrupted the command, where that is why.
func untouched(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted before anything was changed")
	}
	return err
}

// label sets the stage of a head. One that is labelled active already gets another label first, because an unchanged one is no promotion.
// Whoever interrupts that does not leave it so, nor without knowing whether it was set.
func (r *rollout) label(ctx context.Context, c client.Client, head *corev1.ConfigMap, to change) error {
	if !to.again(head) {
		return patchWhole(ctx, c, head, to)
	}
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), changesTime)
	defer cancel()
	if err := rehearse(whole, c, head, to); err != nil {
		return err
	}
	record := head.Annotations[policyv1alpha1.ActivatedByAnnotation]
	between := change{stage: policyv1alpha1.LabelDraft, keepScope: true}
	if err := patchStage(whole, c, head, between); err != nil {
		return err
	}
	if err := patchStage(whole, c, head, to); err != nil {
		return leftAt(head, err)
	}
	if head.Annotations[policyv1alpha1.ActivatedByAnnotation] != record {
		return nil
	}
	return r.labelSlowly(ctx, c, head, between, to)
}

// rehearse asks admission, storing nothing, whether a ConfigMap with what a head holds may have a stage: where a head is labelled so
// already, that takes two changes, of which the first alone would be left where the second is refused. What else is wrong shows then.
func rehearse(ctx context.Context, c client.Client, head *corev1.ConfigMap, to change) error {
	tried := &corev1.ConfigMap{Data: head.Data, BinaryData: head.BinaryData, ObjectMeta: metav1.ObjectMeta{
		Namespace: head.Namespace, GenerateName: head.Name + "-", Labels: maps.Clone(head.Labels)}}
	tried.Labels[policyv1alpha1.StageLabel] = to.stage
	err := c.Create(ctx, tried, client.DryRunAll, client.FieldOwner(access.FieldManager))
	if access.Denied(err) {
		return access.Explain(err, "patch", access.ConfigMaps)
	}
	return nil
}

// labelSlowly sets the stage of a head that is active already where nobody records activations, so that the manager has to see the label
// change. Whoever interrupts that has the head labelled as before.
func (r *rollout) labelSlowly(ctx context.Context, c client.Client, head *corev1.ConfigMap, between, to change) error {
	if err := patchWhole(ctx, c, head, between); err != nil {
		return err
	}
	err := r.noticed(ctx, c, head)
	interrupted := ctx.Err() != nil
	if err != nil && !interrupted {
		return leftAt(head, err)
	}
	if again := patchWhole(ctx, c, head, to); again != nil {
		return leftAt(head, again)
	}
	if err != nil {
		return fmt.Errorf("interrupted before the manager was seen to notice: ConfigMap %s is labelled %s as before, and that may be no "+
			"promotion; ask again: %w", head.Name, to.stage, err)
	}
	return nil
}

// patchWhole sets the stage of a head, also for somebody who has interrupted the command.
func patchWhole(ctx context.Context, c client.Client, head *corev1.ConfigMap, to change) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changesTime)
	defer cancel()
	return patchStage(ctx, c, head, to)
}

// changesTime is how long changes of a label may take that nobody interrupts.
const changesTime = 30 * time.Second

// leftAt says of an error at which stage it leaves a head that was active.
func leftAt(head *corev1.ConfigMap, err error) error {
	return fmt.Errorf("ConfigMap %s was labelled active already, is labelled %s since a moment ago, and could not be labelled active again; "+
		"ask again: %w", head.Name, policyv1alpha1.LabelDraft, err)
}

// noticed waits until the manager has seen that a head is not labelled active any more.
func (r *rollout) noticed(ctx context.Context, c client.Client, head *corev1.ConfigMap) error {
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, r.timeout, true, func(ctx context.Context) (bool, error) {
		all, err := revisions(ctx, c)
		seen := !slices.ContainsFunc(all, func(one policyv1alpha1.PolicyRevision) bool {
			holds := one.Status.Head == head.Name || headIn(&one, head.Name) != nil
			return holds && labelOf(&one, head.Name) == policyv1alpha1.LabelledActive
		})
		return seen, err
	})
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if wait.Interrupted(err) {
		return fmt.Errorf("the manager has not noticed the change within %s; is one running", r.timeout)
	}
	return err
}
