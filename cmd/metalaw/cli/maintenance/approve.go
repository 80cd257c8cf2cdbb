// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/controllers/maintenance/hold"
	"github.com/metalaw/metalaw/internal/mergepatch"
)

// maxReason is the longest reason that the API takes, in characters.
const maxReason = 1024

// approval is what an approval of a claim would cover.
type approval struct {
	Server string `json:"server"`
	// Claim is the one that holds the server, as namespace/name.
	Claim string `json:"claim"`
	// Covered were asked of this claim, or wait for nothing but its approval; Left are the others that wait.
	Covered []Entry `json:"covered"`
	Left    []Entry `json:"left"`
	// Stands is the approval that the claim bears already, such as "label KEY=true"; empty where it bears none.
	Stands string `json:"stands,omitempty"`
	// Mirrored says that a cloud controller mirrors the labels of the Node to the claim.
	Mirrored bool `json:"mirrored,omitempty"`
	// Outcome is approved, unchanged, refused or dry-run, and Message says why.
	Outcome string   `json:"outcome"`
	Message string   `json:"message,omitempty"`
	Notes   []string `json:"notes"`

	claim *v1alpha1.ServerClaim
}

// Outcomes of an approval.
const (
	approved  = "approved"
	unchanged = "unchanged"
	refused   = "refused"
	dryRun    = "dry-run"
)

func approveCommand(flags *access.Flags) *cobra.Command {
	in := &scope{}
	var output terminal.Output
	var dry bool
	var reason string
	cmd := &cobra.Command{
		Use:   "approve NAME [-n NAMESPACE] [--reason TEXT] [--dry-run]",
		Short: "Approve the maintenances that wait for the holder of a server",
		Long: "Sets label " + v1alpha1.MaintenanceApprovedLabel + "=true on the claim that holds the server of a maintenance. First it shows " +
			"which maintenances that covers. Under the default policy an approval covers the maintenances of which the holder was " +
			"asked (status.asked), and no later one.\n\n" +
			"In a cluster whose cloud controller mirrors the labels of Nodes, approve on the Node instead. The cloud controller takes an " +
			"approval off the claim that the Node does not have.\n\n" +
			"Exit codes: 0 approved, or it was before. 1 nothing waits for this holder, or it could not be stored. " +
			"2 the command line makes no sense.",
		Example: "  # See first what that would cover\n  {{.}} maintenance approve bios-2.9-node-7 -n metalaw-system --dry-run\n\n" +
			"  {{.}} maintenance approve bios-2.9-node-7 -n metalaw-system --reason 'drained, CHG-81'",
		Args: func(cmd *cobra.Command, args []string) error {
			if n := utf8.RuneCountInString(reason); n > maxReason {
				return usage.Errorf("--reason has %d characters; the API takes %d", n, maxReason)
			}
			return usage.OneArg("name one maintenance")(cmd, args)
		},
		RunE: flags.Run(func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, args []string) error {
			namespace, err := in.in(flags)
			if err != nil {
				return err
			}
			a, err := readApproval(ctx, c, types.NamespacedName{Namespace: namespace, Name: args[0]})
			if err != nil {
				return err
			}
			if !output.Structured() {
				a.before(t)
			}
			if err := a.store(ctx, c, reason, dry); err != nil {
				return err
			}
			output.Show(t, a, func() { a.after(t) })
			if a.Outcome == refused {
				return terminal.ErrIncomplete
			}
			return nil
		}),
		ValidArgsFunction: in.complete(flags),
	}
	in.register(cmd, false)
	cmd.Flags().StringVar(&reason, "reason", "", "why; kept on the claim, in annotation "+v1alpha1.ApprovalReasonAnnotation)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what an approval would cover, ask the API server and its admission, and store nothing")
	output.Register(cmd)
	return cmd
}

// readApproval reads what an approval for a maintenance would cover.
func readApproval(ctx context.Context, c client.Reader, key types.NamespacedName) (*approval, error) {
	m, err := get(ctx, c, key)
	if err != nil {
		return nil, err
	}
	notes := []string{}
	s, err := getServer(ctx, c, m.Spec.ServerRef.Name, &notes)
	if err != nil {
		return nil, err
	}
	claim, err := getClaim(ctx, c, s, &notes)
	if err == nil && s == nil {
		claim, err = askedClaim(ctx, c, m, &notes)
	}
	if err != nil {
		return nil, err
	}
	if claim == nil {
		return nil, errors.New(unheld(m, s, notes))
	}
	all, err := ofServer(ctx, c, m.Spec.ServerRef.Name, &notes, m.Namespace, claim.Namespace)
	if err != nil {
		return nil, err
	}
	a := coverageOf(m, claim, all)
	a.Notes = notes
	return a, nil
}

// askedClaim finds the claim of which a maintenance was asked among those of its namespace, for a reader who may not see servers.
func askedClaim(ctx context.Context, c client.Reader, m *v1alpha1.ServerMaintenance, notes *[]string) (*v1alpha1.ServerClaim, error) {
	var list v1alpha1.ServerClaimList
	if err := c.List(ctx, &list, client.InNamespace(m.Namespace)); err != nil {
		return nil, access.Missing(notes, err, "list", access.ServerClaims, "you cannot see the claims of namespace "+m.Namespace)
	}
	return lists.Find(list.Items, func(c *v1alpha1.ServerClaim) bool { return wasAsked(m, c) }), nil
}

// unheld says why there is no claim to approve for.
func unheld(m *v1alpha1.ServerMaintenance, s *v1alpha1.Server, notes []string) string {
	switch {
	case s != nil && s.Spec.ServerClaimRef == nil:
		return fmt.Sprintf("no claim holds server %s, so the maintenance needs no approval; "+
			"metalaw explain maintenance %s -n %s says what it waits for", s.Name, m.Name, m.Namespace)
	case len(notes) > 0:
		return "the claim that holds server " + m.Spec.ServerRef.Name + " is not known: " + strings.Join(notes, "; ")
	default:
		return "the claim that holds server " + m.Spec.ServerRef.Name + " does not exist"
	}
}

