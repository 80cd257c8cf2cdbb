// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/internal/freeze"
	"github.com/metalaw/metalaw/internal/restored"
)

// restoredFreeze is the name of the freeze that the command sets.
const restoredFreeze = "restored"

// restoredRequest is what the command line of restored asks.
type restoredRequest struct {
	names            []string
	selector, reason string
	confirm, yes     bool
	timeout          time.Duration
}

func restoredCommand() *cobra.Command {
	flags, r := &access.Flags{}, &restoredRequest{}
	var output terminal.Output
	cmd := &cobra.Command{
		Use:   "restored [NAME...] [-l SELECTOR] (--reason TEXT | --confirm)",
		Short: "After a restore of the cluster's store: leave every machine as it is until a user has compared it",
		Long: "What is stored of a machine may be older than its disks after a restore of etcd. The command freezes the fleet at level All, and " +
			"puts every server in doubt, or those that are named. A server in doubt is left as it is, whatever the policy says: nothing is " +
			"powered, wiped, released or offered. Lifting the freeze does not end a doubt.\n\n" +
			"With --confirm a user says that servers were compared with their machines. A server with a claim goes on as its claim says, and " +
			"one whose claim has ended is erased. The disks of any other server are read first, once its machine is off; it is offered only " +
			"if they hold no data now.\n\n" +
			"It takes the verb restore on fleetcontrols (ClusterRole metalaw-fleet-restorer).\n\n" +
			"Exit codes: 0 done. 1 a server could not be written, the freeze is not acknowledged, or the answer was no. " +
			"2 the command line makes no sense, or no user was there to confirm.",
		Example: "  {{.}} restored --reason 'INC-1207: etcd restored from 02:00'\n\n" +
			"  # Rack r1 was compared with what its tenants say\n" +
			"  {{.}} restored --confirm -l rack=r1",
		Args: func(_ *cobra.Command, names []string) error {
			r.names = names
			return r.check()
		},
		RunE: flags.Run(func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, _ []string) error {
			if r.confirm {
				return r.end(ctx, t, c, output)
			}
			return r.begin(ctx, t, c, output, flags.WhoAmI(ctx, c))
		}),
		ValidArgsFunction: flags.Complete(0, doubtedNames),
	}
	flags.Register(cmd)
	f := cmd.Flags()
	f.StringVarP(&r.selector, "selector", "l", "", "labels of the servers; every server where neither this nor a name is given")
	f.StringVar(&r.reason, "reason", "", "why; required without --confirm, and kept with the doubt")
	f.BoolVar(&r.confirm, "confirm", false, "say that these servers were compared with their machines")
	f.BoolVarP(&r.yes, "yes", "y", false, "with --confirm: do not ask for a confirmation")
	f.DurationVar(&r.timeout, "timeout", 30*time.Second, "how long to wait for the manager to acknowledge the freeze; 0 does not wait")
	output.Register(cmd)
	return cmd
}

func (r *restoredRequest) check() error {
	switch {
	case len(r.names) > 0 && r.selector != "":
		return usage.Errorf("names and -l exclude each other")
	case r.confirm && len(r.names) == 0 && r.selector == "":
		return usage.Errorf("--confirm needs the names of servers, or -l")
	case !r.confirm && strings.TrimSpace(r.reason) == "":
		return usage.Errorf("--reason is required: an operator who finds a server in doubt wants to know why")
	case utf8.RuneCountInString(r.reason) > maxReason:
		return usage.Errorf("--reason has %d characters; the API takes %d", utf8.RuneCountInString(r.reason), maxReason)
	case r.timeout < 0:
		return usage.Errorf("--timeout must not be negative; 0 does not wait")
	}
	if _, err := labels.Parse(r.selector); err != nil {
		return usage.Errorf("-l: %v", err)
	}
	return nil
}

// doubted is a server and what becomes of it.
type doubted struct {
	Name    string `json:"name"`
	State   string `json:"state"`
	Power   string `json:"power"`
	Holder  string `json:"holder,omitempty"`
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitempty"`
}

func doubtedOf(s *v1alpha1.Server, outcome string) doubted {
	d := doubted{Name: s.Name, State: cmp.Or(string(s.Status.State), "-"), Power: cmp.Or(string(s.Status.PowerState), "-"), Outcome: outcome}
	if ref := s.Spec.ServerClaimRef; ref != nil {
		d.Holder = ref.Namespace + "/" + ref.Name
	}
	return d
}

