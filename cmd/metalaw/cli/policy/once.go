// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// once is a flag that may be given one time: who gives it twice would have the first looked at as little as told of.
type once struct {
	pflag.Value
	given bool
}

// Set implements pflag.Value.
func (o *once) Set(text string) error {
	if o.given {
		return errors.New("it is given twice; call the command once for each bundle")
	}
	o.given = true
	return o.Value.Set(text)
}

// readsOne lets a command that reads a bundle read one.
func readsOne(cmd *cobra.Command) {
	if f := cmd.Flags().Lookup("filename"); f != nil {
		f.Value = &once{Value: f.Value}
	}
}
