// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strings"

	"github.com/spf13/cobra"
)

// NoArgs takes no arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("%s takes no arguments, and %q was given; see --help", cmd.CommandPath(), args[0])
	}
	return nil
}

// Suggest asks whether another command was meant, where one is like the word, and says where all of them are.
func Suggest(cmd *cobra.Command, word, help string) string {
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	like := cmd.SuggestionsFor(word)
	if len(like) == 0 {
		return "; see " + help
	}
	return "; did you mean " + strings.Join(like, " or ") + "? See " + help
}
