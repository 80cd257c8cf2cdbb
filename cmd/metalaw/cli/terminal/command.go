// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/metalaw/metalaw/cmd/internal/usage"
)

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
