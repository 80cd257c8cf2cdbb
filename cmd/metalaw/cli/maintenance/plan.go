// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"github.com/spf13/cobra"

	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
)

func planCommand(_ *access.Flags) *cobra.Command { return &cobra.Command{Use: "plan", Hidden: true} }
