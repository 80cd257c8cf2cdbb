// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strings"

	"github.com/spf13/cobra"
)

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