// cloudController is what the cloud controller calls itself on the maintenances that it makes.
const (
	managedByLabel  = "app.kubernetes.io/managed-by"
	cloudController = "cloud-provider-metal"
)

// coverageOf is what an approval of a claim covers among the maintenances of its server, and whether it may be given for one of them.
func coverageOf(m *v1alpha1.ServerMaintenance, c *v1alpha1.ServerClaim, all []v1alpha1.ServerMaintenance) *approval {
	a := &approval{Server: m.Spec.ServerRef.Name, Claim: c.Namespace + "/" + c.Name, Covered: []Entry{}, Left: []Entry{}, Stands: hold.Approval(c),
		Outcome: approved, Mirrored: mirrored(c, all), claim: c}
	for i := range all {
		switch one := &all[i]; {
		case !waits(one):
		case wasAsked(one, c):
			a.Covered = append(a.Covered, entryOf(one))
		default:
			a.Left = append(a.Left, entryOf(one))
		}
	}
	own := entryOf(m)
	remove := fmt.Sprintf("kubectl label serverclaim -n %s %s %s-", c.Namespace, c.Name, v1alpha1.MaintenanceApprovedLabel)
	switch {
	case !waits(m):
		a.refuse("%s is %s and waits for no approval", nameOf(m), stateOf(m))
	case !wasAsked(m, c) && a.Stands != "":
		a.refuse("the claim bears an approval (%s) that is older than %s; take it away, and approve again once the manager has asked: %s",
			a.Stands, nameOf(m), remove)
	case !wasAsked(m, c):
		a.refuse("the manager has not asked the holder for %s, and an approval now would not cover it; it says: %s", nameOf(m), own.why())
	case a.Stands != "":
		a.Outcome, a.Message = unchanged, "the claim bears an approval already: "+a.Stands
	}
	return a
}

func (a *approval) refuse(format string, args ...any) {
	a.Outcome, a.Message = refused, fmt.Sprintf(format, args...)
}

// mirrored says that a cloud controller writes the labels of a claim: it made one of the maintenances, or it wrote the claim.
func mirrored(c *v1alpha1.ServerClaim, all []v1alpha1.ServerMaintenance) bool {
	for i := range all {
		if all[i].Namespace == c.Namespace && all[i].Labels[managedByLabel] == cloudController {
			return true
		}
	}
	for _, f := range c.ManagedFields {
		if strings.Contains(f.Manager, "cloud-controller-manager") || strings.Contains(f.Manager, cloudController) {
			return true
		}
	}
	return false
}

// store writes the approval, unless it may not be given or stands already.
func (a *approval) store(ctx context.Context, c client.Client, reason string, dry bool) error {
	if a.Outcome != approved {
		return nil
	}
	changed := a.claim.DeepCopy()
	metav1.SetMetaDataLabel(&changed.ObjectMeta, v1alpha1.MaintenanceApprovedLabel, "true")
	if reason != "" {
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, v1alpha1.ApprovalReasonAnnotation, reason)
	}
	options := []client.PatchOption{client.FieldOwner(access.FieldManager)}
	if dry {
		options = append(options, client.DryRunAll)
		a.Outcome = dryRun
	}
	// The lock keeps an approval from a claim that changed since it was shown.
	err := c.Patch(ctx, changed, mergepatch.Locked(a.claim), options...)
	if apierrors.IsConflict(err) {
		return fmt.Errorf("claim %s changed meanwhile, and nothing was stored; look at it again", a.Claim)
	}
	return access.Explain(err, "patch", access.ServerClaims)
}

// before shows what an approval covers.
func (a *approval) before(t *terminal.Terminal) {
	t.Printf("Claim %s holds server %s.\n", terminal.Plain(a.Claim), terminal.Plain(a.Server))
	head := []string{"NAMESPACE", "NAME", "POLICY", "PRIORITY", "WHY"}
	rows := func(all []Entry) [][]string {
		return lists.Map(all, func(e *Entry) []string {
			return []string{e.Namespace, e.Name, e.Policy, fmt.Sprint(e.Priority), e.why()}
		})
	}
	if len(a.Covered) > 0 {
		t.Printf("\nAn approval covers:\n")
		t.Table(head, rows(a.Covered))
	}
	if len(a.Left) > 0 {
		t.Printf("\nIt does not cover these, unless the policy has approval: PerClaim:\n")
		t.Table(head, rows(a.Left))
	}
	t.Printf("\n")
}

// after says what became of it.
func (a *approval) after(t *terminal.Terminal) {
	words := map[string]string{
		approved: fmt.Sprintf("approved: claim %s has label %s=true", a.Claim, v1alpha1.MaintenanceApprovedLabel),
		dryRun:   fmt.Sprintf("dry run: claim %s would get label %s=true; nothing was stored", a.Claim, v1alpha1.MaintenanceApprovedLabel),
	}[a.Outcome]
	if words == "" {
		words = a.Outcome + ": " + a.Message
	}
	t.Printf("%s\n", terminal.Plain(words))
	if a.Mirrored && a.Outcome != refused {
		t.Notef("warning: a cloud controller mirrors labels between Nodes and the claims of namespace %s. It takes the approval off the claim "+
			"unless the Node has it. Set it there: kubectl label node NODE %s=true",
			terminal.Plain(a.claim.Namespace), v1alpha1.MaintenanceApprovedLabel)
	}
	t.Notes(a.Notes)
}
