// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/policy/source"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/lifecycle"
	"github.com/metalaw/metalaw/engine/lifecycle/render"
	"github.com/metalaw/metalaw/policies"
)

func renderCommand() *cobra.Command {
	flags := &access.Flags{}
	var from source.Flags
	var revision string
	var live bool
	cmd := &cobra.Command{
		Use:   "render (-f DIR|FILE|- | --from BUNDLE | --revision NAME) [-o mermaid|dot|svg|markdown] [--live]",
		Short: "Draw a bundle's lifecycle, with the number of servers in each state if asked",
		Long: "Draws the states and the ways between them: for Mermaid or Graphviz to lay out, as SVG that needs no other program, or as Markdown " +
			"with every rule. With --live it asks the cluster how many servers are in each state, " +
			"and tells on stderr of those in states that are not drawn.\n\n" +
			"Exit codes: 0 drawn. 1 the lifecycle does not compile, or the cluster did not answer. 2 the command line makes no sense.",
		Example: "  {{.}} policy render --from default -o svg >default.svg\n  {{.}} policy render --revision fleet-1.4.0-3f2a9c1b7d --live",
		Args:    usage.NoArgs,
	}
	from.Register(cmd)
	var output terminal.Output
	output.Register(cmd, "mermaid", "dot", "svg", "markdown")
	cmd.Flags().StringVar(&revision, "revision", "", "a PolicyRevision of the cluster")
	cmd.Flags().BoolVar(&live, "live", false, "show how many servers of the cluster are in each state")
	flags.Register(cmd)
	// The error is about a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("revision", flags.Complete(0, revisionNames))
	cmd.RunE = terminal.Run(func(ctx context.Context, t *terminal.Terminal, _ []string) error {
		var c client.Client
		if live || revision != "" {
			var err error
			if c, err = flags.Connect(t.Err); err != nil {
				return err
			}
		}
		l, err := drawn(ctx, c, &from, revision, t.In)
		if err != nil {
			return err
		}
		var counts render.Counts
		if live {
			if counts, err = count(ctx, c, revision); err != nil {
				return access.Explain(err, "list", access.Servers)
			}
		}
		draw := map[string]func(*lifecycle.Lifecycle, render.Counts) string{
			"mermaid": render.Mermaid, "dot": render.DOT, "svg": render.SVG, "markdown": render.Markdown}[output.String()]
		t.Printf("%s", draw(l, counts))
		if elsewhere := undrawn(l, counts); elsewhere != "" {
			t.Notef("not drawn, because this lifecycle has no such state: %s", elsewhere)
		}
		return nil
	})
	return cmd
}

// drawn is the lifecycle to draw. It has to compile, and no more than that: also one that is refused is worth looking at.
func drawn(ctx context.Context, c client.Client, from *source.Flags, revision string, in io.Reader) (*lifecycle.Lifecycle, error) {
	var files bundle.Files
	name, placed := revision, func(d diag.Diagnostic) diag.Diagnostic { return d }
	if revision != "" {
		if from.Path != "" || from.Shipped != "" {
			return nil, usage.Errorf("give one of -f, --from and --revision")
		}
		stored := &policyv1alpha1.PolicyRevision{}
		if err := c.Get(ctx, types.NamespacedName{Name: revision}, stored); err != nil {
			if apierrors.IsNotFound(err) {
				return nil, fmt.Errorf("there is no PolicyRevision %s; `metalaw policy history` lists those that there are", revision)
			}
			return nil, access.Explain(err, "get", access.Revisions)
		}
		var err error
		if files, err = bundle.Unpack(stored.Spec.Content); err != nil {
			return nil, err
		}
	} else {
		m, err := from.Read(ctx, in)
		if err != nil {
			return nil, err
		}
		fill, err := policies.Shipped(policies.DefaultBundle)
		if err != nil {
			return nil, err
		}
		files, name, placed = m.Files.Filled(fill), m.Name, m.Placed
	}
	l, found, err := lifecycle.Compile(bundle.LifecycleFile, files[bundle.LifecycleFile], policies.Vocabulary())
	if err != nil {
		return nil, err
	}
	for i := range found {
		found[i] = placed(found[i])
	}
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("the lifecycle of %s does not compile:\n%w", name, err)
	}
	return l, nil
}

// undrawn are the servers in states that a lifecycle does not have: one that stands still there, or that another governs.
func undrawn(l *lifecycle.Lifecycle, counts render.Counts) string {
	var words []string
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		switch {
		case state == "":
			words = append(words, terminal.Count(counts[state], "server")+" without a state")
		case !l.Defines(state):
			words = append(words, fmt.Sprintf("%s in %s", terminal.Count(counts[state], "server"), state))
		}
	}
	return strings.Join(words, ", ")
}

// count counts the servers in each state; where a revision is named, those that it governs.
func count(ctx context.Context, c client.Client, revision string) (render.Counts, error) {
	var servers v1alpha1.ServerList
	if err := c.List(ctx, &servers); err != nil {
		return nil, err
	}
	counts := render.Counts{}
	for i := range servers.Items {
		st := &servers.Items[i].Status
		if revision == "" || (st.Lifecycle != nil && st.Lifecycle.Revision == revision) {
			counts[engine.State(st.State)]++
		}
	}
	return counts, nil
}
