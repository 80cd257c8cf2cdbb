// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/metalaw/metalaw/cmd/internal/usage"
)

// The words of flag -o that more than one place knows.
const (
	Text   = "text"
	AsJSON = "json"
	AsYAML = "yaml"
	// AsSARIF is the form that code scanners exchange.
	AsSARIF = "sarif"
)

// Output is the form of a command's output, as flag -o names it. It implements pflag.Value.
type Output struct {
	word  string
	words []string
}

// OutputAs is the output in one form.
func OutputAs(word string) Output { return Output{word: word} }

// Register adds the flag -o to a command. The first word is what the output is without it; where none is given, it may be
// text, json or yaml.
func (o *Output) Register(cmd *cobra.Command, words ...string) {
	if len(words) == 0 {
		words = []string{Text, AsJSON, AsYAML}
	}
	*o = Output{word: words[0], words: words}
	cmd.Flags().VarP(o, "output", "o", "form of the output: "+strings.Join(words, ", "))
	Offer(cmd, "output", words)
}

// String implements pflag.Value.
func (o *Output) String() string { return o.word }

// Type implements pflag.Value.
func (o *Output) Type() string { return strings.Join(o.words, "|") }

// Set implements pflag.Value.
func (o *Output) Set(word string) error {
	if !slices.Contains(o.words, word) {
		return fmt.Errorf("%q is none of %s", word, strings.Join(o.words, ", "))
	}
	o.word = word
	return nil
}

// Structured says that the output is one document for other programs.
func (o Output) Structured() bool { return slices.Contains([]string{AsJSON, AsYAML, AsSARIF}, o.word) }

// Show writes a value as that document, or else text for people.
func (o Output) Show(t *Terminal, value any, text func()) {
	if o.Structured() {
		t.wrote(o.Write(t.Out, value))
		return
	}
	text()
}

// Beside is the terminal for text beside the document: with one, text goes to Err, and the document alone to Out.
func (o Output) Beside(t *Terminal) *Terminal {
	if !o.Structured() {
		return t
	}
	aside := *t
	aside.Out = t.Err
	return &aside
}

// Write writes that document.
func (o Output) Write(w io.Writer, value any) error {
	if o.word != AsYAML {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(value)
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// Group makes a command hold others, which are its nouns, such as verbs. It prints its help, and suggests one for a word that is none.
func Group(cmd *cobra.Command, noun, help string) *cobra.Command {
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		like := cmd.SuggestionsFor(args[0])
		if len(like) == 0 {
			return usage.Errorf("there is no %s %q; see %s", noun, args[0], help)
		}
		return usage.Errorf("there is no %s %q; did you mean %s? See %s", noun, args[0], strings.Join(like, " or "), help)
	}
	return cmd
}

// Offer completes a flag with words.
func Offer(cmd *cobra.Command, flag string, words []string) {
	// The error is about a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}
