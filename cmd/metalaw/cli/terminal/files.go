// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FileFlag is the word for a file that a command reads or writes. Commands that write one took --file before; they
// still do.
const FileFlag = "filename"

// WritesFile adds the flag for the file that a command writes.
func WritesFile(cmd *cobra.Command, file *string, value, meaning string) {
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "file" {
			name = FileFlag
		}
		return pflag.NormalizedName(name)
	})
	cmd.Flags().StringVarP(file, FileFlag, "f", value, meaning)
	_ = cmd.MarkFlagFilename(FileFlag) // the error is about a flag that does not exist
}