// held says how a server in doubt is left.
func held(s *v1alpha1.Server) string {
	on := s.Status.PowerState == v1alpha1.PowerStateOn
	switch {
	case v1alpha1.ReleaseRecorded(s):
		return "its claim has ended; power-off and wipe wait"
	case s.Spec.ServerClaimRef != nil && on:
		return "runs for its claim; the claim's end and power Off wait"
	case s.Spec.ServerClaimRef != nil:
		return "held by its claim; power On and the claim's end wait"
	case on:
		return "runs, and no claim is known: it is left alone"
	}
	return "no claim is known; it is not offered"
}

// ended says what a confirmation of a server leads to.
func ended(s *v1alpha1.Server) string {
	switch {
	case !restored.Marked(s):
		return "is not in doubt"
	case v1alpha1.ReleaseRecorded(s) && s.Spec.ReclaimPolicy == v1alpha1.ReclaimPolicyRetain && s.Spec.ServerClaimRef != nil:
		return "its claim has ended: it is powered off, and its data is kept"
	case v1alpha1.ReleaseRecorded(s):
		return "its claim has ended: it is powered off and ERASED"
	case s.Spec.ServerClaimRef != nil:
		return "goes on as its claim says"
	case s.Status.State == v1alpha1.StateObserving:
		return "is observed, as before"
	case s.Status.PowerState != v1alpha1.PowerStateOff: // what is not known is not off
		return "its disks are read once it is off; it is not powered off for that"
	}
	return "its disks are read; it is offered if they hold no data"
}

// begin freezes the fleet, and puts the servers in doubt.
func (r *restoredRequest) begin(ctx context.Context, t *terminal.Terminal, c client.Client, output terminal.Output, who string) error {
	words, err := r.freeze(ctx, c, who)
	if words == "" {
		return err
	}
	failed := err != nil
	if failed { // the doubt holds by itself
		t.Notef("%v", err)
	}
	servers, err := r.choose(ctx, c)
	if err != nil {
		return err
	}
	done := []doubted{}
	for i := range servers {
		d := doubtedOf(&servers[i], held(&servers[i]))
		if err := r.write(ctx, c, &servers[i], restored.Doubted); err != nil {
			d.Outcome, d.Error, failed = "NOT in doubt", err.Error(), true
		}
		done = append(done, d)
	}
	output.Show(t, map[string]any{"freeze": words, "servers": done}, func() {
		t.Printf("%s\n", terminal.Plain(words))
		show(t, done)
		t.Printf("%s in doubt. Compare them with their machines, then: metalaw restored --confirm NAME. The freeze ends by metalaw unfreeze.\n",
			terminal.Count(len(done), "server"))
	})
	r.noteSilent(ctx, t, c)
	if failed {
		return terminal.ErrIncomplete
	}
	return nil
}

// noteSilent names the BMCs that do not answer: a server that one of them shows later is not in doubt.
func (r *restoredRequest) noteSilent(ctx context.Context, t *terminal.Terminal, c client.Reader) {
	var bmcs v1alpha1.BMCList
	if err := c.List(ctx, &bmcs); err != nil {
		t.Notef("whether every BMC answers cannot be read: %v", err)
		return
	}
	var silent []string
	for i := range bmcs.Items {
		if !meta.IsStatusConditionTrue(bmcs.Items[i].Status.Conditions, v1alpha1.ConditionReady) {
			silent = append(silent, bmcs.Items[i].Name)
		}
	}
	if len(silent) > 0 {
		t.Notef("%s not Ready, such as %s. A server that appears later is not in doubt: run the command again for it before you lift the freeze",
			terminal.Count(len(silent), "BMC"), silent[0])
	}
}

