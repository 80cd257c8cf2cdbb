// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"context"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// told is what promote and rollback did, for other programs.
type told struct {
	// Complete is the exit code in a word.
	Complete bool `json:"complete"`
	// ConfigMap is the one that was named; Stage the one that was asked for.
	ConfigMap string `json:"configMap,omitempty"`
	Stage     string `json:"stage,omitempty"`
	// Says is what a person reads, line by line.
	Says []string `json:"says"`
}

// tell carries out a command, and writes what it says as one document where that is asked for.
func (r *rollout) tell(of told, do func(ctx context.Context, t *terminal.Terminal, c client.WithWatch,
	args []string) error) func(
	context.Context, *terminal.Terminal, client.WithWatch, []string) error {
	return func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, args []string) error {
		if !r.output.Structured() {
			return do(ctx, t, c, args)
		}
		var said bytes.Buffer
		aside := *t
		aside.Out = &said
		err := do(ctx, &aside, c, args)
		if len(args) > 0 {
			of.ConfigMap = args[0]
		}
		of.Complete, of.Says = err == nil, strings.FieldsFunc(said.String(), func(r rune) bool { return r == '\n' })
		r.output.Show(t, of, func() {})
		return err
	}
}
