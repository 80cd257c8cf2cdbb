// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/schema"
	"github.com/metalaw/metalaw/policies"
)

// reference are the topics that are lists and no schemas.
var reference = map[string]func(*engine.Vocabulary) any{"facts": facts, "effects": effects}

func schemaCommand() *cobra.Command {
	topics := append(schema.Topics(), "effects", "facts")
	slices.Sort(topics)
	cmd := &cobra.Command{
		Use:   "schema TOPIC",
		Short: "Print the schema of a bundle's file or of a placement, or what rules may speak of",
		Long: "Prints the JSON schema of bundle.yaml, lifecycle.yaml, scenarios.yaml, macprefixes.yaml or manifest.yaml, for editors. " +
			"Other topics are the input that selection.rego and admission.rego read, the placement in a claim's annotation, " +
			"and the facts and effects of a lifecycle. Topics: " +
			strings.Join(topics, ", ") + ".\n\nExit codes: 0 printed. 2 there is no such topic.",
		Example:           "  {{.}} policy schema lifecycle >lifecycle.schema.json\n  {{.}} policy schema facts -o yaml",
		ValidArgsFunction: cobra.FixedCompletions(topics, cobra.ShellCompDirectiveNoFileComp),
	}
	var output terminal.Output
	output.Register(cmd, terminal.AsJSON, terminal.AsYAML)
	cmd.RunE = terminal.Run(func(_ context.Context, t *terminal.Terminal, args []string) error {
		if len(args) != 1 || !slices.Contains(topics, args[0]) {
			return usage.Errorf("name one topic: %s", strings.Join(topics, ", "))
		}
		var value any = schema.Of(args[0], policies.Vocabulary())
		if list, ok := reference[args[0]]; ok {
			value = list(policies.Vocabulary())
		}
		return output.Write(t.Out, value)
	})
	return cmd
}

type factEntry struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"`
	Values []string `json:"values,omitempty"`
	Quiet  string   `json:"quiet"`
	Doc    string   `json:"doc"`
}

func facts(v *engine.Vocabulary) any {
	all := make([]factEntry, len(v.Facts))
	for i, f := range v.Facts {
		all[i] = factEntry{Name: f.Name, Type: f.Kind.String(), Values: f.Values, Quiet: f.Quiet.String(), Doc: f.Doc}
	}
	return all
}

type effectEntry struct {
	Name       string            `json:"name"`
	Asserts    string            `json:"asserts"`
	Proof      string            `json:"proof"`
	Repeat     string            `json:"repeat"`
	Disruptive bool              `json:"disruptive"`
	Parameters map[string]string `json:"parameters,omitempty"`
	Requires   []string          `json:"requires,omitempty"`
	Stays      []string          `json:"stays,omitempty"`
}

func effects(v *engine.Vocabulary) any {
	all := make([]effectEntry, len(v.Effects))
	for i, e := range v.Effects {
		all[i] = effectEntry{Name: e.Name, Asserts: e.Asserts, Proof: e.Proof, Repeat: e.Repeat, Disruptive: e.Disruptive}
		for _, p := range e.Params {
			if all[i].Parameters == nil {
				all[i].Parameters = map[string]string{}
			}
			all[i].Parameters[p.Name] = p.Type() + ": " + p.Doc
		}
		for _, r := range e.Requires {
			all[i].Requires = append(all[i].Requires, r.Rule)
		}
		for _, r := range e.Stays {
			all[i].Stays = append(all[i].Stays, r.Rule)
		}
	}
	return all
}