// end says that servers were compared.
func (r *restoredRequest) end(ctx context.Context, t *terminal.Terminal, c client.Client, output terminal.Output) error {
	servers, err := r.choose(ctx, c)
	if err != nil {
		return err
	}
	plan := lists.Map(servers, func(s *v1alpha1.Server) doubted { return doubtedOf(s, ended(s)) })
	servers = slices.DeleteFunc(servers, func(s v1alpha1.Server) bool { return !restored.Marked(&s) })
	if len(servers) > 0 && !r.yes {
		if !t.Asks {
			return usage.Errorf("--confirm needs a user at this terminal, or --yes")
		}
		if err := t.Consent(ctx, fmt.Sprintf("Were they compared with their machines: %s?", terminal.Count(len(servers), "server")),
			head, rows(plan)); err != nil {
			return err
		}
	}
	failed := false
	for i := range servers {
		if err := r.write(ctx, c, &servers[i], restored.Confirmed); err != nil {
			at := slices.IndexFunc(plan, func(d doubted) bool { return d.Name == servers[i].Name })
			plan[at].Outcome, plan[at].Error, failed = "is still in doubt", err.Error(), true
		}
	}
	output.Show(t, map[string]any{"servers": plan}, func() { show(t, plan) })
	if failed {
		return terminal.ErrIncomplete
	}
	return nil
}

var head = []string{"NAME", "STATE", "POWER", "HOLDER", ""}

func rows(all []doubted) [][]string {
	return lists.Map(all, func(d *doubted) []string {
		words := d.Outcome
		if d.Error != "" {
			words += ": " + d.Error
		}
		return []string{d.Name, d.State, d.Power, cmp.Or(d.Holder, "-"), terminal.Plain(words)}
	})
}

func show(t *terminal.Terminal, all []doubted) { t.Table(head, rows(all)) }

// freeze freezes the fleet at level All where nothing does, and waits until the manager goes by that.
func (r *restoredRequest) freeze(ctx context.Context, c client.Client, who string) (words string, _ error) {
	var stored *policyv1alpha1.FleetControl
	err := edit(ctx, c, func(control *policyv1alpha1.FleetControl) (bool, error) {
		stored = control
		at := slices.IndexFunc(control.Spec.Freezes, func(f policyv1alpha1.Freeze) bool {
			return f.Level == policyv1alpha1.FreezeAll && f.Selector == nil && f.Until == nil
		})
		if at >= 0 {
			words = freeze.Words(&control.Spec.Freezes[at])
			return false, nil
		}
		wanted := policyv1alpha1.Freeze{Level: policyv1alpha1.FreezeAll, By: who, Reason: cmp.Or(r.reason, "the cluster's store was restored")}
		if wanted.Name = restoredFreeze; find(control, wanted.Name) != nil {
			wanted.Name = freeName(restoredFreeze, func(name string) bool { return find(control, name) != nil })
		}
		added, _, err := add(control, wanted, time.Now())
		words = freeze.Words(&added)
		return true, err
	})
	if err != nil {
		return "", err
	}
	_, err = awaitAcknowledgement(ctx, c, stored, r.timeout)
	return words, err
}

// choose reads the servers that the request is about, sorted by name.
func (r *restoredRequest) choose(ctx context.Context, c client.Reader) ([]v1alpha1.Server, error) {
	var found []v1alpha1.Server
	for _, name := range r.names {
		var s v1alpha1.Server
		if err := c.Get(ctx, types.NamespacedName{Name: name}, &s); err != nil {
			if apierrors.IsNotFound(err) {
				return nil, fmt.Errorf("there is no server %s", name)
			}
			return nil, access.Explain(err, "get", access.Servers)
		}
		found = append(found, s)
	}
	if len(r.names) == 0 {
		selector, err := labels.Parse(r.selector)
		if err != nil {
			return nil, err
		}
		var list v1alpha1.ServerList
		if err := c.List(ctx, &list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
			return nil, access.Explain(err, "list", access.Servers)
		}
		if found = list.Items; len(found) == 0 && r.selector != "" {
			return nil, fmt.Errorf("no server matches -l %s", r.selector)
		}
	}
	slices.SortFunc(found, func(a, b v1alpha1.Server) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// write stores the annotation of a server.
func (r *restoredRequest) write(ctx context.Context, c client.Writer, s *v1alpha1.Server, value string) error {
	before := s.DeepCopy()
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.RestoredDoubtAnnotation, value)
	if r.reason != "" {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.RestoredReasonAnnotation, r.reason)
	}
	err := c.Patch(ctx, s, client.MergeFrom(before), client.FieldOwner(access.FieldManager))
	return access.Explain(err, "patch", access.Servers)
}

func doubtedNames(ctx context.Context, c client.Client) ([]string, error) {
	var servers v1alpha1.ServerList
	err := c.List(ctx, &servers)
	return lists.Map(servers.Items, func(s *v1alpha1.Server) string { return cobra.CompletionWithDesc(s.Name, ended(s)) }), err
}
