// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// Entry is one maintenance of a list.
type Entry struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Server    string `json:"server"`
	Policy    string `json:"policy"`
	Priority  int32  `json:"priority"`
	// State is that of the status; Ending while the maintenance is deleted or aborted and has not ended.
	State string `json:"state"`
	// Since is when the server was granted; else when the maintenance was made.
	Since time.Time `json:"since"`
	// Reason and Message are those of the condition that says most; empty where there is none.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// listRequest is what the command line of list asks for.
type listRequest struct {
	scope
	selector string
	waiting  bool
}

func listCommand(flags *access.Flags) *cobra.Command {
	r := &listRequest{}
	var output terminal.Output
	var selector labels.Selector
	cmd := &cobra.Command{
		Use:   "list [-A | -n NAMESPACE] [-l SELECTOR] [--waiting]",
		Short: "List maintenances, and why each waits",
		Long: "Shows each ServerMaintenance with its server, policy and state, and for how long it has waited or has held the server. The " +
			"last column says why. It has the reason of condition Granted while the maintenance waits, and that of condition Served while it " +
			"holds the server.\n\n" +
			"Exit codes: 0 listed, also where there are none. 1 they could not be read. 2 the command line makes no sense.",
		Example: "  # Everything that waits for a server, in all namespaces\n  {{.}} maintenance list -A --waiting\n\n" +
			"  {{.}} maintenance list -n metalaw-system -l rollout=bios-2.9",
		Args: func(cmd *cobra.Command, args []string) (err error) {
			if err := usage.NoArgs(cmd, args); err != nil {
				return err
			}
			if r.all && r.namespace != "" {
				return usage.Errorf("-A and -n exclude each other")
			}
			if selector, err = labels.Parse(r.selector); err != nil {
				return usage.Errorf("-l: %v", err)
			}
			return nil
		},
		RunE: flags.Run(func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, _ []string) error {
			in, err := r.in(flags)
			if err != nil {
				return err
			}
			var list v1alpha1.ServerMaintenanceList
			if err := c.List(ctx, &list, client.InNamespace(in), client.MatchingLabelsSelector{Selector: selector}); err != nil {
				return access.Explain(err, "list", access.Maintenances)
			}
			showList(t, in, entriesOf(list.Items, r.waiting), output)
			return nil
		}),
	}
	r.register(cmd, true)
	cmd.Flags().StringVarP(&r.selector, "selector", "l", "", "labels of the maintenances")
	cmd.Flags().BoolVar(&r.waiting, "waiting", false, "only those that wait for their server")
	output.Register(cmd)
	return cmd
}

// entriesOf are the maintenances of a list, by namespace and name.
func entriesOf(all []v1alpha1.ServerMaintenance, waiting bool) []Entry {
	all = slices.Clone(all)
	slices.SortFunc(all, byName)
	entries := []Entry{}
	for i := range all {
		if !waiting || waits(&all[i]) {
			entries = append(entries, entryOf(&all[i]))
		}
	}
	return entries
}

func entryOf(m *v1alpha1.ServerMaintenance) Entry {
	e := Entry{Namespace: m.Namespace, Name: m.Name, Server: m.Spec.ServerRef.Name, Policy: string(policyOf(m)), Priority: m.Spec.Priority,
		State: stateOf(m), Since: m.CreationTimestamp.UTC()}
	if m.Status.GrantedAt != nil {
		e.Since = m.Status.GrantedAt.UTC()
	}
	if c := tells(m); c != nil {
		e.Reason, e.Message = c.Reason, c.Message
	}
	return e
}

func showList(t *terminal.Terminal, namespace string, entries []Entry, output terminal.Output) {
	output.Show(t, map[string][]Entry{"maintenances": entries}, func() {
		if len(entries) == 0 {
			where := ""
			if namespace != "" {
				where = " in namespace " + namespace + "; -A lists those of all namespaces"
			}
			t.Printf("no maintenance matches%s\n", where)
			return
		}
		t.Table([]string{"NAMESPACE", "NAME", "SERVER", "POLICY", "STATE", "SINCE", "WHY"}, lists.Map(entries, func(e *Entry) []string {
			return []string{e.Namespace, e.Name, e.Server, e.Policy, e.State, t.Ago(e.Since), e.why()}
		}))
	})
}

// shown is how many characters of a message a table shows.
const shown = 100

// why is the reason and the beginning of the message.
func (e *Entry) why() string {
	words := e.Reason
	if words == "" {
		return "the manager has not answered"
	}
	if e.Message != "" {
		words += ": " + e.Message
	}
	if runes := []rune(words); len(runes) > shown {
		words = string(runes[:shown]) + "..."
	}
	return words
}

// underWay shows the maintenances that hold servers of a selection now, which a pause does not take away.
func underWay(ctx context.Context, t *terminal.Terminal, c client.Reader, selector labels.Selector) {
	var list v1alpha1.ServerMaintenanceList
	var servers v1alpha1.ServerList
	err := c.List(ctx, &list)
	if err == nil {
		err = c.List(ctx, &servers, client.MatchingLabelsSelector{Selector: selector})
	}
	if err != nil {
		words := access.Explain(err, "list", access.Maintenances).Error()
		t.Notef("note: which maintenances are under way is not known to you (%s)", terminal.Plain(words))
		return
	}
	holding := holdersOf(list.Items, servers.Items)
	if len(holding) == 0 {
		t.Printf("No maintenance holds one of these servers now.\n")
		return
	}
	t.Printf("\nUnder way, and they keep their servers:\n")
	t.Table([]string{"NAMESPACE", "NAME", "SERVER", "SINCE", "STATE"}, lists.Map(holding, func(e *Entry) []string {
		return []string{e.Namespace, e.Name, e.Server, t.Ago(e.Since), e.State}
	}))
}

// holdersOf are the maintenances that hold one of some servers.
func holdersOf(all []v1alpha1.ServerMaintenance, servers []v1alpha1.Server) []Entry {
	var holding []Entry
	for _, e := range entriesOf(all, false) {
		s := lists.Find(servers, func(s *v1alpha1.Server) bool { return s.Name == e.Server })
		if s == nil || s.Spec.ServerMaintenanceRef == nil {
			continue
		}
		if ref := s.Spec.ServerMaintenanceRef; ref.Namespace == e.Namespace && ref.Name == e.Name {
			holding = append(holding, e)
		}
	}
	return holding
}
